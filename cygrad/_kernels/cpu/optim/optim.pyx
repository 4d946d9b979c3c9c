"""Optimizer steps: update parameters and their state in place, in one pass and without temporaries.

The loops (`optimizer_steps.h`) handle float32 or float64 arrays of equal memory layout; others use the same formula in
NumPy.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport pow, sqrt
from libc.string cimport memset

from cygrad._kernels.cpu.base.arrays cimport is_on_cpu, is_plain, same_shape
from cygrad._kernels.cpu.optim.rows cimport (
    NUMBERS, Row, Rule, Settings, Task, adam_settings, free_row, has_kernel, lies_like, new_row, next_task, note_step,
    read_scalar, run_row, scalar_of, sgd_settings, take_announced)
from cygrad._kernels.platform.thread_pool cimport enter
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.tape.tape cimport READS, WRITES, Word, note, refuse, tape_open, word

cnp.import_array()

cdef extern from "platform/target_clones.h":    # for optimizer_steps.h
    pass

cdef extern from "elementwise/optimizer_steps.h" nogil:
    # float if `is_double` is 0, else double
    void sgd(bint is_double, void* p, const void* g, void* buffer, Py_ssize_t n, const sgd_settings* s) noexcept
    void adam(bint is_double, void* p, const void* g, void* m, void* v, void* largest, Py_ssize_t n,
              const adam_settings* s) noexcept


# ---------------------------------------------------------------------------------------- arrays


cdef int _check(list params, list arrays, str name, bint changes) except -1:
    """Check that there is one array per parameter, with its shape, and writable if the step modifies it."""
    cdef Py_ssize_t i
    cdef cnp.ndarray param, array
    if len(arrays) != len(params):
        raise ValueError(f"{len(params)} parameters, but {len(arrays)} {name}")
    for i in range(len(params)):
        if arrays[i] is None and name == "momentum buffers":
            continue
        param, array = params[i], arrays[i]
        if param is None or array is None:
            raise TypeError(f"{name}: None is not an array")
        if not same_shape(param, array):
            raise ValueError(f"{name}: shape {(<object>array).shape} for a parameter of {(<object>param).shape}")
        if changes and not cnp.PyArray_ISWRITEABLE(array):
            raise ValueError(f"{name}: an array is read-only")
    return 0


def count_steps(list arrays):
    """Increment each of these 0-dim arrays, and return their new values."""
    cdef cnp.ndarray array
    cdef list counts = []
    global _counted
    for array in arrays:
        if array is None:
            raise TypeError("steps: None is not an array")
        if is_plain(array) and cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT and array.ndim == 0:
            if tape_open:
                _note_count(array)
            (<float*>cnp.PyArray_DATA(array))[0] += 1
            counts.append((<float*>cnp.PyArray_DATA(array))[0])
        else:
            refuse("counts steps in NumPy")
            counts.append(array.item() + 1)
            array.fill(counts[len(counts) - 1])
    if tape_open:
        _counted = arrays, counts
    return counts


def any_complex(list arrays not None):
    """Whether one of these arrays, of any kind, has complex elements."""
    for array in arrays:
        if is_on_cpu(array):
            if cnp.PyTypeNum_ISCOMPLEX(cnp.PyArray_TYPE(<cnp.ndarray>array)):
                return True
        elif array is None:
            raise TypeError("arrays: None is not an array")
        elif array.dtype.kind == "c":
            return True
    return False


# -- for the tape (Note [The tape] in tape.pyx)

cdef tuple _counted = None          # arguments and result of the last `count_steps`


cdef void _count(void* context) noexcept nogil:
    (<float**>context)[0][0] += 1


cdef void _note_count(cnp.ndarray array) noexcept:
    cdef float* place = <float*>cnp.PyArray_DATA(array)
    cdef Word w = word(&place, &place, READS | WRITES, 0, sizeof(float))
    note(_count, "step", &place, sizeof(place), &w, 1)


# ---------------------------------------------------------------------------------------- steps


cdef void _settle_sgd(const Rule* rule, const double* numbers, Settings* settings) noexcept nogil:
    cdef sgd_settings* s = &settings.sgd
    s.lr, s.momentum, s.weight_decay = numbers[0], numbers[1], numbers[3]
    s.taken = 1 if rule.is_first else 1 - numbers[2]
    s.nesterov, s.sign = rule.nesterov, rule.sign


def sgd_step(list params, list grads, list momentum_buffers or None, double lr, double momentum=0, double dampening=0,
             double weight_decay=0, bint nesterov=False, bint maximize=False):
    """One step of stochastic gradient descent on each parameter p with gradient g.

    With d = g + weight_decay * p (with -g for `maximize`): p -= lr * d without momentum. With it,
    b = momentum * b + (1 - dampening) * d, and p -= lr * b, or p -= lr * (d + momentum * b) for `nesterov`. A buffer
    that is None in `momentum_buffers` starts as b = d and is stored there; without momentum the list is ignored.
    Raises ``ValueError`` for arrays of the wrong shape or read-only ones before any is modified.
    """
    cdef Py_ssize_t i
    cdef cnp.ndarray param, grad, buffer = None
    cdef object announced = take_announced()
    cdef double[NUMBERS] numbers
    cdef Settings settings
    cdef Rule rule
    cdef Row row
    cdef Task* task
    _check(params, params, "parameters", True)
    _check(params, grads, "gradients", False)
    if momentum != 0:
        _check(params, momentum_buffers, "momentum buffers", True)
    memset(numbers, 0, sizeof(numbers))
    memset(&rule, 0, sizeof(rule))
    numbers[0], numbers[1], numbers[2], numbers[3] = lr, momentum, dampening, weight_decay
    rule.settle, rule.nesterov, rule.sign = _settle_sgd, nesterov, -1 if maximize else 1
    row = new_row(len(params))
    try:
        for i in range(len(params)):
            param, grad = params[i], grads[i]
            rule.is_first = False
            if momentum != 0:
                buffer = momentum_buffers[i]
                if buffer is None:
                    buffer = momentum_buffers[i] = np.zeros_like(param, subok=False)
                    rule.is_first = True
            _settle_sgd(&rule, numbers, &settings)
            if has_kernel(param) and lies_like(grad, param) and lies_like(buffer, param):
                task = next_task(&row, param, _sgd_f32, _sgd_f64)
                task.settings.sgd = settings.sgd
                enter(&task.elements, param)
                enter(&task.elements, grad)
                enter(&task.elements, buffer)
                if tape_open:
                    note_step(task, &rule, numbers, announced, False)
            else:
                refuse("runs in NumPy", "SGD.step")
                numpy_fallback.sgd(param, grad, buffer, settings.sgd)
        run_row(&row)
    finally:
        free_row(&row)


cdef void _sgd_f32(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    sgd(False, <void*>data[0], <void*>data[1], <void*>data[2], n, <const sgd_settings*>settings)


cdef void _sgd_f64(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    sgd(True, <void*>data[0], <void*>data[1], <void*>data[2], n, <const sgd_settings*>settings)


cdef void _begin_adam(const Rule* rule, const double* numbers, adam_settings* s) noexcept nogil:
    """Set what is the same for all parameters."""
    s.gain1 = 1 - numbers[1]
    s.beta2 = numbers[2]
    s.gain2 = 1 - numbers[2]
    s.eps = numbers[3]
    s.weight_decay = 0 if rule.decoupled else numbers[4]
    s.shrink = 1 - numbers[0] * numbers[4] if rule.decoupled else 1
    s.sign = rule.sign


cdef void _correct_adam(const double* numbers, double step, adam_settings* s) noexcept nogil:
    """Set what depends on the number of the step."""
    s.step_size = numbers[0] / (1 - pow(numbers[1], step))
    s.root_of_correction = sqrt(1 - pow(numbers[2], step))


cdef void _settle_adam(const Rule* rule, const double* numbers, Settings* settings) noexcept nogil:
    _begin_adam(rule, numbers, &settings.adam)
    _correct_adam(numbers, read_scalar(rule.scalars[0]), &settings.adam)


def adam_step(list params, list grads, list exp_avgs, list exp_avg_sqs, list max_exp_avg_sqs or None, list steps,
              double lr, double beta1, double beta2, double eps, double weight_decay=0, bint amsgrad=False,
              bint maximize=False, bint decoupled=False):
    """One step of Adam (Kingma and Ba, 2015) on each parameter p with gradient g and running averages m and v.

    With d = g (-g for `maximize`), m = beta1 * m + (1 - beta1) * d, and v = beta2 * v + (1 - beta2) * d * d:
    p -= lr * (m / (1 - beta1**step)) / (sqrt(v / (1 - beta2**step)) + eps). `weight_decay` adds weight_decay * p to d
    or, if `decoupled`, first multiplies p by 1 - lr * weight_decay (AdamW: Loshchilov and Hutter, 2019). `amsgrad`
    (Reddi et al., 2018) uses the largest v so far, stored in `max_exp_avg_sqs`, which is None otherwise. `steps` includes
    this step.
    Raises ``ValueError`` for arrays of the wrong shape or read-only ones before any is modified.
    """
    cdef Py_ssize_t i
    cdef double step, last = 0
    cdef object announced = take_announced()
    cdef double[NUMBERS] numbers
    cdef adam_settings settings
    cdef Rule rule
    cdef Row row
    cdef Task* task
    cdef cnp.ndarray param, grad, mean, square, largest = None
    _check(params, params, "parameters", True)
    _check(params, grads, "gradients", False)
    _check(params, exp_avgs, "averages", True)
    _check(params, exp_avg_sqs, "averages of squares", True)
    if amsgrad:
        _check(params, max_exp_avg_sqs, "largest averages of squares", True)
    if len(steps) != len(params):
        raise ValueError(f"{len(params)} parameters, but {len(steps)} steps")
    memset(numbers, 0, sizeof(numbers))
    memset(&rule, 0, sizeof(rule))
    numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] = lr, beta1, beta2, eps, weight_decay
    rule.settle, rule.decoupled, rule.sign = _settle_adam, decoupled, -1 if maximize else 1
    _begin_adam(&rule, numbers, &settings)
    row = new_row(len(params))
    try:
        for i in range(len(params)):
            param, grad, mean, square, step = params[i], grads[i], exp_avgs[i], exp_avg_sqs[i], steps[i]
            if amsgrad:
                largest = max_exp_avg_sqs[i]
            if i == 0 or step != last:
                _correct_adam(numbers, step, &settings)
                last = step
            if (has_kernel(param) and lies_like(grad, param) and lies_like(mean, param)
                    and lies_like(square, param) and lies_like(largest, param)):
                task = next_task(&row, param, _adam_f32, _adam_f64)
                task.settings.adam = settings
                enter(&task.elements, param)
                enter(&task.elements, grad)
                enter(&task.elements, mean)
                enter(&task.elements, square)
                enter(&task.elements, largest)
                if tape_open:
                    if _counted is None or _counted[1] is not steps:
                        refuse("counts steps elsewhere", "Adam.step")
                    else:
                        rule.scalars[0] = scalar_of(_counted[0][i])
                        note_step(task, &rule, numbers, announced, False)
            else:
                refuse("runs in NumPy", "Adam.step")
                numpy_fallback.adam(param, grad, mean, square, largest, settings)
        run_row(&row)
    finally:
        free_row(&row)


cdef void _adam_f32(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    adam(False, <void*>data[0], <void*>data[1], <void*>data[2], <void*>data[3], <void*>data[4], n,
         <const adam_settings*>settings)


cdef void _adam_f64(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    adam(True, <void*>data[0], <void*>data[1], <void*>data[2], <void*>data[3], <void*>data[4], n,
         <const adam_settings*>settings)
