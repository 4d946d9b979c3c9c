"""Comparison of results in tests."""

from __future__ import annotations

import collections.abc
import numbers
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.errors.sites import warn

__all__ = ["assert_allclose", "assert_close"]

_EQUAL = (0.0, 0.0)
_TOLERANCES = {
    cygrad.float16: (1e-3, 1e-5),
    cygrad.float32: (1.3e-6, 1e-5),
    cygrad.float64: (1e-7, 1e-7),
    cygrad.complex64: (1.3e-6, 1e-5),
    cygrad.complex128: (1e-7, 1e-7),
}
_TYPES_OF_NUMBERS = {int: cygrad.int64, float: cygrad.float64, complex: cygrad.complex128}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: Any = None,
    atol: Any = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise AssertionError unless `|actual - expected| <= atol + rtol |expected|` for each element.

    Compares tensors, NumPy arrays, numbers, None, and sequences and mappings of these, which may be nested. `rtol` and
    `atol` must be given together; by default they depend on the dtype: 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for
    float64, 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5 for bfloat16, 0 for integers; the larger ones if dtypes differ.
    Sparse tensors are compared by their indices and values, or as dense ones without `check_layout` if layouts differ.
    Tensors on the device "meta" are compared by shape, dtype and the like alone.
    Shapes must be equal, as must dtypes with `check_dtype`, and strides with `check_stride`.
    `msg` replaces the error text, or is a function that derives a text from it.

    Raises TypeError for objects that cannot be compared, and ValueError if only one of `rtol` and `atol` is given.

    >>> import cygrad
    >>> cygrad.testing.assert_close(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, 2.000001]))
    >>> cygrad.testing.assert_close({"loss": 1.0}, {"loss": 1.5})
    Traceback (most recent call last):
        ...
    AssertionError: Scalars are not close!
    <BLANKLINE>
    Expected 1.5 but got 1.0.
    Absolute difference: 0.5 (up to 1e-07 allowed)
    Relative difference: 0.3333333333333333 (up to 1e-07 allowed)
    <BLANKLINE>
    The failure occurred for item ['loss']
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    if rtol is not None and (rtol < 0 or atol < 0):
        raise ValueError(f"'rtol' and 'atol' must be at least 0, but got rtol={rtol} and atol={atol}.")
    options = {
        "allow_subclasses": allow_subclasses,
        "tolerances": None if rtol is None else (rtol, atol),
        "equal_nan": equal_nan,
        "checked": [
            name
            for name, is_checked in (
                ("shape", True),
                ("device", check_device),
                ("layout", check_layout),
                ("dtype", check_dtype),
                ("stride()", check_stride),
            )
            if is_checked
        ],
    }
    for where, a, b in list(_pairs(actual, expected, "", allow_subclasses)):
        text = _difference(a, b, options)
        if text is not None:
            text += where and f"\n\nThe failure occurred for item {where}"
            raise AssertionError(msg(text) if callable(msg) else msg or text)


