"""Optimizer steps: update parameters and their state in place, in one pass and without temporaries.

The loops (`optimizer_steps.h`) handle float32 or float64 arrays of equal memory layout; others use the same formula in
NumPy. Threads
share the concatenation of all parameters, so that many small parameters are processed like one large one.
"""

import numpy as np

cimport numpy as cnp
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.math cimport pow, sqrt
from libc.stdint cimport uintptr_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from cygrad._kernels.cpu.base.arrays cimport PURE, is_on_cpu, is_plain, same_shape
from cygrad._kernels.platform.thread_pool cimport LIGHT, RELEASE_ABOVE, Elements, elements_t, enter, share
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.tape.tape cimport READS, WRITES, Word, note, refuse, tape_open, word

cnp.import_array()

cdef extern from "platform/target_clones.h":    # for optimizer_steps.h
    pass

cdef extern from "elementwise/optimizer_steps.h" nogil:
    ctypedef struct sgd_settings:
        double lr
        double momentum
        double taken
        double weight_decay
        double sign
        int nesterov

    ctypedef struct adam_settings:
        double gain1
        double beta2
        double gain2
        double eps
        double weight_decay
        double shrink
        double sign
        double step_size
        double root_of_correction

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


cdef inline bint _lies_like(cnp.ndarray array, cnp.ndarray param) noexcept:
    """Whether both are dense, with their elements in the same order. True for None (no array)."""
    if array is None:
        return True
    return (is_plain(array) and cnp.PyArray_TYPE(array) == cnp.PyArray_TYPE(param)
            and (cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_IS_C_CONTIGUOUS(param)
                 or cnp.PyArray_IS_F_CONTIGUOUS(array) and cnp.PyArray_IS_F_CONTIGUOUS(param)))


cdef inline bint _has_kernel(cnp.ndarray param) noexcept:
    cdef int t = cnp.PyArray_TYPE(param)
    return (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE) and not PURE and _lies_like(param, param)


# ---------------------------------------------------------------------------------------- rows


cdef union Settings:
    sgd_settings sgd
    adam_settings adam


cdef struct Task:                   # the step of one parameter
    Elements elements
    elements_t loop
    Py_ssize_t n
    Py_ssize_t end                  # elements of the concatenation up to the end of this parameter
    Settings settings


cdef struct Row:
    Task* tasks
    Py_ssize_t count


cdef struct Span:
    uintptr_t first, last


cdef Task* _room(Py_ssize_t count) except NULL:
    cdef Task* tasks = <Task*>PyMem_RawMalloc((count + 1) * sizeof(Task))
    if tasks == NULL:
        raise MemoryError
    return tasks


cdef Task* _next_task(Row* row, cnp.ndarray param, elements_t f32, elements_t f64) noexcept:
    cdef Task* task = &row.tasks[row.count]
    task.loop = f64 if cnp.PyArray_TYPE(param) == cnp.NPY_DOUBLE else f32
    task.n = cnp.PyArray_SIZE(param)
    task.end = task.n + (row.tasks[row.count - 1].end if row.count else 0)
    task.elements.count = 0
    row.count += 1
    return task


cdef void _part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Row* row = <Row*>context
    cdef Py_ssize_t low = 0, high = row.count, middle, begin, now
    cdef Task* task
    cdef char* data[5]
    cdef int k
    while low < high:
        middle = (low + high) // 2
        if row.tasks[middle].end > first:
            high = middle
        else:
            low = middle + 1
    task = &row.tasks[low]
    while n > 0:
        begin = first - (task.end - task.n)
        now = min(n, task.n - begin)
        for k in range(task.elements.count):
            data[k] = task.elements.data[k] + begin * task.elements.steps[k]
        task.loop(data, now, &task.settings)
        first += now
        n -= now
        task += 1


cdef int _by_place(const void* a, const void* b) noexcept nogil:
    cdef uintptr_t x = (<const Span*>a).first, y = (<const Span*>b).first
    return (x > y) - (x < y)


cdef bint _are_apart(Row* row) noexcept nogil:
    """Whether no two parameters share memory. Also False if the check cannot allocate its workspace."""
    cdef Span* spans = <Span*>PyMem_RawMalloc(row.count * sizeof(Span))
    cdef Py_ssize_t i
    cdef bint apart = spans != NULL
    if apart:
        for i in range(row.count):
            spans[i].first = <uintptr_t>row.tasks[i].elements.data[0]
            spans[i].last = spans[i].first + row.tasks[i].n * row.tasks[i].elements.steps[0]
        qsort(spans, row.count, sizeof(Span), _by_place)
        for i in range(1, row.count):
            apart &= spans[i - 1].last <= spans[i].first
        PyMem_RawFree(spans)
    return apart


cdef void _run(Row* row) noexcept:
    """Run all steps. For many elements, release the GIL, and use threads if the order of the steps does not matter."""
    cdef Py_ssize_t n = row.tasks[row.count - 1].end if row.count else 0
    if n <= RELEASE_ABOVE:
        _part(row, 0, n)
        return
    with nogil:
        if _are_apart(row):
            share(_part, row, n, LIGHT)
        else:
            _part(row, 0, n)


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


cdef struct StepCall:               # the step of one parameter
    Task task
    char* step                      # where the number of the step stands, for Adam
    double lr
    double beta1
    double beta2


cdef void _replay_step(void* context) noexcept nogil:
    cdef StepCall* call = <StepCall*>context
    cdef Row row
    cdef double step
    if call.step != NULL:
        step = (<float*>call.step)[0]
        call.task.settings.adam.step_size = call.lr / (1 - pow(call.beta1, step))
        call.task.settings.adam.root_of_correction = sqrt(1 - pow(call.beta2, step))
    row.tasks = &call.task
    row.count = 1
    if call.task.n <= RELEASE_ABOVE:
        _part(&row, 0, call.task.n)
    else:
        share(_part, &row, call.task.n, LIGHT)


