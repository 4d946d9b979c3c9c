"""C functions with the signatures that CuPy's compiled modules export, for launching kernels without its Python
objects.
"""

import ctypes
import re
import sys
from contextlib import contextmanager

from cygrad._kernels.device.launch import connect

from . import memory, raw, state

# Capsules do not copy their names, so these must stay alive.
LAUNCH = b"PyObject *(intptr_t, " + b"unsigned int, " * 7 + b"intptr_t, intptr_t, intptr_t, int __pyx_skip_dispatch)"
MAKE = (
    b"struct __pyx_obj_4cupy_5_core_4core__ndarray_base *(PyObject *, __pyx_t_4cupy_5_core_7_carray_shape_t const &, "
    b"PyObject *, PyObject *)"
)
NOTHING, WHOLE, ADDRESS = b"PyObject *(void)", b"int (int __pyx_skip_dispatch)", b"intptr_t (void)"
handles: dict = {}  # kernels by number


def capsule(function, signature):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.cast(function, ctypes.c_void_p), signature, None)


def handle(function):
    """The number of a kernel, in place of `Function.ptr`."""
    handles[id(function._kernel)] = function._kernel
    return id(function._kernel)


def taken(code, name, places):
    """Read a kernel's arguments from these addresses, according to the parameter types in its source."""
    (parameters,) = re.findall(rf"__global__ void [^;{{]*?\b{name}\((.*?)\)", code, re.DOTALL)
    found = []
    for i, parameter in enumerate(parameters.split(",")):
        if "*" in parameter:
            pointer = object.__new__(memory.MemoryPointer)
            pointer.ptr = ctypes.c_uint64.from_address(places[i]).value
            found.append(pointer)
        else:
            kind = {"double": ctypes.c_double, "bool": ctypes.c_bool}.get(parameter.split()[0], ctypes.c_int64)
            found.append(kind.from_address(places[i]).value)
    return tuple(found)


class Launched:
    """A launch: kernel name, sizes, bytes of shared memory, stream, and arguments."""

    def __init__(self, name, sizes, shared, stream, args):
        self.name, self.sizes, self.shared, self.stream, self.args = name, sizes, shared, stream, args


@contextmanager
def installed(patch):
    """Give the stand-in these functions and launch through them; yield the list of launches."""
    launches, problems = [], []

    @ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_ssize_t, *[ctypes.c_uint] * 7, *[ctypes.c_ssize_t] * 3, ctypes.c_int)
    def launch(function, *rest):
        *sizes, shared, stream, places, _, _ = rest
        kernel = handles[function]
        try:
            args = taken(kernel.code, kernel.name, ctypes.cast(places, ctypes.POINTER(ctypes.c_size_t)))
            launches.append(Launched(kernel.name, tuple(sizes), shared, stream, args))
            raw.Function(kernel)(tuple(sizes[:3]), tuple(sizes[3:]), args, shared)
        except Exception as error:  # ctypes cannot propagate exceptions
            problems.append(error)

    @ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    def make(cls, shape, dtype, _):
        begin, end, _ = (ctypes.c_size_t * 3).from_address(shape)  # a C++ vector
        return cls(tuple((ctypes.c_ssize_t * ((end - begin) // 8)).from_address(begin)), dtype)

    @ctypes.PYFUNCTYPE(ctypes.py_object)
    def ensure_context():
        return None

    get_device = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda _: state.current_device())
    current_stream = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)(lambda: getattr(state.stream(), "ptr", 0))
    modules = {
        "cupy_backends.cuda.api.driver": {"launchKernel": capsule(launch, LAUNCH)},
        "cupy_backends.cuda.api.runtime": {
            "_ensure_context": capsule(ensure_context, NOTHING),
            "getDevice": capsule(get_device, WHOLE),
        },
        "cupy._core.core": {"_ndarray_init": capsule(make, MAKE)},
        "cupy.cuda.stream": {"get_current_stream_ptr": capsule(current_stream, ADDRESS)},
    }
    for name, functions in modules.items():
        module = sys.modules.get(name) or type(sys)(name)
        patch.setitem(sys.modules, name, module)
        patch.setattr(module, "__pyx_capi__", functions, raising=False)
    patch.setattr(raw.Function, "ptr", property(handle), raising=False)
    assert connect(sys.modules["cupy"])
    try:
        yield launches
    finally:
        patch.undo()
        connect(sys.modules["cupy"])
    if problems:
        raise problems[0]
