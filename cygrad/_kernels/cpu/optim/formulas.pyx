"""Steps of the optimizers other than SGD and Adam, in place and in one pass (`formula_steps.h`).

What all elements of a parameter share (`settle`) depends on the options of its group and on up to three numbers of its
state: the count of its steps, NAdam's product of momenta, ASGD's `eta` and `mu`. It is the same on GPUs, whose loops take
it as `numbers`.
"""

cimport numpy as cnp
from libc.math cimport pow, sqrt
from libc.string cimport memset

from cygrad._kernels.cpu.base.arrays cimport is_on_cpu, same_shape
from cygrad._kernels.cpu.optim.rows cimport (
    NUMBERS, Row, Rule, Settings, Task, free_row, formula_settings, has_kernel, lies_like, new_row, next_task,
    note_step, read_scalar, run_row, scalar_of, take_announced, write_scalar)
from cygrad._kernels.platform.thread_pool cimport enter
from cygrad._kernels.tape.tape cimport tape_open

cnp.import_array()

cdef extern from "platform/target_clones.h":    # for formula_steps.h
    pass

cdef extern from "elementwise/formula_steps.h" nogil:
    enum:                           # Rule.kind
        ADADELTA
        ADAGRAD
        ADAMAX
        ASGD
        NADAM
        RADAM
        RMSPROP
        RPROP
    # float if `is_double` is 0, else double
    void formula_step(bint is_double, void* p, const void* g, void* s0, void* s1, void* s2, Py_ssize_t n,
                      const formula_settings* s) noexcept

# In the order of the kinds: the class, and what `numbers` hold besides "lr" and "weight_decay", the first two of all but
# Rprop.
OPTIONS = {
    "Adadelta": ("rho", "eps"),
    "Adagrad": ("lr_decay", "eps"),
    "Adamax": ("betas", "eps"),
    "ASGD": ("lambd", "alpha", "t0"),
    "NAdam": ("betas", "eps", "momentum_decay"),
    "RAdam": ("betas", "eps"),
    "RMSprop": ("alpha", "eps", "momentum"),
    "Rprop": ("etas", "step_sizes"),
}
OPTIONS = {name: ("lr", *(() if name == "Rprop" else ("weight_decay",)), *names) for name, names in OPTIONS.items()}
cdef dict _kinds = {name: kind for kind, name in enumerate(OPTIONS)}
cdef tuple _states = (2, 1, 2, 1, 2, 2, 3, 2)        # arrays of state of each kind; RMSprop's last two may be None
cdef tuple _scalars = (1, 1, 1, 3, 2, 1, 1, 1)


# ------------------------------------------------------------------------------- what all elements share


cdef void _settle(const Rule* rule, const double* o, Settings* settings) noexcept nogil:
    """Count a step, and set what its elements share."""
    cdef formula_settings* s = &settings.formula
    cdef double* c = s.c
    cdef double t = read_scalar(rule.scalars[0]) + 1, lr = o[0], decay = 0 if rule.kind == RPROP else o[1]
    write_scalar(rule.scalars[0], t)
    s.kind, s.sign = rule.kind, rule.sign
    s.weight_decay = 0 if rule.decoupled else decay
    s.shrink = 1 - lr * decay if rule.decoupled else 1
    if rule.kind == ADADELTA:
        c[0], c[1], c[2], c[3] = o[2], 1 - o[2], o[3], lr
    elif rule.kind == ADAGRAD:
        c[0], c[1] = lr / (1 + (t - 1) * o[2]), o[3]
    elif rule.kind == ADAMAX:
        c[0], c[1], c[2], c[3] = 1 - o[2], o[3], o[4], lr / (1 - pow(o[2], t))
    elif rule.kind == ASGD:
        _settle_asgd(rule, o, t, c)
    elif rule.kind == NADAM:
        _settle_nadam(rule, o, t, c)
    elif rule.kind == RADAM:
        _settle_radam(o, t, c)
    elif rule.kind == RMSPROP:
        c[0], c[1], c[2], c[3], c[4] = o[2], 1 - o[2], o[3], o[4], lr
    else:
        c[0], c[1], c[2], c[3] = o[1], o[2], o[3], o[4]


cdef void _settle_asgd(const Rule* rule, const double* o, double t, double* c) noexcept nogil:
    cdef double eta = read_scalar(rule.scalars[1])
    c[0], c[1], c[2] = 1 - o[2] * eta, eta, read_scalar(rule.scalars[2])
    write_scalar(rule.scalars[1], o[0] / pow(1 + o[2] * o[0] * t, o[3]))
    write_scalar(rule.scalars[2], 1 / max(<double>1, t - o[4]))


cdef void _settle_nadam(const Rule* rule, const double* o, double t, double* c) noexcept nogil:
    cdef double mu = o[2] * (1 - 0.5 * pow(0.96, t * o[5])), ahead = o[2] * (1 - 0.5 * pow(0.96, (t + 1) * o[5])), done
    if rule.scalars[1].is_double:
        write_scalar(rule.scalars[1], read_scalar(rule.scalars[1]) * mu)
    else:
        (<float*>rule.scalars[1].at)[0] *= <float>mu
    done = read_scalar(rule.scalars[1])
    c[0], c[1], c[2], c[3], c[4] = 1 - o[2], o[3], 1 - o[3], 1 - pow(o[3], t), o[4]
    c[5], c[6] = o[0] * ahead / (1 - done * ahead), o[0] * (1 - mu) / (1 - done)


