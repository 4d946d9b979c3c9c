"""Runs each op on the GPU that holds its tensors, where there are several.

Note [Several GPUs]
-------------------
CuPy computes on the thread's current GPU, wherever the operands are: it refuses those of another GPU, or reads them over
the bus and leaves the result on the wrong one. In PyTorch an op runs on the GPU of its tensors, and the current GPU only
decides where new tensors go. Three places see to that:

- kernels of rows, which `gpu_forms.run` calls on the GPU of their arrays;
- calls of public functions and methods (`checked_call.h`), whose Python code computes with CuPy's functions, too;
- the nodes of a backward pass (`streams.py`), which run on the GPU of their gradient.

The last two cost nothing as long as CuPy is not loaded or finds a single GPU.
"""

from cpython.object cimport PyObject

from cygrad._core.graph.opdef cimport attend_gpus
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.device.unresolved cimport behind
from cygrad._kernels.device import cupy_library

cdef object gpu_array = None, get_device = None, set_device = None      # CuPy's class and functions


cpdef int gpu_of(object value) except -2:
    """Return the index of the GPU that holds a tensor, or the first one in a list or tuple; -1 if there is none."""
    cdef int found
    if isinstance(value, Tensor):
        array = behind((<Tensor>value).array)
        return array.data.device_id if type(array) is gpu_array else -1
    if type(value) is list or type(value) is tuple:
        for each in value:
            if isinstance(each, Tensor):
                found = gpu_of(each)
                if found >= 0:
                    return found
    return -1


cdef int enter(PyObject* const* values, Py_ssize_t count) except -2:
    """Switch to the GPU of the first tensor among these values; return the former one, or -1 if nothing has changed."""
    cdef Py_ssize_t i
    cdef int there, before
    for i in range(count):
        there = gpu_of(<object>values[i])
        if there >= 0:
            before = get_device()
            if there == before:
                return -1
            set_device(there)
            return before
    return -1


cdef int leave(int before) except -1:
    set_device(before)
    return 0


def connect(bint is_loaded):
    """Attend to the GPUs if CuPy is loaded and finds several; return whether it does."""
    global gpu_array, get_device, set_device
    if not is_loaded or cupy_library.cupy().cuda.runtime.getDeviceCount() < 2:
        attend_gpus(NULL, NULL)
        return False
    library = cupy_library.cupy()
    gpu_array, get_device, set_device = library.ndarray, library.cuda.runtime.getDevice, library.cuda.runtime.setDevice
    attend_gpus(enter, leave)
    return True
