"""Optimizer steps on GPUs: all parameters of a type in one launch; the arguments are those of `_kernels/optim.pyx`.

A table in the GPU's memory tells where the tensors are, and which part of which tensor each block changes. It is made
anew only where a pointer differs from the last time. Tensors whose elements have no common order are changed one by
one. Within `unless(found)` a step changes nothing if the number there is not 0.
"""

import math
from collections import defaultdict
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np

from cygrad._kernels import by_numpy
from cygrad._kernels.gpu.capturing import current, kept, place, uploaded
from cygrad._kernels.gpu.elementwise import choose
from cygrad._kernels.gpu.library import cupy, dense, is_array, on_device
from cygrad._kernels.gpu.programs import FLOATS, Program

_CHUNK = 1 << 14  # elements of a block
_THREADS = 256
_MOST_TABLES = 64

TEXT = """
// A row of `tensors`: pointers to parameter, gradient, state and count of steps, NULL for what there is not; the size.
#define COLUMNS 7
#define EACH_ELEMENT(i) \\
    const whole* tensor = tensors + parts[2 * blockIdx.x] * COLUMNS; \\
    T* p = (T*)tensor[0]; const T* g = (const T*)tensor[1]; \\
    T *s0 = (T*)tensor[2], *s1 = (T*)tensor[3], *s2 = (T*)tensor[4]; \\
    whole first = parts[2 * blockIdx.x + 1], last = first + CHUNK < tensor[6] ? first + CHUNK : tensor[6]; \\
    for (whole i = first + threadIdx.x; i < last; i += blockDim.x)
"""
_SGD = Program(
    "sgd",
    TEXT
    + """
extern "C" __global__ void sgd(const whole* tensors, const whole* parts, double lr, double momentum, double taken,
                               double weight_decay, double sign, whole nesterov, const float* found) {
    if (found && *found) return;
    EACH_ELEMENT(i) {
        W x = W(p[i]), change = W(sign) * W(g[i]) + W(weight_decay) * x;
        if (s0) {
            W b = W(momentum) * W(s0[i]) + W(taken) * change;
            s0[i] = T(b);
            change = nesterov ? change + W(momentum) * b : b;
        }
        p[i] = T(x - W(lr) * change);
    }
}
""",
)
_OF_ADAM = """
        W x = W(p[i]) * W(shrink), change = W(sign) * W(g[i]) + W(weight_decay) * x;
        W m = W(s0[i]), v = W(s1[i]) * W(beta2) + W(gain2) * change * change;
        m += (change - m) * W(gain1);
        s0[i] = T(m);
        s1[i] = T(v);
        if (s2) {
            W most = W(s2[i]);
            v = v > most || v != v ? v : most;
            s2[i] = T(v);
        }
        p[i] = T(x - W(step_size) * m / (sqrt(v) / W(root_of_correction) + W(eps)));
    }
}
"""
_ADAM = Program(
    "adam",
    TEXT
    + """
extern "C" __global__ void adam(const whole* tensors, const whole* parts, double gain1, double beta2, double gain2,
                                double eps, double weight_decay, double shrink, double sign, double step_size,
                                double root_of_correction, const float* found) {
    if (found && *found) return;
    EACH_ELEMENT(i) {"""
    + _OF_ADAM,
)
# The same with counts of steps in the GPU's memory, and with the learning rate there if `rate` is its address.
_COUNTED_ADAM = Program(
    "counted_adam",
    TEXT
    + """
extern "C" __global__ void counted_adam(const whole* tensors, const whole* parts, double beta1, double beta2, double lr,
                                        whole rate, double eps, double weight_decay, double decay, double sign,
                                        const float* found) {
    if (found && *found) return;
    const double t = *(const float*)tensors[parts[2 * blockIdx.x] * COLUMNS + 5];
    if (rate) lr = *(const double*)rate;
    const double shrink = 1 - lr * decay, gain1 = 1 - beta1, gain2 = 1 - beta2;
    const double step_size = lr / (1 - pow(beta1, t)), root_of_correction = sqrt(1 - pow(beta2, t));
    EACH_ELEMENT(i) {"""
    + _OF_ADAM,
)
_COUNT = Program(
    "count_steps",
    TEXT
    + """
extern "C" __global__ void count_steps(const whole* tensors, whole count, const float* found) {
    if (found && *found) return;
    EACH_OF(i, count) *(float*)tensors[i * COLUMNS + 5] += 1;
}
""",
)
_FORMULA = """
extern "C" __global__ void %s(const whole* tensors, const whole* parts, double sign, double decay, double shrink,
                              double c0, double c1, double c2, double c3, double c4, double c5, double c6,
                              const float* found) {
    if (found && *found) return;
    EACH_ELEMENT(i) {
        W x = W(p[i]) * W(shrink), d = W(sign) * W(g[i]) + W(decay) * x;
        %s
        p[i] = T(x);
    }
}
"""
# The other optimizers: what becomes of x for the gradient d, and of the state, with what is the same for all elements
# in c0 to c6 (`_numbers` of the classes in `optim`)
_TEXTS = {
    "Adadelta": """W v = W(s0[i]) * W(c0) + W(c1) * d * d, moved = W(s1[i]);
        W update = sqrt(moved + W(c2)) / sqrt(v + W(c2)) * d;
        s0[i] = T(v);
        s1[i] = T(moved * W(c0) + W(c1) * update * update);
        x -= W(c3) * update;""",
    "Adagrad": """W total = W(s0[i]) + d * d;
        s0[i] = T(total);
        x -= W(c0) * d / (sqrt(total) + W(c1));""",
    "Adamax": """W m = W(s0[i]), before = W(s1[i]) * W(c1), now = fabs(d) + W(c2);
        m += (d - m) * W(c0);
        W most = now > before || now != now ? now : before;
        s0[i] = T(m);
        s1[i] = T(most);
        x -= W(c3) * m / most;""",
    "ASGD": """W average = W(s0[i]);
        x = x * W(c0) - W(c1) * d;
        s0[i] = T(average + W(c2) * (x - average));""",
    "NAdam": """W m = W(s0[i]), v = W(s1[i]) * W(c1) + W(c2) * d * d;
        m += (d - m) * W(c0);
        s0[i] = T(m);
        s1[i] = T(v);
        x -= (W(c5) * m + W(c6) * d) / (sqrt(v / W(c3)) + W(c4));""",
    "RAdam": """W m = W(s0[i]), v = W(s1[i]) * W(c1) + W(c2) * d * d;
        m += (d - m) * W(c0);
        s0[i] = T(m);
        s1[i] = T(v);
        W update = W(c3) * m;
        x -= c4 < 0 ? update : update * (W(c4) / (sqrt(v) + W(c5)));""",
    "RMSprop": """W v = W(s0[i]) * W(c0) + W(c1) * d * d;
        s0[i] = T(v);
        if (s2) {
            W mean = W(s2[i]);
            mean += (d - mean) * W(c1);
            s2[i] = T(mean);
            v -= mean * mean;
        }
        W update = d / (sqrt(v) + W(c2));
        if (s1) {
            update += W(s1[i]) * W(c3);
            s1[i] = T(update);
        }
        x -= W(c4) * update;""",
    "Rprop": """W turn = d * W(s0[i]), size = W(s1[i]);
        size *= turn > 0 ? W(c1) : turn < 0 ? W(c0) : W(1);
        size = size < W(c2) ? W(c2) : size > W(c3) ? W(c3) : size;
        if (turn < 0) d = 0;
        s0[i] = T(d);
        s1[i] = T(size);
        x -= (d > 0 ? W(1) : d < 0 ? W(-1) : d) * size;""",
}
_FORMULAS = {name: Program(name.lower(), TEXT + _FORMULA % (name.lower(), text)) for name, text in _TEXTS.items()}
_NUMBERS = 7
_NONE = [0] * 6
_tables: dict = {}
_is_float: dict = {}  # by type: is it one of FLOATS?


