"""The class of tensors with a mask of their own.

Note [Masked tensors]
---------------------
A `MaskedTensor` has no elements. It holds two tensors, the data and the mask, and answers the ops on it
(docs/dispatch.md). Most ops change the data and keep the mask (`unary.py`, `binary.py`), or treat both alike
(`passthrough.py`); `answers.py` has the others. Reductions are not answered as ops but as calls of functions
(`reductions.py`, by `__torch_function__`), because a mean or a maximum of what the mask keeps is another op. Gradients
follow from the rules of the ops, whose own ops are answered in turn, so they are masked tensors as well.

The class overrides calls, which makes every call of a function look at its arguments. So this module is imported when
a program asks for masked tensors, not with `cygrad.masked`.
"""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.errors.sites import warn
from cygrad.autograd import Function

__all__ = ["MaskedTensor", "is_masked_tensor"]

LAYOUTS = (cygrad.strided, cygrad.sparse_coo, cygrad.sparse_csr)
_DTYPES = frozenset(
    [cygrad.float16, cygrad.float32, cygrad.float64, cygrad.bool]
    + [cygrad.int8, cygrad.int16, cygrad.int32, cygrad.int64]
)
_PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github "
    "issue for features requests and see our documentation on the torch.masked module for further information about "
    "the project."
)
_WITH_HISTORY = (
    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
    "data.detach().clone()"
)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether this is a `MaskedTensor`.

    >>> from cygrad.masked.maskedtensor.core import is_masked_tensor
    >>> is_masked_tensor(3)
    False
    """
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Tensor):
    """A tensor with a mask of its own: elements for which the mask is False count as missing.

    `data` and `mask`, a tensor of bools, have one shape and layout, and are copied. Elementwise functions keep the
    mask; those of two masked tensors need equal masks. Reductions leave out what the mask does, and the mask of the
    result tells where an element was left.

    Raises TypeError for other types, dtypes and layouts, ValueError for other shapes.

    >>> import cygrad
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # it says that PyTorch may change this class
    >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1.0, 2.0, 3.0]), cygrad.tensor([True, False, True]))
    >>> x * 2
    MaskedTensor(
      [  2.0000,       --,   6.0000]
    )
    >>> x.sum()
    MaskedTensor(  4.0000, True)
    """

    _masked_data: Any
    _masked_mask: Any

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not isinstance(value, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warn(_PROTOTYPE)
        if data.requires_grad:
            warn(_WITH_HISTORY)
        return _shell(cls, data, requires_grad)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        data, mask = _of_one_pattern(data.detach(), mask)
        self._set_data_mask(data.clone(), mask.clone())

    @staticmethod
    def _from_values(data: Any, mask: Any) -> MaskedTensor:
        """Return a masked tensor with the history of `data`."""
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not isinstance(value, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        return _Masked.apply(data, mask)

    def _set_data_mask(self, data: Any, mask: Any) -> None:
        """Take over other data and another mask. Raises as the constructor does."""
        _check(data, mask)
        self._masked_data, self._masked_mask = data, mask

    def __repr__(self) -> str:
        from cygrad.masked.maskedtensor._text import text  # few programs print one

        return text(self._masked_data, self._masked_mask)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self._masked_data, self._masked_mask, self.requires_grad)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from cygrad.masked.maskedtensor.answers import FUNCTIONS  # which imports this module

        kwargs = kwargs or {}
        if func in FUNCTIONS:
            return FUNCTIONS[func](*args, **kwargs)
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with cygrad._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from cygrad.masked.maskedtensor.answers import OPS  # which imports this module

        packet = func.overloadpacket
        answer = OPS.get(packet.__name__)
        if answer is not None:
            return answer(packet, *args, **(kwargs or {}))
        warn(
            f"{packet.__name__} is not implemented in __torch_dispatch__ for MaskedTensor.\n"
            "  use get_data() and get_mask(), or to_tensor(value), which puts a number where the mask is False"
        )
        return NotImplemented

    @classmethod
    def unary(cls, fn: Any, data: Any, mask: Any) -> MaskedTensor:
        """Return the masked tensor of `fn(data)` and a mask.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False]))
        >>> type(x).unary(cygrad.neg, x.get_data(), x.get_mask())
        MaskedTensor(
          [-1,       --]
        )
        """
        return MaskedTensor(fn(data), mask)

    def to_tensor(self, value: Any) -> Tensor:
        """Return the data as a plain tensor, with `value` where the mask is False.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False])).to_tensor(-1)
        tensor([ 1, -1])
        """
        return self.get_data().masked_fill(~self.get_mask(), value)

    def get_data(self) -> Tensor:
        """Return the data as a plain tensor, with the elements that the mask leaves out. Gradients flow to this tensor.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False])).get_data()
        tensor([1, 2])
        """
        return _Data.apply(self)

    def get_mask(self) -> Tensor:
        """Return the mask.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False])).get_mask()
        tensor([ True, False])
        """
        return self._masked_mask

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The same data and mask without history."""
        return self.detach()

    def tolist(self) -> Any:
        """Raise RuntimeError: an element that is missing has no value.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False]))
        >>> x.tolist()
        Traceback (most recent call last):
            ...
        RuntimeError: .tolist() is not supported for tensor subclasses, got MaskedTensor
          put a number where elements are missing: x.to_tensor(0).tolist()
        """
        raise RuntimeError(
            ".tolist() is not supported for tensor subclasses, got MaskedTensor\n"
            "  put a number where elements are missing: x.to_tensor(0).tolist()"
        )

    def numpy(self, *, force: bool = False) -> Any:
        """Raise RuntimeError: an element that is missing has no value.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False]))
        >>> x.numpy()
        Traceback (most recent call last):
            ...
        RuntimeError: .numpy() is not supported for tensor subclasses.
          put a number where elements are missing: x.to_tensor(0).numpy()
        """
        raise RuntimeError(
            ".numpy() is not supported for tensor subclasses.\n"
            "  put a number where elements are missing: x.to_tensor(0).numpy()"
        )

    @property
    def layout(self) -> Any:
        """The layout of the data: `strided`, `sparse_coo` or `sparse_csr`."""
        return self._masked_data.layout

    def is_sparse_coo(self) -> bool:
        """Whether the data are in coordinate format.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False]))
        >>> x.is_sparse_coo()
        False
        """
        return self.layout == cygrad.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether the data are in compressed rows.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False]))
        >>> x.is_sparse_csr()
        False
        """
        return self.layout == cygrad.sparse_csr

    @property
    def is_sparse(self) -> bool:
        """Whether the data are sparse.

        >>> import cygrad
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> x = cygrad.masked.masked_tensor(cygrad.tensor([1, 2]), cygrad.tensor([True, False]))
        >>> x.is_sparse
        False
        """
        return self.is_sparse_coo() or self.is_sparse_csr()


def _shell(cls: type, data: Any, requires_grad: bool) -> Any:
    """Return a tensor of the class without data and mask, of the shape, dtype and device of `data`."""
    strides = data.stride() if data.layout == cygrad.strided else None
    make: Any = Tensor._make_wrapper_subclass  # type: ignore[attr-defined]
    return make(cls, data.size(), strides=strides, dtype=data.dtype, device=data.device, requires_grad=requires_grad)


def _rebuilt(data: Any, mask: Any, requires_grad: bool) -> MaskedTensor:
    made = masked(data, mask)
    made.requires_grad_(requires_grad)
    return made


def masked(data: Any, mask: Any) -> MaskedTensor:
    """Return the result of an op: a masked tensor of new data, which are not copied, and a mask."""
    made = _shell(MaskedTensor, data, False)
    made._set_data_mask(data, mask)
    return made


def _check(data: Any, mask: Any) -> None:
    if type(data) is not type(mask):
        raise TypeError(f"data and mask must have the same type. Got {type(data)} and {type(mask)}")
    if data.layout not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if data.layout == cygrad.sparse_coo and not _tensors_match(data.indices(), mask.indices()):
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    if data.layout == cygrad.sparse_csr and not (
        _tensors_match(data.crow_indices(), mask.crow_indices())
        and _tensors_match(data.col_indices(), mask.col_indices())
    ):
        raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")
    if mask.dtype != cygrad.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


def _of_one_pattern(data: Any, mask: Any) -> tuple[Any, Any]:
    """Return data and mask; sparse data with an entry for each of the mask, if they have another number of them."""
    if data.layout == cygrad.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout in LAYOUTS[1:] and data._nnz() != mask._nnz():
        data = data.to_dense().sparse_mask(mask)
    return data, mask


# -- masks, and what equals what --


def _tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two tensors have equal elements, or close ones. Raises ValueError for masked tensors and two layouts."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    b = b.to(a.dtype)
    if a.layout != cygrad.strided:
        return all(_tensors_match(one, other, exact) for one, other in zip(parts_of(a), parts_of(b)))
    if a.dim() != b.dim():
        return False
    return bool(cygrad.eq(a, b).all()) if exact else cygrad.allclose(a, b, rtol=rtol, atol=atol)


def parts_of(t: Any) -> tuple[Any, ...]:
    """Return the values of a sparse tensor, and what tells where they are."""
    if t.layout == cygrad.sparse_coo:
        return t.values(), t.indices()
    return t.values(), t.crow_indices(), t.col_indices()


def with_values(t: Any, values: Any) -> Any:
    """Return a sparse tensor with other values in the places of those of `t`."""
    if t.layout == cygrad.sparse_coo:
        return cygrad.sparse_coo_tensor(t.indices(), values, t.size(), is_coalesced=True)
    return cygrad.sparse_csr_tensor(t.crow_indices(), t.col_indices(), values, t.size())


def _masks_match(a: Any, b: Any) -> bool:
    """Whether two masked tensors have equal masks; True for others."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    return a._masked_mask is b._masked_mask or _tensors_match(a._masked_mask, b._masked_mask)


