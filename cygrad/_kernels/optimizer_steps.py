"""Optimizer steps on arrays in memory and on GPUs; the arguments are those of `optim.pyx`."""

import numpy as np

import cygrad._kernels.cpu.optim.formulas as formulas
import cygrad._kernels.cpu.optim.optim as optim
from cygrad._kernels.device.cupy_library import is_array, is_elsewhere, is_meta, is_sparse
from cygrad._kernels.device.followed import following, is_followed
from cygrad._kernels.tape.tape import refuse_step

any_complex = optim.any_complex  # for all arrays
FORMULA_OPTIONS = formulas.OPTIONS
is_followed_on_gpu = is_followed


def count_steps(arrays):
    """`optim.count_steps` of arrays in memory, or of what stands for them while a step is captured on a GPU."""
    work = following(arrays)
    return optim.count_steps(arrays) if work is None else work.count(arrays)


def shared_numbers(name, options, scalars, *flags):
    """`formulas.shared_numbers`, also of what stands for options and scalars while a step is captured on a GPU."""
    work = following(scalars, options[0])
    if work is None:
        return formulas.shared_numbers(name, options, scalars, *flags)
    return work.shared_numbers(name, options, scalars, *flags)


def keep_for_graphs(arrays):
    """Tell a running capture of a CUDA graph, if there is one, that arrays are about to be used directly."""
    if is_elsewhere():
        from cygrad._kernels.gpu.runtime.graph_capture import used  # needed only for GPUs

        used(arrays)


def any_sparse(grads):
    """Whether one of these arrays is that of a sparse tensor."""
    return is_elsewhere() and any(map(is_sparse, grads))


def sgd_step(params, grads, momentum_buffers, *settings):
    """`optim.sgd_step` on each parameter's device."""
    if not is_elsewhere():
        optim.sgd_step(params, grads, momentum_buffers, *settings)
        return
    parts = _by_place(params, grads, momentum_buffers or [None] * len(params))
    for step, places, arrays in parts:
        buffers = arrays[2]
        step.sgd_step(*arrays, *settings)
        for place, buffer in zip(places, buffers if momentum_buffers else ()):  # created by the first step
            momentum_buffers[place] = buffer


def adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *settings):
    """`optim.adam_step` on each parameter's device."""
    if not is_elsewhere():
        optim.adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *settings)
        return
    given = params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or [None] * len(params), steps
    for step, _, arrays in _by_place(*given):
        step.adam_step(*arrays, *settings)


def _by_place(params, *others):
    """Group parameters by device: (module, indices of its parameters, their parts of the lists) for each."""
    given = params, *others
    on_gpu = [is_array(p) for p in params]
    if any(map(is_meta, params)):
        return _without_meta(params, *others)
    if not any(on_gpu):
        return [(optim, range(len(params)), given)]
    from cygrad._kernels.gpu.optim import optim as of_gpus  # needed only for GPUs

    found = []
    for module, wanted in ((optim, False), (of_gpus, True)):
        places = [i for i, own in enumerate(on_gpu) if own is wanted]
        if places:
            found.append((module, places, [[values[i] for i in places] for values in given]))
    return found


def _without_meta(params, *others):
    """Do `_by_place` for the parameters that have elements to change."""
    with_elements = [i for i, p in enumerate(params) if not is_meta(p)]
    if not with_elements:
        return []
    parts = _by_place(*([values[i] for i in with_elements] for values in (params, *others)))
    return [(module, [with_elements[i] for i in places], arrays) for module, places, arrays in parts]


def formula_step(name, rows):
    """One step, on GPUs, of the optimizer with this name; `rows` has (parameter, gradient, state, numbers) for each."""
    from cygrad._kernels.gpu.optim import optim as on_gpus  # needed only for GPUs

    on_gpus.formula_step(name, rows)


def counts_on_gpu(scalars):
    """Whether a step of `counted_step` can take these scalars of a state."""
    from cygrad._kernels.gpu.optim import counted_formulas  # needed only for GPUs

    return counted_formulas.takes(scalars)


def counted_step(name, rows):
    """The same as `formula_step` for states whose scalars are on the GPU; see `counted_formulas.step`."""
    from cygrad._kernels.gpu.optim import counted_formulas  # needed only for GPUs

    counted_formulas.step(name, rows)


def muon_momenta(grads, averages, momentum, nesterov):
    """`matrices.momenta` of arrays on a GPU."""
    from cygrad._kernels.gpu.optim import matrices  # needed only for GPUs

    return matrices.momenta(grads, averages, momentum, nesterov)


def muon_move(params, updates, shrink, rate):
    """`matrices.move` of arrays on a GPU."""
    from cygrad._kernels.gpu.optim import matrices  # needed only for GPUs

    matrices.move(params, updates, shrink, rate)


def formula_in_place(param, grad, state, arguments):
    """One step of `formulas.step` on arrays in memory; return False, with nothing done, for arrays of other kinds.

    `arguments()` returns the further ones: they are made when nothing but this step can take them.
    """
    if all(array is None or type(array) is np.ndarray for array in (param, grad, *state)):
        name, *others = arguments()
        if formulas.step(name, param, grad, state, *others):
            return True
    refuse_step("runs in NumPy", "Optimizer.step")
    return False
