"""Sizes as tensors' facts, and checks that raise."""

import cygrad
from cygrad._core.errors import messages
from cygrad.ops._aten.table import aten


@aten
def sym_size(self, dim=None):
    """Return the shape, or the size of one dimension."""
    return list(self.shape) if dim is None else self.size(dim)


@aten
def sym_stride(self, dim=None):
    """Return the strides, or the stride of one dimension."""
    return list(self.stride()) if dim is None else self.stride(dim)


@aten
def sym_numel(self):
    """Return the number of elements."""
    return self.numel()


@aten
def sym_storage_offset(self):
    """Return the place of the first element in the storage."""
    return self.storage_offset()


@aten
def sym_is_contiguous(self, memory_format=cygrad.contiguous_format):
    """Return whether the tensor is contiguous."""
    return self.is_contiguous(memory_format=memory_format)


@aten
def is_non_overlapping_and_dense(self):
    """Return whether the elements fill a piece of memory without gaps, each once."""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(self.stride(), self.shape) if n != 1):
        if stride != expected:
            return self.numel() == 0
        expected *= size
    return True


def _require_bool(name, tensor):
    if tensor.dtype is not cygrad.bool:
        raise RuntimeError(f"Expected self.scalar_type() == at::kBool to be true, but got false. ({name})")


@aten
def _is_all_true(self):
    """Return whether all elements of a tensor of dtype bool are True, as a tensor."""
    _require_bool("_is_all_true", self)
    return self.all()


@aten
def _is_any_true(self):
    """Return whether any element of a tensor of dtype bool is True, as a tensor."""
    _require_bool("_is_any_true", self)
    return self.any()


@aten
def _assert_scalar(self, assert_msg):
    """Raise RuntimeError with this message if a number is 0."""
    if not self:
        raise RuntimeError(assert_msg)


@aten
def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """Raise RuntimeError unless the tensor has these sizes, strides, dtype, device and layout, where they are given."""
    if dtype is not None and a.dtype != dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype.type_name}, Got: {messages.c_name(a.dtype)}")
    found = {"sizes": list(a.shape), "strides": list(a.stride())}
    for name, wanted in {"sizes": size, "strides": stride}.items():
        wanted = list(wanted) if isinstance(wanted, (tuple, list)) else wanted
        if wanted is not None and found[name] != wanted:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found[name]}")
    if device is not None and a.device != cygrad.device(device):
        raise RuntimeError(f"Tensor device mismatch! Expected: {device}, Got: {a.device}")
    if layout is not None and a.layout != layout:
        raise RuntimeError(f"Tensor layout mismatch! Expected: {layout}, Got: {a.layout}")