def assert_allclose(
    actual: Any, expected: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = True, msg: Any = ""
) -> None:
    """Deprecated name of `assert_close`: dtypes and devices may differ, and NaN equals NaN."""
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    actual, expected = (x if isinstance(x, Tensor) else cygrad.tensor(x) for x in (actual, expected))
    if rtol is None and atol is None:
        of_type = {cygrad.float16: (1e-3, 1e-3), cygrad.float32: (1e-4, 1e-5), cygrad.float64: (1e-5, 1e-8)}
        rtol, atol = map(max, zip(*[of_type.get(x.dtype, _EQUAL) for x in (actual, expected)], strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=False, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip


# -- pairing of values --


def _is_sequence(x):
    return isinstance(x, collections.abc.Sequence) and not isinstance(x, (str, bytes))


def _pairs(a, b, where, allow_subclasses):
    """Yield (path, actual, expected) for all leaves; raise for containers that differ and leaves of unknown types."""
    if _is_sequence(a) and _is_sequence(b):
        if len(a) != len(b):
            raise _at(where, AssertionError, f"The length of the sequences mismatch: {len(a)} != {len(b)}")
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _pairs(x, y, f"{where}[{i}]", allow_subclasses)
    elif isinstance(a, collections.abc.Mapping) and isinstance(b, collections.abc.Mapping):
        if a.keys() != b.keys():
            lacking, more = (sorted(x.keys() - y.keys(), key=str) for x, y in ((b, a), (a, b)))
            raise _at(
                where,
                AssertionError,
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {lacking}\n"
                f"Additional keys in the actual mapping: {more}",
            )
        for key in sorted(a.keys(), key=str):
            yield from _pairs(a[key], b[key], f"{where}[{key!r}]", allow_subclasses)
    elif _can_be_compared(a, b, allow_subclasses):
        yield where, a, b
    else:
        text = f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}."
        raise _at(where, TypeError, text)


def _at(where, error, text):
    return error(text + (where and f"\n\nThe failure occurred for item {where}"))


def _can_be_compared(a, b, allow_subclasses):
    if a is None or b is None:
        return True
    for kind in (Tensor, np.ndarray):
        if isinstance(a, kind) and isinstance(b, kind):
            return allow_subclasses or type(a) is type(b)
    return all(isinstance(x, (numbers.Number, np.bool_)) for x in (a, b))


# -- comparison of two leaves --


def _difference(a, b, options):
    """Return the error text for two leaves, or None if they are close."""
    if a is None or b is None:
        return None if a is b else f"None mismatch: {a} is not {b}"
    if isinstance(a, (bool, np.bool_)) and isinstance(b, (bool, np.bool_)):
        return None if a == b else f"Booleans mismatch: {a} is not {b}"
    if isinstance(a, np.ndarray):
        a, b = cygrad.as_tensor(a), cygrad.as_tensor(b)
    return _of_tensors(a, b, options) if isinstance(a, Tensor) else _of_numbers(a, b, options)


def _of_numbers(a, b, options):
    a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
    if "dtype" in options["checked"] and type(a) is not type(b):
        return f"The (d)types do not match: {type(a)} != {type(b)}."
    tolerances = options["tolerances"] or _tolerances(*[_TYPES_OF_NUMBERS.get(type(x), cygrad.int64) for x in (a, b)])
    rtol, atol = tolerances
    gap = abs(a - b)
    is_close = a == b or (options["equal_nan"] and a != a and b != b)
    if is_close or (gap <= atol + rtol * abs(b) and gap != float("inf")):
        return None
    return _of_scalars(a, b, gap, gap / abs(b) if b else float("inf"), tolerances)


def _of_scalars(a, b, gap, ratio, tolerances):
    kind, allowed = _words(tolerances)
    return (
        f"Scalars are not {kind}!\n\nExpected {b} but got {a}.\nAbsolute difference: {gap}{allowed[0]}\n"
        f"Relative difference: {ratio}{allowed[1]}"
    )


def _words(tolerances):
    """Return the word for the comparison, and the suffixes of the absolute and the relative difference."""
    rtol, atol = tolerances
    if rtol == atol == 0:
        return "equal", ("", "")
    return "close", (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")


def _tolerances(*dtypes):
    """Return the tolerances for values of these dtypes."""
    return tuple(map(max, zip(*[_of_type(dtype) for dtype in dtypes], strict=True)))


def _of_type(dtype):
    found = _TOLERANCES.get(dtype)
    if found is None and dtype.is_floating_point:  # bfloat16: naming it would import a package
        return 1.6e-2, 1e-5
    return found or _EQUAL


def _of_tensors(a, b, options):
    for name in options["checked"]:
        ours, theirs = (getattr(x, name) if name != "stride()" else x.stride() for x in (a, b))
        if ours != theirs:
            return f"The values for attribute '{name}' do not match: {ours} != {theirs}."
    tolerances = options["tolerances"] or _tolerances(a.dtype, b.dtype)
    if a.is_meta or b.is_meta:  # which have no elements to compare
        return None
    a, b = a.detach().cpu(), b.detach().cpu()
    if a.layout is not b.layout:
        a, b = (x if x.layout is cygrad.strided else x.to_dense() for x in (a, b))
    if a.dtype is not b.dtype:
        common = cygrad.promote_types(a.dtype, b.dtype)
        a, b = a.to(common), b.to(common)
    if a.dtype in (cygrad.bool, cygrad.uint8):  # signed, so that differences can be negative
        a, b = a.to(cygrad.int64), b.to(cygrad.int64)
    if a.layout is not cygrad.strided:
        return _of_sparse(a, b, options, tolerances)
    return _of_elements(a, b, options, tolerances, "Tensor-likes")


# What PyTorch calls the indices of each layout.
_INDICES = {
    "coo": ("indices",),
    "csr": ("crow_indices", "col_indices"),
    "csc": ("ccol_indices", "row_indices"),
    "bsr": ("crow_indices", "col_indices"),
    "bsc": ("ccol_indices", "row_indices"),
}


def _of_sparse(a, b, options, tolerances):
    """Compare the parts of two sparse tensors of one layout; coordinates are merged if only one has them in order."""
    kind = str(a.layout).rpartition("_")[2]
    if kind == "coo" and a.is_coalesced() is not b.is_coalesced():
        a, b = a.coalesce(), b.coalesce()
    if a._nnz() != b._nnz():
        return (
            f"The number of specified values in sparse {kind.upper()} tensors does not match: {a._nnz()} != {b._nnz()}"
        )
    prefix = "_" if kind == "coo" else ""
    for part in _INDICES[kind]:
        ours, theirs = (getattr(x, prefix + part)() for x in (a, b))
        text = _of_elements(ours, theirs, options, _EQUAL, f"Sparse {kind.upper()} {part}")
        if text is not None:
            return text
    ours, theirs = (getattr(x, prefix + "values")() for x in (a, b))
    return _of_elements(ours, theirs, options, tolerances, f"Sparse {kind.upper()} values")


def _of_elements(a, b, options, tolerances, what):
    """Compare two dense tensors; `what` they are called in the error text."""
    rtol, atol = tolerances
    close = cygrad.isclose(a, b, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    if close.all():
        return None
    if not a.ndim:
        a, b = a.item(), b.item()
        return _of_scalars(a, b, abs(a - b), abs(a - b) / abs(b) if b else float("inf"), tolerances)
    gap = (a - b).abs()
    ratio = gap / b.abs()
    wrong, total = (~close).sum().item(), close.numel()
    kind, allowed = _words(tolerances)
    lines = [f"{what} are not {kind}!\n", f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"]
    for name, values, more in zip(("absolute", "relative"), (gap, ratio), allowed, strict=True):
        values = values.masked_fill(close, 0)
        place = int(values.argmax())
        index = tuple(map(int, np.unravel_index(place, a.shape)))
        lines.append(f"Greatest {name} difference: {values.flatten()[place].item()} at index {index}{more}")
    return "\n".join(lines)
