"""Zero-copy memory sharing through DLPack with other libraries: NumPy, PyTorch, JAX and CuPy arrays on the CPU.

NumPy implements the protocol. Gradients are not shared: tensors that require grad are not exported.
"""

from enum import IntEnum

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, shows_opposite
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.device import check_device
from cygrad._kernels.device.cupy_library import cupy, is_available, on_device
from cygrad._ops.base.checks.creation import check_strides
from cygrad._ops.base.creation import fresh, sharing
from cygrad._ops.creation.dlpack_types import exported, imported

_VERSIONS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # NumPy supports versions, devices and copies


class DLDeviceType(IntEnum):
    """DLPack's device types.

    >>> import cygrad
    >>> from cygrad.utils.dlpack import DLDeviceType
    >>> DLDeviceType(cygrad.ones(2).__dlpack_device__()[0]).name
    'kDLCPU'
    """

    __module__ = "cygrad.utils.dlpack"

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


_ON_CPU = (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost, DLDeviceType.kDLROCMHost, DLDeviceType.kDLCUDAManaged)


# -- export --


def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
    """Export the memory of this tensor as a DLPack capsule, for `from_dlpack` of another library.

    Raises BufferError for a tensor that requires grad, for negative strides, and for read-only memory unless the
    consumer passes `max_version`, which makes it possible to flag the memory as read-only.
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_meta:
        raise BufferError("Cannot pack tensors on meta")
    if shows_opposite(self):
        kind, resolve = ("conjugate", "resolve_conj") if self.is_complex() else ("negative", "resolve_neg")
        raise BufferError(f"Can't export tensors with the {kind} bit set\n  export a copy: `x.{resolve}()`")
    if not self.is_cpu:
        how = {
            "stream": None if stream == -1 else stream,
            "max_version": max_version,
            "dl_device": dl_device,
            "copy": copy,
        }
        return array_of(self).__dlpack__(**{name: value for name, value in how.items() if value is not None})
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and dl_device[0] not in _ON_CPU:
        raise BufferError(f"this tensor is on the CPU, and is not copied to the device {tuple(dl_device)}")
    array = array_of(self)
    if any(step < 0 for step in array.strides):
        raise BufferError("Can't export tensors with negative strides, use tensor.clone()")
    if copy:
        array = array.copy()
    if _VERSIONS and max_version is not None:
        return exported(array, max_version=max_version)
    return exported(array)


def __dlpack_device__(self):
    """Return the device of the memory: (kDLCPU, 0), or (kDLCUDA, the GPU's number)."""
    return (DLDeviceType.kDLCPU, 0) if self.is_cpu else (DLDeviceType.kDLCUDA, self.device.index)


def _cuda_array_interface(self):
    """Expose the memory of a GPU tensor to other GPU libraries. Raises AttributeError for other tensors."""
    if self.is_cpu:
        raise AttributeError(
            "Can't get __cuda_array_interface__ on non-CUDA tensor type: torch.FloatTensor If CUDA data is "
            "required use tensor.cuda() to copy tensor to device memory."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    return array_of(self).__cuda_array_interface__


def to_dlpack(tensor):
    """Export the memory of a tensor as a DLPack capsule, which can be consumed once.

    Prefer `from_dlpack(tensor)` of the other library.

    Raises BufferError for a tensor that requires grad.

    >>> import cygrad, numpy
    >>> t = cygrad.zeros(2)
    >>> cygrad.from_dlpack(cygrad.utils.dlpack.to_dlpack(t)).fill_(3)
    tensor([3., 3.])
    >>> t
    tensor([3., 3.])
    """
    if not isinstance(tensor, Tensor):
        raise messages.wrong_type("to_dlpack", "tensor", 1, "Tensor", tensor)
    return __dlpack__(tensor)


# -- import --


class _Capsule:
    """Wraps a capsule in the interface that NumPy expects."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


class _Memory:
    """Exposes the memory of an array as writable."""

    def __init__(self, array):
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}


def is_exported(value):
    """Whether a value is an array of another library or a capsule."""
    return type(value).__name__ == "PyCapsule" or (
        hasattr(value, "__dlpack__") and not isinstance(value, (Tensor, np.ndarray, np.generic, type))
    )


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """Create a tensor on the memory of another library's array or tensor, or of a capsule; changes are visible in both.

    If the memory is known to be read-only, so is the tensor. `copy=True` copies. Raises RuntimeError for other objects
    and for a consumed capsule; BufferError for memory that is not on the CPU; ValueError for negative strides; and
    whatever the other library raises for a tensor that requires grad.

    >>> import cygrad, numpy
    >>> a = numpy.zeros(2)
    >>> t = cygrad.from_dlpack(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=torch.float64)
    """
    check_device(device)
    if isinstance(ext_tensor, np.ndarray):  # older NumPy does not export read-only memory
        check_strides(ext_tensor)
        return sharing(ext_tensor.copy() if copy else ext_tensor)
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        kind, number = ext_tensor.__dlpack_device__()
        if kind == DLDeviceType.kDLCUDA and is_available():
            with on_device(number):
                array = cupy().from_dlpack(ext_tensor)
            return fresh(array.copy() if copy else array.view(), False, "from_dlpack")
        if kind not in _ON_CPU:
            raise BufferError(
                f"the memory is on the device ({int(kind)}, {number}), not on the CPU\n"
                "  copy it to the CPU in the other library, as in x.cpu()"
            )
        capsule = _capsule_of(ext_tensor)
    name = repr(capsule)
    if type(capsule).__name__ != "PyCapsule" or '"dltensor' not in name:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    array, wanted = imported(_Capsule(capsule))
    check_strides(array)
    if not array.flags.writeable and "versioned" not in name:  # unversioned capsules cannot flag read-only memory
        array = np.asarray(_Memory(array))
    if wanted is not None:
        array = array.view(wanted)
    return sharing(array.copy() if copy else array)


def _capsule_of(other):
    if _VERSIONS:
        try:
            return other.__dlpack__(max_version=(1, 0))
        except TypeError:
            pass
    return other.__dlpack__()


methods = {
    "__dlpack__": __dlpack__,
    "__dlpack_device__": __dlpack_device__,
    "__cuda_array_interface__": property(_cuda_array_interface),
}
functions = publish(globals(), {"from_dlpack": from_dlpack, "to_dlpack": to_dlpack})
