"""Functions of sparse tensors, as `torch.sparse`: those whose gradients are sparse, too, and a few more.

Sparse tensors are made by `sparse_coo_tensor`, `sparse_csr_tensor` and the like, and by the method `to_sparse`.

>>> import cygrad
>>> a = cygrad.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().requires_grad_()
>>> cygrad.sparse.mm(a, cygrad.ones(2, 1)).sum().backward()
>>> a.grad.to_dense()
tensor([[0., 1.],
        [1., 0.]])
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.errors.messages import wrong_type as _wrong_type
from cygrad._kernels.sparse.errors import not_for as _not_for
from cygrad._ops.sparse import creation as _creation
from cygrad._ops.sparse import products as _products
from cygrad._ops.sparse.entries import entries as _entries
from cygrad._ops.sparse.entries import with_values as _with_values
from cygrad._ops.sparse.products import sampled_addmm
from cygrad._ops.sparse.reductions import log_softmax, softmax
from cygrad._ops.sparse.reductions import sparse_sum as sum

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "spsolve",
    "sum",
]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Return the product of two matrices; the gradient of a sparse one is sparse, with the same coordinates.

    `reduce`: for `mat1` by compressed rows, "mean", "amax" or "amin" in place of the sum. Raises RuntimeError for
    shapes
    and dtypes that do not match.

    >>> import cygrad
    >>> cygrad.sparse.mm(cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """
    for i, (name, value) in enumerate((("sparse", mat1), ("dense", mat2)), 1):
        if not isinstance(value, Tensor):
            raise _wrong_type("_sparse_mm", name, i, "Tensor", value)
    if reduce is not None:
        return _products.reduced(mat1, mat2, reduce)
    if mat1.layout is cygrad.strided and mat2.layout is cygrad.strided:
        return cygrad.mm(mat1, mat2)
    return _products.multiplied(mat1, mat2, True)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)`; the gradient of a sparse `mat1` is sparse.

    >>> import cygrad
    >>> cygrad.sparse.addmm(cygrad.ones(2, 1), cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]]), alpha=10)
    tensor([[11.],
            [21.]])
    """
    if mat1.layout is cygrad.strided and mat2.layout is cygrad.strided:
        return cygrad.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return _products.added(input, mat1, mat2, beta, alpha, True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """Return a sparse matrix with the rows of `diagonals` on the diagonals `offsets`, above the main one if positive.

    An element of a row is placed in the column of its index, so rows start to the right of what lies outside the
    matrix.

    >>> import cygrad
    >>> cygrad.sparse.spdiags(cygrad.tensor([[1, 2, 3], [4, 5, 6]]), cygrad.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1, 5, 0],
            [0, 2, 6],
            [0, 0, 3]])
    """
    for i, (name, value) in enumerate((("diagonals", diagonals), ("offsets", offsets)), 1):
        if not isinstance(value, Tensor):
            raise _wrong_type("_spdiags", name, i, "Tensor", value)
    rows, places = (diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals), offsets.reshape(-1)
    if diagonals.ndim not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if offsets.ndim > 1:
        raise RuntimeError("Offset must be scalar or vector")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if len(rows) != len(places):
        raise RuntimeError(f"Number of diagonals ({len(rows)}) does not match the number of offsets ({len(places)})")
    if layout not in (None, cygrad.sparse_coo, cygrad.sparse_csr, cygrad.sparse_csc):
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {_creation.word(layout)}"
        )
    if offsets.dtype is not cygrad.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.type_name}")
    if len(set(places.tolist())) != len(places):
        raise RuntimeError("Offset tensor contains duplicate values")
    height, width = shape
    columns = cygrad.arange(rows.shape[1], device=rows.device).expand(rows.shape)
    lines = columns - places.unsqueeze(1)
    inside = (lines >= 0) & (lines < height) & (columns < width)
    indices = cygrad.stack([lines[inside], columns[inside]])
    found = cygrad.sparse_coo_tensor(indices, rows[inside], (height, width))
    return found if layout in (None, cygrad.sparse_coo) else found.to_sparse(layout=layout)


def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """Solve `input @ x = other` for a matrix by compressed rows. As in PyTorch, this has no form for the CPU.

    >>> import cygrad
    >>> matrix = cygrad.eye(2).to_sparse_csr()
    >>> cygrad.sparse.spsolve(matrix, cygrad.ones(2))
    Traceback (most recent call last):
        ...
    NotImplementedError: Could not run 'aten::_spsolve' with arguments from the 'SparseCsrCPU' backend...
    """
    raise _not_for("_spsolve", "SparseCsrCUDA" if input.device.type == "cuda" else "SparseCsrCPU")


class check_sparse_tensor_invariants(ContextDecorator):
    """Whether the parts of new sparse tensors are checked: a context manager, a decorator, or `enable` and `disable`.

    In main memory indices are always compared with the size. This adds the same check on GPUs, and that of
    `is_coalesced`.

    >>> import cygrad
    >>> with cygrad.sparse.check_sparse_tensor_invariants():
    ...     cygrad.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    >>> cygrad.sparse.check_sparse_tensor_invariants.enable()
    >>> cygrad.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    >>> cygrad.sparse.check_sparse_tensor_invariants.disable()
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether checks are on."""
        return _creation.checking.is_on

    @staticmethod
    def enable() -> None:
        """Switch checks on, in all threads."""
        _creation.checking.is_on = True

    @staticmethod
    def disable() -> None:
        """Switch checks off, in all threads."""
        _creation.checking.is_on = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance "
                "for context nesting."
            )
        self.saved_state, _creation.checking.is_on = self.is_enabled(), self.state

    def __exit__(self, *error: Any) -> None:
        _creation.checking.is_on, self.saved_state = bool(self.saved_state), None

    def _recreate_cm(self) -> check_sparse_tensor_invariants:
        return type(self)(self.state)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """Return `gradcheck` for functions of sparse tensors: it changes the values that they store, and no other elements.

    >>> import cygrad
    >>> gradcheck = cygrad.sparse.as_sparse_gradcheck(cygrad.autograd.gradcheck)
    >>> a = cygrad.eye(2, dtype=cygrad.float64).to_sparse_csr().requires_grad_()
    >>> gradcheck(lambda a: cygrad.sparse.mm(a, cygrad.ones(2, 2, dtype=cygrad.float64)), (a,))
    True
    """

    def checked(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        kwargs.pop("masked", None)
        given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        patterns = [None if _is_dense(each) else each.detach() for each in given]
        plain = [
            each if pattern is None else _entries(pattern.clone()).requires_grad_(each.requires_grad)
            for each, pattern in zip(given, patterns)
        ]

        def of_values(*values: Any) -> Any:
            rebuilt = [v if pattern is None else _with_values(pattern, v) for v, pattern in zip(values, patterns)]
            found = func(*rebuilt)
            if isinstance(found, (tuple, list)):
                return tuple(each if _is_dense(each) else each.to_dense() for each in found)
            return found if _is_dense(found) else found.to_dense()

        return gradcheck(of_values, tuple(plain), **kwargs)

    return checked


def _is_dense(value: Any) -> bool:
    return not isinstance(value, Tensor) or value.layout is cygrad.strided


# -- the classes of early PyTorch --


class _SparseType(type):
    """The metaclass of `sparse.FloatTensor` and the like."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        return _creation.deprecated_sparse_tensor(cls.dtype, args, device)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.is_sparse and value.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


def _type_of(name: str, dtype: Any) -> _SparseType:
    doc = f"Makes sparse tensors of {dtype!r} from indices and values, or a shape. Prefer `sparse_coo_tensor`."
    return _SparseType(name, (), {"dtype": dtype, "is_cuda": False, "is_sparse": True, "__doc__": doc})


FloatTensor = _type_of("FloatTensor", cygrad.float32)
DoubleTensor = _type_of("DoubleTensor", cygrad.float64)
HalfTensor = _type_of("HalfTensor", cygrad.float16)
LongTensor = _type_of("LongTensor", cygrad.int64)
IntTensor = _type_of("IntTensor", cygrad.int32)
ShortTensor = _type_of("ShortTensor", cygrad.int16)
CharTensor = _type_of("CharTensor", cygrad.int8)
ByteTensor = _type_of("ByteTensor", cygrad.uint8)