class _Unless(local):
    """Where a number is that forbids the steps of this thread, or None."""

    found: Any = None


_unless = _Unless()


@contextmanager
def unless(found):
    """A block whose steps change nothing if the number in an array on their GPU is not 0."""
    _unless.found = found
    try:
        yield
    finally:
        _unless.found = None


def _alone(step, row, *args):
    """`step(*row, *args)`, which changes arrays of the row."""
    changed = [] if _unless.found is None else [a for a in row if is_array(a)]
    copies = [a.copy() for a in changed]
    step(*row, *args)
    for a, copy in zip(changed, copies):
        a[...] = choose(_unless.found != 0, copy, a)


def _table(numbers):
    """A matrix of whole numbers on the current GPU; the last ones are kept."""
    key = place(), numbers.shape, numbers.tobytes()
    found = _tables.pop(key, None)
    if found is None:
        found = uploaded(numbers)
        if current() is not None:
            return found
        if len(_tables) >= _MOST_TABLES:
            _tables.pop(next(iter(_tables)))
    _tables[key] = found
    return kept(found)


def _parts(sizes):
    """(which tensor, the first element) of each block."""
    counts = [-(-size // _CHUNK) for size in sizes]
    owners = np.repeat(np.arange(len(sizes)), counts)
    starts = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([owners, starts * _CHUNK], 1)


def launch(program, rows, numbers, steps=()):
    """One launch for tensors of one type on one device; `rows` hold parameter, gradient and state of each.

    `steps`: their counts, which are counted up before.
    """
    pointers = []
    for row in rows:
        line = [0 if a is None else a.data.ptr for a in row]
        line += _NONE[len(row) :]
        line.append(row[0].size)
        pointers.append(line)
    for line, step in zip(pointers, steps):
        line[5] = step.data.ptr
    parts = _parts([row[0].size for row in rows])
    if len(parts):
        tables = _table(np.array(pointers, np.int64)), _table(parts)
        if steps:
            _COUNT.over(rows[0][0].dtype, len(rows), (tables[0], len(rows), _unless.found), CHUNK=_CHUNK)
        program.launch(rows[0][0].dtype, len(parts), _THREADS, (*tables, *numbers), CHUNK=_CHUNK)


def _check(params, arrays, name):
    """There is one array for each parameter, of its size; to ask CuPy for shapes takes longer."""
    if len(arrays) != len(params):
        raise ValueError(f"{len(params)} parameters, but {len(arrays)} {name}")
    for param, array in zip(params, arrays):
        if array is not None and array.size != param.size:
            raise ValueError(f"{name}: shape {array.shape} for a parameter of {param.shape}")


def fits(param, grad, state):
    """Can a launch change them: have they one type, and elements in one order?"""
    dtype = param.dtype
    is_known = _is_float.get(dtype)
    if is_known is None:
        is_known = _is_float[dtype] = dtype.name in FLOATS
    if not is_known or grad.dtype != dtype or not param.flags.c_contiguous:
        return False
    for a in state:
        if a is not None and (a.dtype != dtype or not a.flags.c_contiguous):
            return False
    return True


def formula_step(name, rows):
    """One step of an optimizer of `_FORMULAS`. `rows`: a parameter, its gradient, its state, and its numbers each."""
    groups = defaultdict(list)
    for param, grad, state, numbers in rows:
        groups[param.device.id, param.dtype, numbers].append((param, grad, state))
    for (device, _, numbers), found in groups.items():
        with on_device(device):
            tensors = [(param, dense(grad), *state) for param, grad, state in found]
            numbers = (*map(float, numbers), *[0.0] * (3 + _NUMBERS - len(numbers)))
            launch(_FORMULAS[name], tensors, (*numbers, _unless.found))


def _in_groups(rows, settings):
    """Rows by device, type and settings: those for one launch, and those to be changed one by one."""
    together, alone = defaultdict(list), []
    keys: dict = {}  # by the identity of settings, which many rows share
    for (param, grad, *state), own in zip(rows, settings):
        if fits(param, grad, state):
            key = keys.get(id(own))
            if key is None:
                key = keys[id(own)] = tuple(own.items())
            grad = grad if grad.flags.c_contiguous else dense(grad)
            together[param.device.id, param.dtype, key].append((param, grad, *state))
        else:
            alone.append((param, grad, *state, own))
    return together, alone


def sgd_step(
    params,
    grads,
    momentum_buffers,
    lr,
    momentum=0,
    dampening=0,
    weight_decay=0,
    nesterov=False,
    maximize=False,
):
    """One step of stochastic gradient descent on each parameter."""
    _check(params, grads, "gradients")
    settings = []
    if momentum:
        _check(params, momentum_buffers, "momentum buffers")
    for i, param in enumerate(params):
        taken = 1 - dampening
        if momentum and momentum_buffers[i] is None:
            with on_device(param.device.id):
                momentum_buffers[i] = cupy().zeros_like(param)
            taken = 1
        sign = -1 if maximize else 1
        names = "lr", "momentum", "taken", "weight_decay", "sign", "nesterov"
        settings.append(dict(zip(names, (lr, momentum, taken, weight_decay, sign, nesterov))))
    buffers = momentum_buffers if momentum else [None] * len(params)
    together, alone = _in_groups(zip(params, grads, buffers), settings)
    for (device, _, own), rows in together.items():
        *numbers, is_nesterov = (value for _, value in own)
        with on_device(device):
            launch(_SGD, rows, (*map(float, numbers), int(is_nesterov), _unless.found))
    for row in alone:
        with on_device(row[0].device.id):
            _alone(by_numpy.sgd, row)


def adam_step(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    steps,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay=0,
    amsgrad=False,
    maximize=False,
    decoupled=False,
):
    """One step of Adam on each parameter.

    `steps` are numbers, or the counts before this step as arrays on the GPU; then `lr` may be one, too.
    """
    largest = max_exp_avg_sqs if amsgrad else [None] * len(params)
    for arrays, name in (
        (grads, "gradients"),
        (exp_avgs, "averages"),
        (exp_avg_sqs, "averages of squares"),
        (largest, "largest averages of squares"),
    ):
        _check(params, arrays, name)
    if is_array(steps[0]):
        settings = beta1, beta2, lr, eps, weight_decay, decoupled, maximize
        _counted_adam(params, grads, exp_avgs, exp_avg_sqs, largest, steps, *settings)
        return
    shared = {
        "gain1": 1 - beta1,
        "beta2": beta2,
        "gain2": 1 - beta2,
        "eps": eps,
        "weight_decay": 0 if decoupled else weight_decay,
        "shrink": 1 - lr * weight_decay if decoupled else 1,
        "sign": -1 if maximize else 1,
    }
    of_step = {
        t: {**shared, "step_size": lr / (1 - beta1**t), "root_of_correction": math.sqrt(1 - beta2**t)}
        for t in set(steps)
    }
    together, alone = _in_groups(zip(params, grads, exp_avgs, exp_avg_sqs, largest), [of_step[t] for t in steps])
    for (device, _, own), rows in together.items():
        with on_device(device):
            launch(_ADAM, rows, (*(float(value) for _, value in own), _unless.found))
    for row in alone:
        with on_device(row[0].device.id):
            _alone(by_numpy.adam, row)


def _counted_adam(
    params, grads, means, squares, largest, steps, beta1, beta2, lr, eps, weight_decay, decoupled, maximize
):
    """Adam without a number that depends on the step, so that a graph can repeat it."""
    decay, decays = (0.0, weight_decay) if decoupled else (weight_decay, 0.0)
    sign = -1.0 if maximize else 1.0
    # what goes by one launch is told apart by its number
    numbered = [{"number": i} for i in range(len(steps))]
    together, alone = _in_groups(zip(params, grads, means, squares, largest), numbered)
    groups = defaultdict(list)
    for (device, dtype, own), rows in together.items():
        groups[device, dtype].append((rows[0], steps[own[0][1]]))
    for (device, _), found in groups.items():
        with on_device(device):
            rate = cupy().asarray(lr).astype(np.float64) if is_array(lr) else None
            given = (float(lr), 0) if rate is None else (0.0, rate.data.ptr)
            rows, counts = zip(*found)
            numbers = float(beta1), float(beta2), *given, float(eps), float(decay), float(decays), sign
            launch(_COUNTED_ADAM, rows, (*numbers, _unless.found), counts)
    for *row, own in alone:
        step = steps[own["number"]]
        with on_device(row[0].device.id):
            step += 1 if _unless.found is None else _unless.found == 0
            t, rate = step.astype(np.float64), cupy().asarray(lr) if is_array(lr) else lr
            settings = {
                "gain1": 1 - beta1, "beta2": beta2, "gain2": 1 - beta2, "eps": eps, "weight_decay": decay, "sign": sign,
                "shrink": 1 - rate * decays, "step_size": rate / (1 - beta1**t),
                "root_of_correction": cupy().sqrt(1 - beta2**t),
            }  # fmt: skip
            _alone(by_numpy.adam, row, settings)
