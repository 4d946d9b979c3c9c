"""Types of elements that NumPy does not know, in DLPack capsules: bfloat16 and float8.

NumPy makes and reads capsules, but of its own types alone. It sees such elements as unsigned integers of their size;
the capsule says what they are. The structures are those of dlpack.h, version 1.1.
"""

import ctypes

import numpy as np

from cygrad._core.types.dtypes import dtype_named

_UNSIGNED = 1
_CODES = {
    "bfloat16": 4,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
_NAMES = {code: name for name, code in _CODES.items()}

_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Elements(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """The begin of DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _Elements),
    )


class _Versioned(ctypes.Structure):
    """The begin of DLManagedTensorVersioned; that of DLManagedTensor is the tensor."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def _elements(capsule):
    """What the elements in an unused capsule are; changes are seen in the capsule."""
    if '"dltensor_versioned"' in repr(capsule):
        return _Versioned.from_address(_pointer_in(capsule, b"dltensor_versioned")).tensor.dtype
    return _Tensor.from_address(_pointer_in(capsule, b"dltensor")).dtype


def exported(array, **options):
    """Return a capsule of an array."""
    code = _CODES.get(array.dtype.name)
    if code is None:
        return array.__dlpack__(**options)
    capsule = array.view(f"u{array.itemsize}").__dlpack__(**options)
    _elements(capsule).code = code
    return capsule


def imported(wrapped):
    """Return an array of a type that NumPy knows on the memory of `wrapped.capsule`, and the type to view it as or
    None.

    Raises ImportError if that type needs a package that is not there.
    """
    elements = _elements(wrapped.capsule)
    code, bits = elements.code, elements.bits
    name = _NAMES.get(code)
    if name is None or elements.lanes != 1 or bits != (16 if name == "bfloat16" else 8):
        return np.from_dlpack(wrapped), None
    wanted = dtype_named(name).numpy
    elements.code = _UNSIGNED
    try:
        return np.from_dlpack(wrapped), wanted
    except BaseException:
        if '"dltensor' in repr(wrapped.capsule):  # unused, as before
            elements.code = code
        raise
