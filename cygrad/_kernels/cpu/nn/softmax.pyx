"""Fused neural network kernels, forward and backward.

The loops (`softmax.h`) support float32 and float64; float16 goes through float32, other types through NumPy. Each kernel
makes
several passes over chunks that stay in the nearest cache.
"""

import numpy as np

cimport numpy as cnp
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.string cimport memset

from cygrad._kernels.cpu.base.arrays cimport NTYPES, PURE, RELEASE_ABOVE, cast, dense, empty, is_plain, same_shape
from cygrad._kernels.cpu.base.loop_table cimport loop_of, native_call
from cygrad._kernels.platform.thread_pool cimport part_t, share
from cygrad._kernels.cpu.base.reduce cimport sum_middle
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.tape cimport READS, WRITES, Word, note, note_check, refuse, tape_open, word

cnp.import_array()

cdef extern from "platform/target_clones.h":    # for softmax.h
    pass

cdef extern from "nn/softmax.h" nogil:
    # float if `is_double` is 0, else double
    void find_largest(bint is_double, const void* x, Py_ssize_t blocks, Py_ssize_t n, Py_ssize_t inner,
                      void* column) noexcept
    void add_products(bint is_double, const void* x, const void* y, Py_ssize_t blocks, Py_ssize_t n, Py_ssize_t inner,
                      void* column) noexcept
    void invert(bint is_double, void* x, Py_ssize_t n) noexcept
    void exponentials(bint is_double, const void* x, void* out, Py_ssize_t n) noexcept
    void logarithms(bint is_double, void* x, Py_ssize_t n) noexcept
    void subtract(bint is_double, const void* x, const void* y, void* out, Py_ssize_t blocks, Py_ssize_t n,
                  Py_ssize_t inner, const void* column) noexcept
    void multiply(bint is_double, const void* x, const void* y, void* out, Py_ssize_t blocks, Py_ssize_t n,
                  Py_ssize_t inner, const void* column) noexcept
    void exponentials_of_differences(bint is_double, const void* x, const void* y, void* out, Py_ssize_t blocks,
                                     Py_ssize_t n, Py_ssize_t inner, const void* column) noexcept
    void softmax_gradient(bint is_double, const void* g, const void* y, void* out, Py_ssize_t blocks, Py_ssize_t n,
                          Py_ssize_t inner, const void* column) noexcept
    void log_softmax_gradient(bint is_double, const void* g, const void* y, void* out, Py_ssize_t blocks,
                              Py_ssize_t n, Py_ssize_t inner, const void* column) noexcept

cdef extern from "base/loop_numbers.h":
    enum:
        CROSS_ENTROPY
        CROSS_ENTROPY_GRADIENT

cdef enum:
    PIECE = 2048                # elements processed per chunk
    SHARE = 1 << 14             # elements per chunk handed to a thread


# ---------------------------------------------------------------------------------------- helpers


cdef inline bint _has_kernel(int t) noexcept:
    return (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE) and not PURE


cdef inline bint _is_narrow(int t) noexcept:
    """Whether the type is float16 or similar (bfloat16)."""
    return t == cnp.NPY_FLOAT16 or t >= NTYPES


cdef int _check_equal(cnp.ndarray grad, cnp.ndarray out) except -1:
    if not same_shape(grad, out) or cnp.PyArray_TYPE(grad) != cnp.PyArray_TYPE(out):
        raise ValueError(f"a gradient of shape {(<object>grad).shape} and type {grad.dtype} for a result of shape "
                         f"{(<object>out).shape} and type {out.dtype}")
    return 0


cdef int _check_axis(cnp.ndarray a, int axis) except -1:
    if not 0 <= axis < max(cnp.PyArray_NDIM(a), 1):
        raise ValueError(f"axis {axis} of an array with {cnp.PyArray_NDIM(a)} dimensions")
    return 0


# ---------------------------------------------------------------------------------------- softmax


cdef struct Blocks:             # an array viewed as (count, n, inner), processed along n
    bint is_double
    Py_ssize_t itemsize
    Py_ssize_t count
    Py_ssize_t n
    Py_ssize_t inner