def data_of(value: Any) -> Any:
    """Return the data of a masked tensor, and of those in lists and tuples; anything else as it is."""
    return _inside(value, "_masked_data")


def mask_of(value: Any) -> Any:
    """Return the mask of a masked tensor, and of those in lists and tuples; anything else as it is."""
    return _inside(value, "_masked_mask")


def _inside(value: Any, part: str) -> Any:
    if is_masked_tensor(value):
        return getattr(value, part)
    if isinstance(value, (list, tuple)) and any(map(is_masked_tensor, value)):
        return type(value)(_inside(each, part) for each in value)
    return value


# -- to data and back, with gradients --


class _Masked(Function):
    """data, mask -> masked tensor."""

    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        data, mask = _of_one_pattern(data.detach(), mask)
        return masked(data.clone(), mask.clone())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0], None


class _Reduced(Function):
    """The result of a reduction, mask -> masked tensor. The reduction and its gradient are those of plain tensors."""

    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        return masked(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return data_of(grads[0]), None


def reduced(data: Any, mask: Any) -> MaskedTensor:
    """Return the masked tensor of what a reduction of data has given, with its history."""
    return _Reduced.apply(data, mask)


class _Data(Function):
    """masked tensor -> its data."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        ctx.mask = input._masked_mask
        return input._masked_data.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        return grad if is_masked_tensor(grad) else masked(grad, ctx.mask)
