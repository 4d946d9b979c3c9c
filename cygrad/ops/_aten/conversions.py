"""Copies, views and conversions between dtypes and forms of indices."""

import cygrad
from cygrad._core.errors import messages
from cygrad._ops.base.slicing import slice as slice_of
from cygrad._ops.shape.slice_scatter import bounds_of_slice
from cygrad.ops._aten.table import aten


@aten
def _pin_memory(self, device=None):
    """Return a copy in page-locked memory, or the tensor itself if it is there already."""
    return self.pin_memory()


@aten
def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    """Return a copy with another dtype, device or memory format."""
    result = self.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True)
    return result if memory_format is None else result.contiguous(memory_format=memory_format)


@aten
def to(self, *args, layout=None, pin_memory=None, **kwargs):
    """Return the tensor with another dtype or device, as `Tensor.to`."""
    kwargs = {name: value for name, value in kwargs.items() if value is not None}
    return self.to(*args, **kwargs)


@aten
def _local_scalar_dense(self):
    """Return the only element as a Python number."""
    return self.item()


@aten
def _unsafe_view(self, size):
    """Return `self.view(size)`."""
    return self.view(size)


@aten
def _reshape_alias(self, size, stride):
    """Return a view with this size and these strides."""
    return self.as_strided(size, stride)


@aten
def _reshape_copy(self, size):
    """Return a contiguous copy with this size."""
    return self.clone(memory_format=cygrad.contiguous_format).view(size)


@aten
def _new_zeros_with_same_feature_meta(self, other, *, self_num_batch_dims=0):
    """Return zeros for a tangent of `other`: laid out as `other` for each index of the first dimensions of `self`."""
    batch = self.shape[:self_num_batch_dims]
    step = other.untyped_storage().nbytes() // other.itemsize
    flat = other.new_zeros(batch.numel() * step)
    steps = [step * batch[i + 1 :].numel() for i in range(self_num_batch_dims)]
    return flat.as_strided((*batch, *other.shape), (*steps, *other.stride()), other.storage_offset())


@aten
def alias(self):
    """Return a view of all elements."""
    return self.view_as(self)


@aten
def lift(self):
    """Return the tensor."""
    return self


@aten
def lift_fresh(self):
    """Return the tensor."""
    return self


@aten
def lift_fresh_copy(self):
    """Return a copy."""
    return self.clone()


@aten
def slice(self, dim=0, start=None, end=None, step=1):
    """Return the view of `start:end:step` along a dimension."""
    d, first, _, stride, count = bounds_of_slice(self, dim, start, end, step, "slice")
    return slice_of(self, d, first, count, stride)


@aten
def _conj(self):
    """Return the conjugate view."""
    return self.conj()


@aten
def _conj_physical(self):
    """Return the conjugate numbers, as a copy."""
    return self.conj_physical()


@aten
def matrix_H(self):
    """Return the conjugate transpose of a matrix."""
    return self.H


@aten
def numpy_T(self):
    """Return the tensor with its dimensions reversed."""
    return self.permute(*range(self.ndim - 1, -1, -1))


@aten
def chalf(self, *, memory_format=None):
    """Return the tensor as complex half, a dtype that is not supported: raises as `Tensor.chalf` does."""
    return self.chalf()


@aten
def copy(self, src, non_blocking=False):
    """Return `src` in the shape and dtype of `self`."""
    return cygrad.empty_like(self).copy_(src, non_blocking)


@aten
def _resize_output_(self, size, device):
    """Resize the tensor in place."""
    return self.resize_(size)


@aten
def _dim_arange(like, dim):
    """Return 0, 1, ... for each place of a dimension."""
    return cygrad.arange(like.shape[dim], device=like.device)


@aten
def _shape_as_tensor(self):
    """Return the shape as a tensor of int64.

    >>> import cygrad as torch
    >>> torch._shape_as_tensor(torch.ones(2, 3))
    tensor([2, 3])
    """
    return cygrad.tensor(tuple(self.shape), dtype=cygrad.int64)


@aten
def _reshape_from_tensor(self, shape):
    """Return the tensor with the shape that a tensor holds."""
    return self.reshape(shape.tolist())


@aten
def _convert_indices_from_coo_to_csr(self, size, *, out_int32=False):
    """Return, for ascending numbers of rows of a matrix of `size` rows, where each row begins, and the last one ends.

    >>> import cygrad as torch
    >>> torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    if self.ndim != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {self.ndim} dimensional tensor.")
    _require_integers("convert_indices_from_coo_to_csr_cpu", self)
    ends = cygrad.arange(size + 1, device=self.device)
    return cygrad.searchsorted(self.contiguous(), ends.to(self.dtype), out_int32=out_int32)


@aten
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """Return the rows and columns of elements, given where rows begin; with leading rows of the numbers of batches.

    >>> import cygrad as torch
    >>> torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2]))
    tensor([[0, 0, 2],
            [0, 1, 2]])
    """
    _require_integers("convert_indices_from_csr_to_coo_cpu", crow_indices)
    batch, count = col_indices.shape[:-1], col_indices.shape[-1]
    begins = crow_indices.reshape(-1, crow_indices.shape[-1]).contiguous()
    places = cygrad.arange(count, device=begins.device, dtype=begins.dtype).expand(len(begins), count).contiguous()
    rows = (cygrad.searchsorted(begins, places, right=True) - 1).flatten()
    found = [col_indices.flatten(), rows] if transpose else [rows, col_indices.flatten()]
    if batch:
        found = [*cygrad.ones(*batch, count).nonzero().t()[:-1], *found]
    return cygrad.stack([one.to(cygrad.int32 if out_int32 else cygrad.int64) for one in found])


def _require_integers(kernel, tensor):
    if tensor.dtype not in (cygrad.int64, cygrad.int32):
        raise messages.not_implemented_for(kernel, tensor.dtype)


def _cast(name, dtype):
    def cast(self, non_blocking=False):
        return self.to(getattr(cygrad, dtype))

    cast.__name__ = cast.__qualname__ = f"_cast_{name}"
    cast.__doc__ = f"Return the tensor as {dtype}."
    return aten(cast)


for _name, _dtype in {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
}.items():
    _cast(_name, _dtype)


@aten
def block_diag(tensors):
    """Return a matrix with these matrices on its diagonal."""
    return cygrad.block_diag(*tensors)
