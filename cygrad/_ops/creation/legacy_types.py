"""Legacy tensor types such as `FloatTensor` and `LongTensor`.

They construct tensors and support `isinstance`, but no tensor is an instance of these classes.
"""

from typing import Any

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import legacy_array
from cygrad._core.types.dtypes import as_dtype, by_name, dtype_named, set_default_dtype
from cygrad._kernels.device import cupy_library
from cygrad._ops.base.checks.copying import type_wanted
from cygrad._ops.base.creation import fresh


class tensortype(type):
    """The metaclass of `FloatTensor` and the other legacy types."""

    __module__ = "torch"
    dtype: Any

    def __new__(metacls, name, bases, namespace):
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(metacls, name, bases, namespace)

    def __call__(cls, *args, **named):
        if len(args) == 1 and not named and isinstance(args[0], Tensor):
            if args[0].dtype is not cls.dtype:
                raise other_type(cls.dtype, args[0])
            return Tensor(args[0])
        if list(named) == ["size"]:
            args, named = tuple(named["size"]), {}
        return fresh(legacy_array(args, named, as_dtype(cls.dtype)), False, "new")

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.is_cpu

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


class _gpu_tensortype(tensortype):
    """The metaclass of `cuda.FloatTensor` and the other legacy types of tensors on a GPU."""

    __module__ = "torch"

    def __call__(cls, *args, **named):
        if not cupy_library.is_available():
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.\n"
                "  there is no GPU: use torch.tensor(data, dtype=...)"
            )
        return fresh(legacy_array(args, named, as_dtype(cls.dtype), "cuda"), False, "new").cuda()

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.is_cuda

    def __repr__(cls):
        return f"<class 'torch.cuda.{cls.__name__}'>"


def other_type(dtype, tensor):
    """Return the error for a tensor of another dtype than is to be made of it."""
    return TypeError(f"expected {_options(dtype)} (got {_options(tensor.dtype)})")


def _options(kind):
    return (
        f"TensorOptions(dtype={messages.c_name(kind)}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


DOC = """Makes tensors of {kind!r}: `{name}(2, 3)` uninitialized, `{name}([1, 2])` from data. Prefer `tensor`.

    A tensor of this dtype is an instance if it is on this kind of device. Raises TypeError for a tensor of another
    dtype.

    >>> import cygrad
    >>> isinstance(cygrad.tensor(1, dtype=cygrad.{dtype}), cygrad.{name}), isinstance(1, cygrad.{place}{name})
    (True, False)
    """


def _type_of(kind, on_gpu=False):
    """Return the legacy type of a dtype, for tensors on the CPU or on a GPU."""
    name = f"{kind.type_name}Tensor"
    doc = DOC.format(kind=kind, dtype=kind.name, name=name, place="cuda." if on_gpu else "")
    what = {"dtype": kind, "is_cuda": on_gpu, "is_sparse": False, "__doc__": doc}
    if on_gpu:
        return _gpu_tensortype(name, (), {"__module__": "cygrad.cuda", **what})
    return tensortype(name, (), {"__module__": "cygrad", **what})


def set_default_tensor_type(t):
    """Set the default floating-point dtype to that of `t` ('torch.DoubleTensor', or the class). Deprecated.

    Raises TypeError for types that are not floating-point.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.set_default_tensor_type(cygrad.DoubleTensor)
    >>> cygrad.tensor(1.5).dtype
    torch.float64
    >>> cygrad.set_default_dtype(cygrad.float32)
    """
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    try:
        set_default_dtype(type_wanted(t))
    except ValueError:
        module, _, name = str(t).rpartition(".")
        raise AttributeError(f"module '{module}' has no attribute '{name}'") from None


TYPES = "float64 float32 float16 uint8 int8 int16 int32 int64 bool".split()
kinds = [dtype_named("bfloat16"), *(by_name()[name] for name in TYPES)]
functions = {made.__name__: made for made in map(_type_of, kinds)}
types_on_gpu = {made.__name__: made for made in (_type_of(kind, on_gpu=True) for kind in kinds)}
functions["set_default_tensor_type"] = set_default_tensor_type