cdef void _settle_radam(const double* o, double t, double* c) noexcept nogil:
    cdef double left = 1 - pow(o[3], t), limit = 2 / (1 - o[3]) - 1, length = limit - 2 * t * pow(o[3], t) / left
    c[0], c[1], c[2], c[3], c[4], c[5] = 1 - o[2], o[3], 1 - o[3], o[0] / (1 - pow(o[2], t)), -1, o[4]
    if length > 5:
        c[4] = sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length) * left)


cdef bint _enter(Rule* rule, str name, list scalars, bint maximize, bint decoupled) except -1:
    """Fill in a rule; return False if the scalars are of other kinds than floats in memory."""
    cdef int i
    memset(rule, 0, sizeof(Rule))
    if len(scalars) != _scalars[_kinds[name]]:
        raise ValueError(f"{name}: {len(scalars)} scalars")
    rule.kind, rule.sign, rule.decoupled, rule.settle = _kinds[name], -1 if maximize else 1, decoupled, _settle
    for i in range(len(scalars)):
        if not is_on_cpu(scalars[i]):
            return False
        rule.scalars[i] = scalar_of(scalars[i])
        if rule.scalars[i].at == NULL:
            return False
    return True


cdef int _copy(list values, double* numbers) except -1:
    cdef int i
    for i in range(NUMBERS):
        numbers[i] = values[i] if i < len(values) else 0
    return 0


def shared_numbers(str name, list options, list scalars, bint maximize=False, bint decoupled=False):
    """Count a step, and return what a GPU's loops take: sign, decay, shrinking, and the formula's own numbers.

    `options` are those of `OPTIONS[name]`; `scalars` are 0-dim arrays in memory, the count of steps first. Raises
    ``TypeError`` for arrays of other kinds than float32 and float64.
    """
    cdef double[NUMBERS] numbers
    cdef Settings settings
    cdef Rule rule
    take_announced()
    if not _enter(&rule, name, scalars, maximize, decoupled):
        raise TypeError("scalars of an optimizer's state must be in memory, of float32 or float64")
    _copy(options, numbers)
    memset(&settings, 0, sizeof(settings))
    _settle(&rule, numbers, &settings)
    return settings.formula.sign, settings.formula.weight_decay, settings.formula.shrink, *[x for x in settings.formula.c]


# ------------------------------------------------------------------------------------------------- steps


def step(str name, cnp.ndarray param, cnp.ndarray grad, list state, list options, list scalars, bint maximize=False,
         bint decoupled=False):
    """One step of the optimizer with this name on one parameter; see `shared_numbers`.

    `state` has what its formula changes for each element, None for what there is not. Returns False, with nothing done,
    if these arrays need another loop: they must be dense, of float32 or float64, in one order of elements.
    Raises ``ValueError`` for arrays of the wrong shape or read-only ones.
    """
    cdef object announced = take_announced()
    cdef double[NUMBERS] numbers
    cdef cnp.ndarray array
    cdef Rule rule
    cdef Row row
    cdef Task* task
    if not has_kernel(param) or not lies_like(grad, param) or not cnp.PyArray_ISWRITEABLE(param):
        return False
    needed = state[:1] if name == "RMSprop" else state
    if len(state) != _states[_kinds[name]] or any([each is None for each in needed]):
        raise ValueError(f"{name}: state of other arrays")
    for array in (grad, *state):
        if array is None:
            continue
        if not same_shape(param, array) or array is not grad and not cnp.PyArray_ISWRITEABLE(array):
            raise ValueError(
                f"state: shape {(<object>array).shape} for a parameter of {(<object>param).shape}, or read-only")
        if not lies_like(array, param):
            return False
    if not _enter(&rule, name, scalars, maximize, decoupled):
        return False
    _copy(options, numbers)
    row = new_row(1)
    try:
        task = next_task(&row, param, _f32, _f64)
        enter(&task.elements, param)
        enter(&task.elements, grad)
        for array in state:
            enter(&task.elements, array)
        while task.elements.count < 5:
            enter(&task.elements, None)
        if tape_open:
            note_step(task, &rule, numbers, announced, True)
        memset(&task.settings, 0, sizeof(task.settings))
        _settle(&rule, numbers, &task.settings)
        run_row(&row)
    finally:
        free_row(&row)
    return True


cdef void _f32(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    formula_step(False, <void*>data[0], <void*>data[1], <void*>data[2], <void*>data[3], <void*>data[4], n,
                 <const formula_settings*>settings)


cdef void _f64(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    formula_step(True, <void*>data[0], <void*>data[1], <void*>data[2], <void*>data[3], <void*>data[4], n,
                 <const formula_settings*>settings)
