"""A hash of the elements of a tensor."""

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import by_name
from cygrad._ops.base.arguments import integers, require, wrap_dims
from cygrad._ops.base.views import flatten, view
from cygrad._ops.common.out_argument import given
from cygrad._ops.elementwise.logic import bitwise_xor
from cygrad._ops.shape.reshaping import movedim


def hash_tensor(input, dim=(), *, keepdim=False, mode=0, out=None):
    """Return the XOR of the elements along `dim`, or of all: of integers as int64, of other numbers as float64.

    The result is uint64; tensors with equal elements in another order have the same hash. The only `mode` is 0. Raises
    NotImplementedError for complex tensors, RuntimeError for another mode, for an `out` of another dtype, and
    without elements if `dim` is not given, IndexError if a dimension to reduce is empty.

    >>> import cygrad
    >>> cygrad.hash_tensor(cygrad.tensor([[1, 2], [4, 8]]), dim=1)
    tensor([ 3, 12], dtype=torch.uint64)
    """
    t = require(input, "hash_tensor")
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    axes = wrap_dims((dim,) if isinstance(dim, int) else integers(dim, "hash_tensor", "dim", 2), t.dim())
    if not axes and not t.numel():
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    empty = [i for i in axes if not t.shape[i]]
    if empty:
        raise IndexError(f"hash_tensor: Expected reduction dim {empty[0]} to have non-zero size.")
    if isinstance(out, Tensor) and out.dtype is not by_name()["uint64"]:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {out.dtype.type_name}")
    if t.is_complex() or t.is_floating_point() and t.dtype.itemsize == 1:
        raise messages.not_implemented_for("xor_sum_cpu", t.dtype)
    axes = axes or tuple(range(t.dim()))
    bits = t.detach().double().resolve_neg().view(by_name()["int64"]) if t.is_floating_point() else t.long()
    found = view(_xor_of_all(bits, axes), [1 if i in axes else n for i, n in enumerate(t.shape)])
    if not keepdim:
        found = found.squeeze(axes)
    return given("hash_tensor", found.view(by_name()["uint64"]), out)


def _xor_of_all(bits, axes):
    """XOR over some dimensions, by halves."""
    if not axes:
        return bits.clone()
    rest = bits.dim() - len(axes)
    rows = flatten(movedim(bits, axes, tuple(range(rest, bits.dim()))), rest)
    while rows.shape[-1] > 1:
        half, odd = divmod(rows.shape[-1], 2)
        left = bitwise_xor(rows[..., :half], rows[..., half : 2 * half])
        if odd:
            left[..., :1] ^= rows[..., -1:]
        rows = left
    return rows.squeeze(-1).clone()


composite = {"hash_tensor": 0}  # a function and a method
functions = publish(globals())
