"""rearrange: permutes, splits and joins dimensions by name."""

from __future__ import annotations

import math
import re
from typing import Any

from cygrad._core.graph.tensor import Tensor
from cygrad._ops.base.slicing import stack

_DOTS = "…"


def rearrange(tensor: Tensor, pattern: str, **axes_lengths: int) -> Tensor:
    """Return a tensor with its dimensions reordered, split or joined, as in `"b (h k) -> (b k) h"`.

    To the left of the arrow every dimension has a name. Names in parentheses are the factors of one dimension; all of
    them but one need a length in `axes_lengths`. To the right, the same names appear in any order; those in parentheses
    are joined to one dimension. `1` or `()` is a dimension of length 1, `...` stands for all unnamed dimensions. A list
    of tensors is stacked first. The result is a view if possible. Raises ValueError for invalid patterns and patterns
    that do not fit.

    >>> import cygrad
    >>> cygrad.func.rearrange(cygrad.tensor([[1, 2, 3, 4]]), "b (h k) -> (b k) h", k=2)
    tensor([[1, 3],
            [2, 4]])
    """
    if not isinstance(tensor, Tensor):
        tensor = stack(tensor)
    left, right = _sides(pattern, axes_lengths)
    rest, least = tensor.dim() - len(left), ""
    if _DOTS in left:
        rest, least = rest + 1, "less than or "
    if rest < 0 or rest and not least:
        raise ValueError(
            f"Number of dimensions in pattern ({tensor.dim() - rest}) must be {least}equal to the number of dimensions "
            f"in the tensor ({tensor.dim()})"
        )
    unnamed = [f"{_DOTS}{i}" for i in range(rest)]
    left, right = _filled(left, unnamed), _filled(right, unnamed)
    lengths = {}
    for group, length in zip(left, tensor.shape, strict=True):
        lengths.update(_lengths(group, length, axes_lengths))
    names = [name for group in left for name in group]
    split = tensor.reshape([lengths[name] for name in names])
    ordered = split.permute([names.index(name) for group in right for name in group])
    return ordered.reshape([math.prod(lengths[name] for name in group) for group in right])


def _sides(pattern, lengths):
    """Return the dimensions on both sides of the arrow, after checking that they match."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_dimensions(side) for side in sides)
    here, there = ({name for group in side for name in group} for side in (left, right))
    if _DOTS in there and _DOTS not in here:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if _DOTS in here and _DOTS not in left:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if alone := here ^ there:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {alone}")
    for name, length in lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
        if name not in here:
            raise ValueError(f"Identifiers not found in rearrange expression: { {name} }")
    return left, right


def _dimensions(side):
    """Return a tuple of names for each dimension on one side; just "…" for the unnamed ones."""
    found, names = [], set()
    inner: Any = None
    for token in re.findall(r"\.+|\w+|[^ ]", side):
        if token == "(":
            if inner is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inner = []
        elif token == ")":
            if inner is None:
                raise ValueError("Brackets are not balanced")
            found.append(tuple(inner))
            inner = None
        else:
            name = _name(token)
            if name in names:
                raise ValueError(
                    "Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor "
                    if name == _DOTS
                    else f"Indexing expression contains duplicate dimension '{name}'"
                )
            if name:
                names.add(name)
            if inner is not None:
                inner += [name] if name else []
            else:
                found.append(name if name == _DOTS else (name,) if name else ())
    if inner is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    return found


def _name(token):
    """Return the name that a token stands for, or "" for 1."""
    if token in ("...", _DOTS):
        return _DOTS
    if token.startswith("."):
        raise ValueError("Expression may contain dots only inside ellipsis (...)")
    if not re.match(r"\w", token):
        raise ValueError(f"Unknown character '{token}'")
    if token.isdecimal():
        if int(token) != 1:
            raise ValueError("rearrange only supports unnamed axes of size 1")
        return ""
    if not token.isidentifier():
        raise ValueError(f"Invalid axis identifier: {token}\nnot a valid python identifier")
    if token.startswith("_") or token.endswith("_"):
        raise ValueError(f"Invalid axis identifier: {token}\naxis name should should not start or end with underscore")
    return token


def _filled(side, unnamed):
    """Return the dimensions of one side, with names for those that the ellipsis stands for."""
    found = []
    for group in side:
        if group == _DOTS:
            found += [(name,) for name in unnamed]
        else:
            found.append(tuple(n for name in group for n in (unnamed if name == _DOTS else (name,))))
    return found


def _lengths(group, length, given):
    """Return the length of each factor of one dimension."""
    known = {name: given[name] for name in group if name in given}
    open_ = [name for name in group if name not in given]
    product = math.prod(known.values())
    if len(open_) > 1:
        raise ValueError(f"cannot infer the sizes of two dimensions at once {open_[0]} and {open_[1]}")
    if open_:
        if min(known.values(), default=1) < 1 or length % product:
            parts = tuple(given.get(name, "?") for name in group)
            raise ValueError(f"inferred dimension does not evenly fit into larger dimension: {length} vs {parts}")
        return {**known, open_[0]: length // product}
    if product != length or min(known.values(), default=1) < 0:
        raise ValueError(
            f"Dimension sizes to do not match ({length} != {product}) when matching dimension pack {tuple(group)}"
        )
    return known