cdef void _note_step(Task* task, cnp.ndarray step, double lr, double beta1, double beta2) noexcept:
    """Note the step of a parameter: array 1 is the gradient, the others change. `step` holds the number of Adam's step."""
    cdef StepCall call
    cdef Word[6] words
    cdef int k
    cdef Py_ssize_t nbytes = task.n * task.elements.steps[0]
    memset(&call, 0, sizeof(call))
    call.task.elements.count = task.elements.count
    for k in range(task.elements.count):
        call.task.elements.data[k] = task.elements.data[k]
        call.task.elements.steps[k] = task.elements.steps[k]
        words[k] = word(&call, &call.task.elements.data[k], READS if k == 1 else READS | WRITES, 0, nbytes)
    call.task.loop = task.loop
    call.task.n = call.task.end = task.n
    if step is None:
        call.task.settings.sgd = task.settings.sgd
    else:
        call.task.settings.adam = task.settings.adam
        call.task.settings.adam.step_size = call.task.settings.adam.root_of_correction = 0
        call.step = cnp.PyArray_BYTES(step)
        call.lr, call.beta1, call.beta2 = lr, beta1, beta2
    words[task.elements.count] = word(&call, &call.step, READS, 0, sizeof(float))
    note(_replay_step, "update", &call, sizeof(call), words, task.elements.count + 1)
# ---------------------------------------------------------------------------------------- steps


def sgd_step(list params, list grads, list momentum_buffers or None, double lr, double momentum=0, double dampening=0,
             double weight_decay=0, bint nesterov=False, bint maximize=False):
    """One step of stochastic gradient descent on each parameter p with gradient g.

    With d = g + weight_decay * p (with -g for `maximize`): p -= lr * d without momentum. With it,
    b = momentum * b + (1 - dampening) * d, and p -= lr * b, or p -= lr * (d + momentum * b) for `nesterov`. A buffer
    that is None in `momentum_buffers` starts as b = d and is stored there; without momentum the list is ignored.
    Raises ``ValueError`` for arrays of the wrong shape or read-only ones before any is modified.
    """
    cdef Py_ssize_t i
    cdef sgd_settings settings
    cdef cnp.ndarray param, grad, buffer = None
    cdef Row row
    cdef Task* task
    _check(params, params, "parameters", True)
    _check(params, grads, "gradients", False)
    if momentum != 0:
        _check(params, momentum_buffers, "momentum buffers", True)
    settings.lr = lr
    settings.weight_decay = weight_decay
    settings.nesterov = nesterov
    settings.sign = -1 if maximize else 1
    row.count = 0
    row.tasks = _room(len(params))
    try:
        for i in range(len(params)):
            param, grad = params[i], grads[i]
            settings.momentum = momentum
            settings.taken = 1 - dampening
            if momentum != 0:
                buffer = momentum_buffers[i]
                if buffer is None:
                    buffer = momentum_buffers[i] = np.zeros_like(param, subok=False)
                    settings.taken = 1
            if _has_kernel(param) and _lies_like(grad, param) and _lies_like(buffer, param):
                task = _next_task(&row, param, _sgd_f32, _sgd_f64)
                task.settings.sgd = settings
                enter(&task.elements, param)
                enter(&task.elements, grad)
                enter(&task.elements, buffer)
                if tape_open:
                    _note_step(task, None, 0, 0, 0)
            else:
                refuse("runs in NumPy", "SGD.step")
                numpy_fallback.sgd(param, grad, buffer, settings)
        _run(&row)
    finally:
        PyMem_RawFree(row.tasks)


cdef void _sgd_f32(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    sgd(False, <void*>data[0], <void*>data[1], <void*>data[2], n, <const sgd_settings*>settings)


cdef void _sgd_f64(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    sgd(True, <void*>data[0], <void*>data[1], <void*>data[2], n, <const sgd_settings*>settings)


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
    cdef adam_settings settings
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
    settings.gain1 = 1 - beta1
    settings.beta2 = beta2
    settings.gain2 = 1 - beta2
    settings.eps = eps
    settings.weight_decay = 0 if decoupled else weight_decay
    settings.shrink = 1 - lr * weight_decay if decoupled else 1
    settings.sign = -1 if maximize else 1
    row.count = 0
    row.tasks = _room(len(params))
    try:
        for i in range(len(params)):
            param, grad, mean, square, step = params[i], grads[i], exp_avgs[i], exp_avg_sqs[i], steps[i]
            if amsgrad:
                largest = max_exp_avg_sqs[i]
            if i == 0 or step != last:
                settings.step_size = lr / (1 - pow(beta1, step))
                settings.root_of_correction = sqrt(1 - pow(beta2, step))
                last = step
            if (_has_kernel(param) and _lies_like(grad, param) and _lies_like(mean, param)
                    and _lies_like(square, param) and _lies_like(largest, param)):
                task = _next_task(&row, param, _adam_f32, _adam_f64)
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
                        _note_step(task, _counted[0][i], lr, beta1, beta2)
            else:
                refuse("runs in NumPy", "Adam.step")
                numpy_fallback.adam(param, grad, mean, square, largest, settings)
        _run(&row)
    finally:
        PyMem_RawFree(row.tasks)


cdef void _adam_f32(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    adam(False, <void*>data[0], <void*>data[1], <void*>data[2], <void*>data[3], <void*>data[4], n,
         <const adam_settings*>settings)


cdef void _adam_f64(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    adam(True, <void*>data[0], <void*>data[1], <void*>data[2], <void*>data[3], <void*>data[4], n,
         <const adam_settings*>settings)
