"""Notes the loops of ufuncs on the tape. See Note [The tape] in tape/tape.pyx."""

cimport numpy as cnp

from cygrad._kernels.cpu.base.arrays cimport Operand
from cygrad._kernels.cpu.base.nditer cimport Loop, Walk

ctypedef union Number:          # storage for one value of any built-in type, suitably aligned
    unsigned char boolean
    int int_
    long long longlong
    unsigned long long ulonglong
    float float_
    double double_
    long double[2] longest

# A loop over all of a dense output, or over a walk; `number` is where an operand stands that is a Python number, or NULL.
# `kind` is what the tape is told: it leaves out products with 1.
cdef void note_flat(Loop* loop, str kind, int nin, cnp.npy_intp n, char** data, cnp.npy_intp* steps, char* number) noexcept
cdef void note_walk(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, cnp.npy_intp size, Py_ssize_t itemsize,
                    char* number) noexcept
