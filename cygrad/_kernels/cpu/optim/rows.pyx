"""The steps of many parameters as one loop, and noting them on the tape.

Threads share the concatenation of all parameters, so that many small parameters are processed like one large one. On the
tape each parameter has a loop of its own. What all of its elements share (`Settings`) is made anew in each run from the
numbers of its group, which may change between runs, and from the count of its steps.
"""

cimport numpy as cnp
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uintptr_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from cygrad._kernels.cpu.base.arrays cimport PURE, is_plain
from cygrad._kernels.platform.thread_pool cimport LIGHT, RELEASE_ABOVE, share
from cygrad._kernels.tape.tape cimport READS, WRITES, Word, note, tape_open, word

cnp.import_array()

cdef extern from "platform/target_clones.h":    # for the loops' headers
    pass


# ------------------------------------------------------------------------------------------------- arrays


cdef bint lies_like(cnp.ndarray array, cnp.ndarray param) noexcept:
    """Whether both are dense, with their elements in the same order. True for None (no array)."""
    if array is None:
        return True
    return (is_plain(array) and cnp.PyArray_TYPE(array) == cnp.PyArray_TYPE(param)
            and (cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_IS_C_CONTIGUOUS(param)
                 or cnp.PyArray_IS_F_CONTIGUOUS(array) and cnp.PyArray_IS_F_CONTIGUOUS(param)))


cdef bint has_kernel(cnp.ndarray param) noexcept:
    cdef int t = cnp.PyArray_TYPE(param)
    return (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE) and not PURE and lies_like(param, param)


cdef Scalar scalar_of(cnp.ndarray array) noexcept:
    """Where the element of a 0-dim array of float32 or float64 stands; NULL for other arrays."""
    cdef Scalar found
    cdef int t = cnp.PyArray_TYPE(array)
    found.at = NULL
    found.is_double = t == cnp.NPY_DOUBLE
    if is_plain(array) and cnp.PyArray_NDIM(array) == 0 and (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE):
        found.at = cnp.PyArray_BYTES(array)
    return found


cdef double read_scalar(Scalar s) noexcept nogil:
    return (<double*>s.at)[0] if s.is_double else (<float*>s.at)[0]


cdef void write_scalar(Scalar s, double value) noexcept nogil:
    if s.is_double:
        (<double*>s.at)[0] = value
    else:
        (<float*>s.at)[0] = <float>value


# ------------------------------------------------------------------------------------------------- rows


cdef struct Span:
    uintptr_t first, last


cdef Row new_row(Py_ssize_t count) except *:
    """A row with room for the steps of `count` parameters."""
    cdef Row row
    row.count = 0
    row.tasks = <Task*>PyMem_RawMalloc((count + 1) * sizeof(Task))
    if row.tasks == NULL:
        raise MemoryError
    return row


cdef void free_row(Row* row) noexcept:
    PyMem_RawFree(row.tasks)


cdef Task* next_task(Row* row, cnp.ndarray param, elements_t f32, elements_t f64) noexcept:
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


cdef void run_row(Row* row) noexcept:
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


# --------------------------------------------------------------- for the tape (Note [The tape] in tape.pyx)

cdef object _announced = None


cdef int announce(object numbers) except -1:
    global _announced
    _announced = numbers
    return 0


cdef object take_announced():
    global _announced
    found = _announced
    _announced = None
    return found


cdef struct StepCall:               # the step of one parameter
    Task task
    Rule rule
    const double* numbers
    double[NUMBERS] own             # where they stand if nobody changes them


cdef void _replay_step(void* context) noexcept nogil:
    cdef StepCall* call = <StepCall*>context
    cdef Row row
    call.rule.settle(&call.rule, call.numbers, &call.task.settings)
    row.tasks = &call.task
    row.count = 1
    if call.task.n <= RELEASE_ABOVE:
        _part(&row, 0, call.task.n)
    else:
        share(_part, &row, call.task.n, LIGHT)


cdef void note_step(Task* task, const Rule* rule, const double* numbers, object announced, bint changes) noexcept:
    cdef StepCall call
    cdef Word[5 + SCALARS + 1] words
    cdef int k, count = task.elements.count
    cdef Py_ssize_t nbytes = task.n * task.elements.steps[0]
    if not tape_open:
        return
    memset(&call, 0, sizeof(call))
    call.task.elements.count = count
    for k in range(count):
        call.task.elements.data[k] = task.elements.data[k]
        call.task.elements.steps[k] = task.elements.steps[k]
        words[k] = word(&call, &call.task.elements.data[k], READS if k == 1 else READS | WRITES, 0, nbytes)
    call.task.loop = task.loop
    call.task.n = call.task.end = task.n
    call.rule.kind, call.rule.is_first, call.rule.nesterov = rule.kind, rule.is_first, rule.nesterov
    call.rule.decoupled, call.rule.sign, call.rule.settle = rule.decoupled, rule.sign, rule.settle
    for k in range(SCALARS):
        call.rule.scalars[k].at = rule.scalars[k].at
        call.rule.scalars[k].is_double = rule.scalars[k].is_double
        words[count + k] = word(&call, &call.rule.scalars[k].at, READS | WRITES if changes else READS, 0,
                                sizeof(double) if rule.scalars[k].is_double else sizeof(float))
    memcpy(call.own, numbers, sizeof(call.own))
    call.numbers = &call.own[0]
    if announced is not None:
        call.numbers = <double*>cnp.PyArray_DATA(<cnp.ndarray>announced)
    words[count + SCALARS] = word(&call, &call.numbers, 0, 0, 0)
    note(_replay_step, "update", &call, sizeof(call), words, count + SCALARS + (announced is None))
