"""Elementwise functions that wait, in the capture of a compiled step, to be launched together with what follows.

See Note [Groups] in `_kernels/gpu/launch/groups.py`. Whatever uses arrays on a GPU by other means than the functions that
wait calls `settle` first: `gpu_forms.run` and the like, and code that gets the array of a tensor.
"""

cimport cython
from cpython.object cimport PyObject

from cygrad._library import later

graph_capture = later("cygrad._kernels.gpu.runtime.graph_capture")      # needed only on GPUs

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*) noexcept

any_waits = False


def tell(bint waits):
    """Tell whether functions wait."""
    global any_waits
    any_waits = waits


cdef int settle() except -1:
    if any_waits:
        graph_capture.settle()
    return 0


@cython.final
cdef class Waiting:
    """Work that waits: `out` is its result, `operands` what it reads.

    `key` is what elementwise functions that are launched together have in common; None for other work. `level` counts
    what has to be launched before. `uses` tells how often work that waits refers to the result. `length` is that of the
    rows of which the result has one number each; 0 if it has an element for each of `key`.
    """

    cdef readonly object out, key, work
    cdef readonly tuple operands, kinds, rows
    cdef readonly Py_ssize_t level, length
    cdef public Py_ssize_t uses

    def __init__(self, work, tuple operands not None, tuple kinds, tuple rows, key, Py_ssize_t level, out,
                 Py_ssize_t length=0):
        self.work, self.operands, self.kinds, self.rows = work, operands, kinds, rows
        self.key, self.level, self.out, self.length = key, level, out, length

    def is_held(self):
        """Whether anything that does not wait refers to the result, or to a view of its memory."""
        cdef object pointer = self.out.data, block = pointer.mem
        return (Py_REFCNT(<PyObject*>self.out) > 1 + self.uses or Py_REFCNT(<PyObject*>pointer) > 2
                or Py_REFCNT(<PyObject*>block) > 2)
