"""Steps of many parameters as one loop, and noting them on the tape; see rows.pyx."""

cimport numpy as cnp

from cygrad._kernels.platform.thread_pool cimport Elements, elements_t

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

cdef extern from "elementwise/formula_steps.h" nogil:
    ctypedef struct formula_settings:
        int kind
        double sign
        double weight_decay
        double shrink
        double[7] c

cdef enum:
    SCALARS = 3                     # of a parameter's state, that all elements share: the count of its steps first
    NUMBERS = 10                    # of a parameter's group

cdef union Settings:
    sgd_settings sgd
    adam_settings adam
    formula_settings formula

cdef struct Task:                   # the step of one parameter
    Elements elements
    elements_t loop
    Py_ssize_t n
    Py_ssize_t end                  # elements of the concatenation up to the end of this parameter
    Settings settings

cdef struct Row:
    Task* tasks
    Py_ssize_t count

cdef struct Scalar:                 # an element of an array of float32, or of float64 if `is_double`
    char* at
    bint is_double

cdef struct Rule:                   # how settings are made of numbers and scalars
    int kind
    bint is_first                   # step, after which momentum decays
    bint nesterov
    bint decoupled
    double sign
    Scalar[SCALARS] scalars
    void (*settle)(const Rule* rule, const double* numbers, Settings* settings) noexcept nogil

cdef Row new_row(Py_ssize_t count) except *
cdef void free_row(Row* row) noexcept
cdef Task* next_task(Row* row, cnp.ndarray param, elements_t f32, elements_t f64) noexcept
cdef void run_row(Row* row) noexcept
cdef bint has_kernel(cnp.ndarray param) noexcept
cdef bint lies_like(cnp.ndarray array, cnp.ndarray param) noexcept
cdef Scalar scalar_of(cnp.ndarray array) noexcept
cdef double read_scalar(Scalar s) noexcept nogil
cdef void write_scalar(Scalar s, double value) noexcept nogil

# Note the step of a parameter: array 1 is the gradient, the others change. `numbers` are what `settle` takes, unless they
# were announced; `changes` tells whether it changes the scalars.
cdef void note_step(Task* task, const Rule* rule, const double* numbers, object announced, bint changes) noexcept

# The numbers that the next step reads anew in each run stand in this array of float64.
cdef int announce(object numbers) except -1
cdef object take_announced()