cdef void _divide_into_blocks(Blocks* blocks, cnp.ndarray a, int axis) noexcept:
    cdef int i, ndim = cnp.PyArray_NDIM(a)
    blocks.is_double = cnp.PyArray_TYPE(a) == cnp.NPY_DOUBLE
    blocks.itemsize = cnp.PyArray_ITEMSIZE(a)
    blocks.count = blocks.n = blocks.inner = 1
    for i in range(ndim):
        if i < axis:
            blocks.count *= cnp.PyArray_DIM(a, i)
        elif i == axis:
            blocks.n = cnp.PyArray_DIM(a, i)
        else:
            blocks.inner *= cnp.PyArray_DIM(a, i)


cdef enum Pass:
    SOFTMAX
    LOG_SOFTMAX
    SOFTMAX_BACKWARD
    LOG_SOFTMAX_BACKWARD


cdef struct Work:
    Pass what
    Blocks* blocks
    const char* x               # the input or the gradient
    const char* y               # the result of the forward pass, or NULL
    char* out
    bint failed


cdef void _run(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    """Run the pass over a few blocks at a time, so few that they stay in cache. Sets `failed` if memory runs out."""
    cdef Work* work = <Work*>context
    cdef Blocks* b = work.blocks
    cdef Py_ssize_t size = b.n * b.inner, together = min(max(1, PIECE // size), count)
    cdef Py_ssize_t in_column = together * b.inner, in_exps = together * size if work.what == LOG_SOFTMAX else 0
    cdef Py_ssize_t offset = first * size * b.itemsize
    cdef double[2 * PIECE] room
    cdef void* column = room
    if in_column + in_exps > 2 * PIECE:
        column = PyMem_RawMalloc((in_column + in_exps) * b.itemsize)
        if column == NULL:
            work.failed = True
            return
    _run_with(work.what, b, work.x + offset, work.y + offset if work.y != NULL else NULL, work.out + offset, count,
              together, column, <char*>column + in_column * b.itemsize)
    if column != <void*>room:
        PyMem_RawFree(column)


cdef void _run_with(Pass what, Blocks* b, const void* x, const void* y, void* out, Py_ssize_t rest,
                    Py_ssize_t together, void* column, void* exps) noexcept nogil:
    cdef bint f64 = b.is_double
    cdef Py_ssize_t k, n = b.n, inner = b.inner, step = together * n * inner * b.itemsize
    while rest > 0:
        k = min(together, rest)
        if what == SOFTMAX:
            find_largest(f64, x, k, n, inner, column)
            exponentials_of_differences(f64, x, x, out, k, n, inner, column)
            sum_middle(f64, out, k, n, inner, column)
            invert(f64, column, k * inner)
            multiply(f64, out, out, out, k, n, inner, column)
        elif what == LOG_SOFTMAX:
            find_largest(f64, x, k, n, inner, column)
            subtract(f64, x, x, out, k, n, inner, column)
            exponentials(f64, out, exps, k * n * inner)
            sum_middle(f64, exps, k, n, inner, column)
            logarithms(f64, column, k * inner)
            subtract(f64, out, out, out, k, n, inner, column)
        elif what == SOFTMAX_BACKWARD:
            add_products(f64, x, y, k, n, inner, column)
            softmax_gradient(f64, x, y, out, k, n, inner, column)
        else:
            sum_middle(f64, x, k, n, inner, column)
            log_softmax_gradient(f64, x, y, out, k, n, inner, column)
        x = <const char*>x + step
        out = <char*>out + step
        if y != NULL:
            y = <const char*>y + step
        rest -= k


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct AlongCall:          # the end of a call of `_along`
    Blocks blocks
    Work work


cdef void _replay_along(void* context) noexcept nogil:
    cdef AlongCall* call = <AlongCall*>context
    cdef Blocks* b = &call.blocks
    if b.count * b.n * b.inner > RELEASE_ABOVE:
        share(_run, &call.work, b.count, max(1, SHARE // (b.n * b.inner)))
    else:
        _run(&call.work, 0, b.count)


cdef void _note_along(Blocks* b, Work* work, Py_ssize_t nbytes) noexcept:
    cdef AlongCall call
    cdef Word[4] words
    cdef Py_ssize_t size = b.n * b.inner, together = max(1, PIECE // size)
    if together * b.inner + together * size > 2 * PIECE:
        refuse("may run out of memory")
        return
    memset(&call, 0, sizeof(call))
    call.blocks = b[0]
    call.work = work[0]
    call.work.blocks = &call.blocks
    words[0] = word(&call, &call.work.blocks, 0, 0, 1)
    words[1] = word(&call, &call.work.x, READS, 0, nbytes)
    words[2] = word(&call, &call.work.y, READS, 0, nbytes)
    words[3] = word(&call, &call.work.out, WRITES, 0, nbytes)
    note(_replay_along, "rows", &call, sizeof(call), words, 4)


cdef cnp.ndarray _along(Pass what, cnp.ndarray a, cnp.ndarray result, int axis, bint spends):
    """Run a pass on dense float32 or float64 arrays; `result` is None in forward passes. `spends` allows overwriting `a`."""
    cdef Blocks blocks
    cdef Work work
    cdef cnp.ndarray out
    a = dense(a)
    _divide_into_blocks(&blocks, a, axis)
    out = a if spends else empty(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(a))
    if cnp.PyArray_SIZE(a) == 0:
        return out
    work.what = what
    work.blocks = &blocks
    work.x = cnp.PyArray_BYTES(a)
    work.y = NULL
    work.out = cnp.PyArray_BYTES(out)
    work.failed = False
    if result is not None:
        result = dense(result)
        work.y = cnp.PyArray_BYTES(result)
    if tape_open:
        _note_along(&blocks, &work, cnp.PyArray_NBYTES(a))
    if cnp.PyArray_SIZE(a) > RELEASE_ABOVE:
        with nogil:
            share(_run, &work, blocks.count, max(1, SHARE // (blocks.n * blocks.inner)))
    else:
        _run(&work, 0, blocks.count)
    if work.failed:
        raise MemoryError
    return out


cpdef cnp.ndarray softmax(cnp.ndarray a, int axis, bint spends=False):
    """exp(a) / sum(exp(a)) along `axis`, without overflow. With `spends` the result may overwrite `a`."""
    cdef int t = cnp.PyArray_TYPE(a)
    _check_axis(a, axis)
    if _has_kernel(t):
        return _along(SOFTMAX, a, None, axis, spends)
    if _is_narrow(t):
        return cast(softmax(cast(a, cnp.NPY_FLOAT), axis), t)
    refuse("runs in NumPy", "softmax")
    return numpy_fallback.softmax(dense(a), axis)


cpdef cnp.ndarray log_softmax(cnp.ndarray a, int axis, bint spends=False):
    """a - log(sum(exp(a))) along `axis`, without overflow. With `spends` the result may overwrite `a`."""
    cdef int t = cnp.PyArray_TYPE(a)
    _check_axis(a, axis)
    if _has_kernel(t):
        return _along(LOG_SOFTMAX, a, None, axis, spends)
    if _is_narrow(t):
        return cast(log_softmax(cast(a, cnp.NPY_FLOAT), axis), t)
    refuse("runs in NumPy", "log_softmax")
    return numpy_fallback.log_softmax(dense(a), axis)


cpdef cnp.ndarray softmax_backward(cnp.ndarray grad, cnp.ndarray out, int axis, bint spends=False):
    """(grad - sum(grad * out)) * out along `axis`, where `out` is the softmax."""
    cdef int t = cnp.PyArray_TYPE(out)
    _check_axis(out, axis)
    _check_equal(grad, out)
    if _has_kernel(t):
        return _along(SOFTMAX_BACKWARD, grad, out, axis, spends)
    if _is_narrow(t):
        return cast(softmax_backward(cast(grad, cnp.NPY_FLOAT), cast(out, cnp.NPY_FLOAT), axis), t)
    refuse("runs in NumPy", "softmax_backward")
    return numpy_fallback.softmax_backward(grad, out, axis)


cpdef cnp.ndarray log_softmax_backward(cnp.ndarray grad, cnp.ndarray out, int axis, bint spends=False):
    """grad - exp(out) * sum(grad) along `axis`, where `out` is the log-softmax."""
    cdef int t = cnp.PyArray_TYPE(out)
    _check_axis(out, axis)
    _check_equal(grad, out)
    if _has_kernel(t):
        return _along(LOG_SOFTMAX_BACKWARD, grad, out, axis, spends)
    if _is_narrow(t):
        return cast(log_softmax_backward(cast(grad, cnp.NPY_FLOAT), cast(out, cnp.NPY_FLOAT), axis), t)
    refuse("runs in NumPy", "log_softmax_backward")
    return numpy_fallback.log_softmax_backward(grad, out, axis)


# ---------------------------------------------------------------------------------------- negative log-likelihood


ctypedef fused real:
    float
    double

cdef enum Reduction:
    NONE
    MEAN
    SUM

cdef extern from "base/loop_call.h" nogil:
    cnp.npy_uint64 INDEX(const cnp.npy_int64* place) noexcept

cdef struct Targets:            # target classes, already checked, and class weights
    cnp.npy_int64* classes
    Py_ssize_t n
    Py_ssize_t count            # number of classes
    bint changed                # whether a class is out of bounds in spite of the check: another thread changed it
    void* weight                # NULL: all 1
    long long ignored


cdef cnp.ndarray _class_weights(cnp.ndarray weight, int t, Py_ssize_t classes):
    if weight is None:
        return None
    if cnp.PyArray_NDIM(weight) != 1 or cnp.PyArray_DIM(weight, 0) != classes:
        raise ValueError(f"{classes} classes, but weights of shape {(<object>weight).shape}")
    return dense(cast(weight, t))


cdef struct TargetCheck:
    cnp.npy_int64* classes
    Py_ssize_t n
    Py_ssize_t count
    long long ignored


cdef bint _replay_target_check(void* context) noexcept nogil:
    cdef TargetCheck* check = <TargetCheck*>context
    cdef Py_ssize_t i
    for i in range(check.n):
        if check.classes[i] != check.ignored and not 0 <= check.classes[i] < check.count:
            return False
    return True


cdef void _note_targets(cnp.npy_int64* classes, Py_ssize_t n, Py_ssize_t count, long long ignored) noexcept:
    cdef TargetCheck check = TargetCheck(classes, n, count, ignored)
    cdef Word w = word(&check, &check.classes, READS, 0, n * sizeof(cnp.npy_int64))
    note_check(_replay_target_check, "a target is not a class", &check, sizeof(check), &w)


cdef int _check_targets(cnp.ndarray logp, cnp.ndarray target, long long ignored) except -1:
    """Check shapes and class indices. `target` must be dense int64."""
    cdef Py_ssize_t i, classes
    cdef cnp.npy_int64* each = <cnp.npy_int64*>cnp.PyArray_DATA(target)
    if tape_open:
        _note_targets(each, cnp.PyArray_SIZE(target), cnp.PyArray_DIM(logp, 1) if cnp.PyArray_NDIM(logp) == 2 else 0,
                      ignored)
    if (cnp.PyArray_NDIM(logp) != 2 or cnp.PyArray_NDIM(target) != 1
            or cnp.PyArray_DIM(logp, 0) != cnp.PyArray_DIM(target, 0)):
        raise ValueError(f"nll takes (N, C) and (N,), not {(<object>logp).shape} and {(<object>target).shape}")
    classes = cnp.PyArray_DIM(logp, 1)
    for i in range(cnp.PyArray_DIM(target, 0)):
        if each[i] != ignored and not 0 <= each[i] < classes:
            raise IndexError(f"Target {each[i]} is out of bounds.\n  the input has scores for {classes} classes, "
                             f"so that targets are 0 to {classes - 1}")
    return 0


cdef Targets _targets(cnp.ndarray target, Py_ssize_t count, cnp.ndarray weight, long long ignored) noexcept:
    cdef Targets targets
    targets.classes = <cnp.npy_int64*>cnp.PyArray_DATA(target)
    targets.n = cnp.PyArray_DIM(target, 0)
    targets.weight = NULL if weight is None else cnp.PyArray_DATA(weight)
    targets.ignored = ignored
    targets.count = count
    targets.changed = False
    return targets


cdef inline Py_ssize_t _class_of(Targets* targets, Py_ssize_t i) noexcept nogil:
    """The class of a row, read once; -1 if it does not count."""
    cdef cnp.npy_uint64 at = INDEX(targets.classes + i)
    if <long long>at == targets.ignored:
        return -1
    if at < <cnp.npy_uint64>targets.count:
        return <Py_ssize_t>at
    targets.changed = True
    return -1


cdef int _check_unchanged(Targets* targets) except -1:
    if targets.changed:
        raise IndexError("Target is out of bounds.\n  it was changed while it was used, perhaps by another thread")
    return 0


cdef struct Logarithms:         # log-probabilities: strides from row to row, and from class to class
    const char* row
    cnp.npy_intp down
    cnp.npy_intp across


cdef void _nll(Targets* targets, Logarithms logs, real* losses, double* loss, double* total) noexcept nogil:
    """`losses` receives the loss of each row; may be NULL."""
    cdef Py_ssize_t i, at
    cdef real weight, value
    loss[0] = total[0] = 0
    for i in range(targets.n):
        value = 0
        at = _class_of(targets, i)
        if at >= 0:
            weight = (<real*>targets.weight)[at] if targets.weight != NULL else 1
            value = -weight * (<const real*>(logs.row + at * logs.across))[0]
            total[0] += weight
            loss[0] += value
        if losses != NULL:
            losses[i] = value
        logs.row += logs.down


cpdef tuple nll(cnp.ndarray logp, cnp.ndarray target, object weight, long long ignore_index, int reduction):
    """Negative weighted log-likelihood of the target classes.

    ``logp`` is (N, C), ``target`` (N,) of integers, ``weight`` (C,) or None. ``reduction`` is 0 for the loss of each
    row, 1 for their sum divided by the total weight, 2 for their sum. Rows whose target is ``ignore_index`` are skipped.
    Returns the loss and the total weight, in float32 for half precision, which ends at 65504. Raises ``IndexError`` for a
    target that is not a class.
    """
    cdef int t = cnp.PyArray_TYPE(logp)
    cdef Targets targets
    if t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE:
        logp = cast(logp, cnp.NPY_FLOAT if _is_narrow(t) else cnp.NPY_DOUBLE)
        result = nll(logp, target, weight, ignore_index, reduction)
        return cast(result[0], t), result[1] if _is_narrow(t) else cast(result[1], t)
    target = dense(cast(target, cnp.NPY_INT64))
    _check_targets(logp, target, ignore_index)
    weight = _class_weights(weight, t, cnp.PyArray_DIM(logp, 1))
    if not is_plain(logp):
        logp = dense(logp)
    targets = _targets(target, cnp.PyArray_DIM(logp, 1), weight, ignore_index)
    if tape_open:
        logp = dense(logp)
    return _reduced(&targets, Logarithms(cnp.PyArray_BYTES(logp), cnp.PyArray_STRIDE(logp, 0),
                                         cnp.PyArray_STRIDE(logp, 1)), t, reduction, cnp.PyArray_NBYTES(logp))


cdef tuple _reduced(Targets* targets, Logarithms logs, int t, int reduction, cnp.npy_intp logs_span):
    """Return the loss and the total weight. The log-probabilities lie within `logs_span` bytes from their address on."""
    cdef LossCall call
    cdef cnp.npy_intp n = targets.n
    cdef cnp.ndarray losses = empty(1 if reduction == NONE else 0, &n, t)
    cdef cnp.ndarray total = empty(0, NULL, t)
    memset(&call, 0, sizeof(call))
    call.targets = targets[0]
    call.logs = logs
    call.is_double = t == cnp.NPY_DOUBLE
    call.reduction = reduction
    call.losses = cnp.PyArray_BYTES(losses)
    call.total = cnp.PyArray_BYTES(total)
    if tape_open:
        _note_loss(&call, cnp.PyArray_NBYTES(losses), logs_span)
    _run_loss(&call)
    targets.changed |= call.targets.changed
    _check_unchanged(targets)
    return losses, total


cdef struct LossCall:           # reduces the losses of rows
    Targets targets
    Logarithms logs
    bint is_double
    int reduction
    char* losses                # one for each row, or one
    char* total


cdef void _run_loss(void* context) noexcept nogil:
    cdef LossCall* call = <LossCall*>context
    cdef bint each = call.reduction == NONE
    cdef double loss, total
    if call.is_double:
        _nll[double](&call.targets, call.logs, <double*>call.losses if each else NULL, &loss, &total)
    else:
        _nll[float](&call.targets, call.logs, <float*>call.losses if each else NULL, &loss, &total)
    if not each:
        _store(call.losses, call.is_double, loss / total if call.reduction == MEAN else loss)
    _store(call.total, call.is_double, total)


cdef inline void _store(char* place, bint is_double, double value) noexcept nogil:
    if is_double:
        (<double*>place)[0] = value
    else:
        (<float*>place)[0] = <float>value


cdef void _note_loss(LossCall* call, Py_ssize_t losses, Py_ssize_t logs) noexcept:
    cdef Word[5] words
    cdef Py_ssize_t itemsize = 8 if call.is_double else 4
    words[0] = word(call, &call.targets.classes, READS, 0, call.targets.n * sizeof(cnp.npy_int64))
    words[1] = word(call, &call.targets.weight, READS, 0, call.targets.count * itemsize)
    words[2] = word(call, &call.logs.row, READS, 0, logs)
    words[3] = word(call, &call.losses, WRITES, 0, losses)
    words[4] = word(call, &call.total, WRITES, 0, itemsize)
    note(_run_loss, "loss", call, sizeof(call[0]), words, 5)


cdef void _nll_backward(Targets* targets, real* out, Py_ssize_t classes, const real* grad, Py_ssize_t step,
                        real total) noexcept nogil:
    """`step` is 1 if `grad` has an element per row, 0 if it has one for all rows."""
    cdef Py_ssize_t i, at
    cdef real weight
    memset(out, 0, targets.n * classes * sizeof(real))
    for i in range(targets.n):
        at = _class_of(targets, i)
        if at >= 0:
            weight = (<real*>targets.weight)[at] if targets.weight != NULL else 1
            out[i * classes + at] = -weight * grad[i * step] / total


cdef cnp.ndarray _gradient_of_loss(cnp.ndarray grad, int t, Py_ssize_t rows, bint for_each):
    if cnp.PyArray_SIZE(grad) != (rows if for_each else 1):
        raise ValueError(f"a gradient of shape {(<object>grad).shape} for a loss of {rows} rows")
    return dense(cast(grad, t))


cpdef cnp.ndarray nll_backward(cnp.ndarray grad, cnp.ndarray logp, cnp.ndarray target, object weight,
                               long long ignore_index, int reduction, cnp.ndarray total_weight):
    """Gradient of `nll` with respect to ``logp``, whose values are not used. ``total_weight`` comes from `nll`."""
    cdef int t = cnp.PyArray_TYPE(logp), wide
    cdef Targets targets
    cdef cnp.ndarray out
    cdef Py_ssize_t step = reduction == NONE
    if t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE:
        wide = cnp.NPY_FLOAT if _is_narrow(t) else cnp.NPY_DOUBLE
        return cast(nll_backward(grad, cast(logp, wide), target, weight, ignore_index, reduction, total_weight), t)
    target = dense(cast(target, cnp.NPY_INT64))
    _check_targets(logp, target, ignore_index)
    weight = _class_weights(weight, t, cnp.PyArray_DIM(logp, 1))
    targets = _targets(target, cnp.PyArray_DIM(logp, 1), weight, ignore_index)
    grad = _gradient_of_loss(grad, t, targets.n, step)
    out = empty(2, cnp.PyArray_DIMS(logp), t)
    _gradient(&targets, t, cnp.PyArray_DIM(logp, 1), out, grad, step, _total(total_weight, t, reduction))
    _check_unchanged(&targets)
    return out


# ---------------------------------------------------------------------------------------- cross-entropy


cdef struct RowsCall:           # runs a loop of cross_entropy.h, which documents its data, over the rows of the logits
    native_call call
    part_t part
    Py_ssize_t rows


cdef void _replay_rows(void* context) noexcept nogil:
    cdef RowsCall* r = <RowsCall*>context
    if r.rows > r.call.piece:
        share(r.part, &r.call, r.rows, r.call.piece)
    else:
        r.part(&r.call, 0, r.rows)


cdef void _run_rows(int loop, int t, Targets* targets, void** data) noexcept:
    cdef RowsCall r
    cdef int i
    memset(&r, 0, sizeof(r))
    r.part = loop_of(loop)
    r.rows = targets.n
    for i in range(4):
        r.call.data[i] = <char*>data[i]
    r.call.n[0] = targets.count
    r.call.n[1] = targets.ignored
    r.call.is_double = t == cnp.NPY_DOUBLE
    r.call.itemsize = 8 if r.call.is_double else 4
    r.call.piece = max(1, SHARE // targets.count)
    if tape_open:
        _note_rows(loop, &r)
    if r.rows > r.call.piece:
        with nogil:
            share(r.part, &r.call, r.rows, r.call.piece)
    else:
        r.part(&r.call, 0, r.rows)
    targets.changed |= r.call.failed


cdef void _note_rows(int loop, RowsCall* r) noexcept:
    cdef Word[4] words
    cdef Py_ssize_t column = r.rows * r.call.itemsize, whole = column * r.call.n[0]
    words[0] = word(r, &r.call.data[0], READS, 0, whole)
    words[1] = word(r, &r.call.data[1], READS, 0, r.rows * sizeof(cnp.npy_int64))
    if loop == CROSS_ENTROPY:
        words[2] = word(r, &r.call.data[2], WRITES, 0, whole)
        words[3] = word(r, &r.call.data[3], WRITES, 0, column)
    else:
        words[2] = word(r, &r.call.data[2], READS, 0, column)
        words[3] = word(r, &r.call.data[3], WRITES, 0, whole)
    note(_replay_rows, "rows", r, sizeof(r[0]), words, 4)


cpdef tuple cross_entropy(cnp.ndarray x, cnp.ndarray target, object weight, long long ignore_index, int reduction):
    """Cross-entropy of logits (N, C): `nll` of their log-softmax. Returns (loss, total weight, softmax)."""
    cdef int t = cnp.PyArray_TYPE(x)
    cdef Targets targets
    cdef cnp.ndarray softmax, logs
    if _is_narrow(t):
        loss, total, softmax = cross_entropy(cast(x, cnp.NPY_FLOAT), target, weight, ignore_index, reduction)
        return cast(loss, t), total, cast(softmax, t)
    if not _has_kernel(t) or cnp.PyArray_SIZE(x) == 0:
        logs = log_softmax(x, 1)
        return *nll(logs, target, weight, ignore_index, reduction), numpy_fallback.call(np.exp, logs)
    target = dense(cast(target, cnp.NPY_INT64))
    _check_targets(x, target, ignore_index)
    weight = _class_weights(weight, t, cnp.PyArray_DIM(x, 1))
    targets = _targets(target, cnp.PyArray_DIM(x, 1), weight, ignore_index)
    x = dense(x)
    softmax = empty(2, cnp.PyArray_DIMS(x), t)
    logs = empty(1, cnp.PyArray_DIMS(x), t)     # only of each row's target class; a stride of 0 makes it stand for all
    _run_rows(CROSS_ENTROPY, t, &targets,
              [cnp.PyArray_DATA(x), targets.classes, cnp.PyArray_DATA(softmax), cnp.PyArray_DATA(logs)])
    loss, total = _reduced(&targets, Logarithms(cnp.PyArray_BYTES(logs), cnp.PyArray_ITEMSIZE(x), 0), t, reduction,
                           cnp.PyArray_NBYTES(logs))
    return loss, total, softmax


cdef void _factors(Targets* targets, real* out, const real* grad, Py_ssize_t step, real total) noexcept nogil:
    """Compute each row's factor for the difference between softmax and target; `step` as in `_nll_backward`."""
    cdef Py_ssize_t i, at
    for i in range(targets.n):
        out[i] = 0
        at = _class_of(targets, i)
        if at >= 0:
            out[i] = grad[i * step] / total
            if targets.weight != NULL:
                out[i] *= (<real*>targets.weight)[at]


cdef struct GradientCall:       # `_factors`, or `_nll_backward` for a number of classes
    Targets targets
    bint is_double
    Py_ssize_t classes          # 0: `_factors`
    char* out
    char* grad
    Py_ssize_t step
    char* total                 # NULL: 1


cdef void _run_gradient(void* context) noexcept nogil:
    cdef GradientCall* call = <GradientCall*>context
    cdef double total = 1
    if call.total != NULL:
        total = (<double*>call.total)[0] if call.is_double else (<float*>call.total)[0]
    if call.classes and call.is_double:
        _nll_backward[double](&call.targets, <double*>call.out, call.classes, <double*>call.grad, call.step, total)
    elif call.classes:
        _nll_backward[float](&call.targets, <float*>call.out, call.classes, <float*>call.grad, call.step, <float>total)
    elif call.is_double:
        _factors[double](&call.targets, <double*>call.out, <double*>call.grad, call.step, total)
    else:
        _factors[float](&call.targets, <float*>call.out, <float*>call.grad, call.step, <float>total)


cdef int _gradient(Targets* targets, int t, Py_ssize_t classes, cnp.ndarray out, cnp.ndarray grad, bint step,
                   cnp.ndarray total) except -1:
    """Run it; `total` is a number of type `t`, or None for 1."""
    cdef GradientCall call
    cdef Word[5] words
    memset(&call, 0, sizeof(call))
    call.targets = targets[0]
    call.is_double = t == cnp.NPY_DOUBLE
    call.classes = classes
    call.out = cnp.PyArray_BYTES(out)
    call.grad = cnp.PyArray_BYTES(grad)
    call.step = step
    if total is not None:
        call.total = cnp.PyArray_BYTES(total)
    if tape_open:
        words[0] = word(&call, &call.targets.classes, READS, 0, targets.n * sizeof(cnp.npy_int64))
        words[1] = word(&call, &call.targets.weight, READS, 0, targets.count * cnp.PyArray_ITEMSIZE(out))
        words[2] = word(&call, &call.grad, READS, 0, cnp.PyArray_NBYTES(grad))
        words[3] = word(&call, &call.total, READS, 0, cnp.PyArray_ITEMSIZE(out))
        words[4] = word(&call, &call.out, WRITES, 0, cnp.PyArray_NBYTES(out))
        note(_run_gradient, "rows", &call, sizeof(call), words, 5)
    _run_gradient(&call)
    targets.changed |= call.targets.changed
    return 0


cdef cnp.ndarray _total(cnp.ndarray total_weight, int t, int reduction):
    """The number that a mean is divided by, in the type of the loss; None for 1."""
    if reduction != MEAN:
        return None
    return dense(cast(total_weight, t))


cpdef cnp.ndarray cross_entropy_backward(cnp.ndarray grad, cnp.ndarray softmax, cnp.ndarray target, object weight,
                                         long long ignore_index, int reduction, cnp.ndarray total_weight):
    """Gradient of `cross_entropy` with respect to the logits. ``softmax`` and ``total_weight`` come from `cross_entropy`."""
    cdef int t = cnp.PyArray_TYPE(softmax)
    cdef Targets targets
    cdef cnp.ndarray out, factors
    cdef bint step = reduction == NONE
    if _is_narrow(t):
        return cast(cross_entropy_backward(grad, cast(softmax, cnp.NPY_FLOAT), target, weight, ignore_index, reduction,
                                           total_weight), t)
    if not _has_kernel(t) or cnp.PyArray_SIZE(softmax) == 0:
        of_logs = nll_backward(grad, softmax, target, weight, ignore_index, reduction, total_weight)
        return of_logs - softmax * of_logs.sum(1, keepdims=True)
    target = dense(cast(target, cnp.NPY_INT64))
    _check_targets(softmax, target, ignore_index)
    weight = _class_weights(weight, t, cnp.PyArray_DIM(softmax, 1))
    targets = _targets(target, cnp.PyArray_DIM(softmax, 1), weight, ignore_index)
    grad = _gradient_of_loss(grad, t, targets.n, step)
    softmax = dense(softmax)
    out = empty(2, cnp.PyArray_DIMS(softmax), t)
    factors = empty(1, cnp.PyArray_DIMS(softmax), t)
    _gradient(&targets, t, 0, factors, grad, step, _total(total_weight, t, reduction))
    _run_rows(CROSS_ENTROPY_GRADIENT, t, &targets,
              [cnp.PyArray_DATA(softmax), targets.classes, cnp.PyArray_DATA(factors), cnp.PyArray_DATA(out)])
    _check_unchanged(&targets)
    return out


dispatching(globals(), """softmax log_softmax softmax_backward log_softmax_backward nll nll_backward cross_entropy
    cross_entropy_backward""")
