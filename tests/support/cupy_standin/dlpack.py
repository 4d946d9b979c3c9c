"""DLPack capsules for CUDA, made by rewriting the device of NumPy's CPU capsules."""

import ctypes

import numpy as np

from . import compute, memory, ufuncs

CPU, CUDA = 1, 2
BFLOAT = 4
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def inside(capsule):
    return Tensor.from_address(pointer_of(capsule, b"dltensor"))


def capsule_of(array):
    """Return a capsule of a device array."""
    is_bfloat16 = array.dtype == ufuncs.bfloat16
    capsule = (array._a.view(np.uint16) if is_bfloat16 else array._a).__dlpack__()
    tensor = inside(capsule)
    tensor.device_type, tensor.device_id = CUDA, array._memory.device_id
    if is_bfloat16:
        tensor.code = BFLOAT
    return capsule


class OnTheHost:
    """A capsule rewritten to the CPU device, so that NumPy accepts it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return CPU, 0


def array_from(source, *, device=None, copy=None):
    """`cupy.from_dlpack`."""
    capsule = source if type(source).__name__ == "PyCapsule" else source.__dlpack__()
    tensor = inside(capsule)
    if tensor.device_type != CUDA:
        if device is None:
            raise TypeError("CPU arrays cannot be directly imported to CuPy: use cupy.array(numpy.from_dlpack(x))")
        raise BufferError("unsupported device")
    owner, is_bfloat16 = tensor.device_id, tensor.code == BFLOAT
    tensor.device_type = CPU
    if is_bfloat16:
        tensor.code = 1  # as unsigned integers
    host = np.from_dlpack(OnTheHost(capsule))
    host = host.view(ufuncs.bfloat16) if is_bfloat16 else host
    low, high = np.lib.array_utils.byte_bounds(host)
    mem = memory.UnownedMemory(low, high - low, host, owner)
    offset = host.__array_interface__["data"][0] - low
    new = np.ndarray(host.shape, host.dtype, mem._bytes, offset, host.strides)
    array = compute.ndarray_class()._of(new, mem)
    return array.copy() if copy else array


def device_of(capsule):  # used by tests
    tensor = inside(capsule)
    return tensor.device_type, tensor.device_id
