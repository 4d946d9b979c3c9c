"""Runs each op on the GPU that holds its tensors, where there are several.

Note [Several GPUs]
-------------------
CuPy computes on the thread's current GPU, wherever the operands are: it refuses those of another GPU, or reads them over
the bus and leaves the result on the wrong one. In PyTorch an op runs on the GPU of its tensors, and the current GPU only
decides where new tensors go. Three places see to that:

- kernels of rows, which `gpu_forms.run` calls on the GPU of their arrays;
- calls of public functions and methods (`checked_call.h`), whose Python code computes with CuPy's functions, too;
- the nodes of a backward pass (`streams.py`), which run on the GPU of their gradient.

The last two cost nothing as long as CuPy is not loaded or finds a single GPU. While a graph is captured, the calls also
tell it which memory they use: Note [Captures] in `_kernels/gpu/runtime/graph_capture.py`.
"""

from cpython.object cimport PyObject

from cygrad._core.graph.opdef cimport attend_gpus
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.device.unresolved cimport behind
from cygrad._kernels.device import cupy_library

cdef object gpu_array = None, get_device = None, set_device = None      # CuPy's class and functions
cdef bint several = False       # whether there are several GPUs
cdef object told = None         # while a graph is captured, called with each GPU array that a call gets


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
    if told is not None:
        for i in range(count):
            tell(<object>values[i])
    if not several:
        return -1
    for i in range(count):
        there = gpu_of(<object>values[i])
        if there >= 0:
            before = get_device()
            if there == before:
                return -1
            set_device(there)
            return before
    return -1


cdef int tell(object value) except -1:
    """Tell a capture of the tensors in a value."""
    if isinstance(value, Tensor):
        array = behind((<Tensor>value).array)
        if type(array) is gpu_array:
            told(array)
    elif type(value) is list or type(value) is tuple:
        for each in value:
            tell(each)
    return 0


cdef int leave(int before) except -1:
    set_device(before)
    return 0


def connect(bint is_loaded):
    """Attend to the GPUs if CuPy is loaded and finds several; return whether it does."""
    global gpu_array, get_device, set_device, several
    several = False
    if is_loaded:
        library = cupy_library.cupy()
        gpu_array, runtime = library.ndarray, library.cuda.runtime
        get_device, set_device = runtime.getDevice, runtime.setDevice
        several = runtime.getDeviceCount() > 1
    attend()
    return several


def attend_captures(to_tell):
    """Call `to_tell` with each GPU array that a public function or method gets, or no longer if it is None."""
    global told
    told = to_tell
    attend()


cdef int attend() except -1:
    if several or told is not None:
        attend_gpus(enter, leave)
    else:
        attend_gpus(NULL, NULL)
    return 0
