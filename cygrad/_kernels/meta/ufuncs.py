"""NumPy's ufuncs on meta arrays: operands are broadcast, and the dtype is what NumPy finds for one element."""

import re

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.meta.array import ndarray, ordered_like


def apply(ufunc, method, inputs, kwargs):
    """Carry out a call, a reduction, or the like."""
    if method == "at":
        return None
    outs = kwargs.pop("out", None)
    kwargs.pop("where", None)
    if method == "__call__" and ufunc.signature is not None:
        found = of_matrices(ufunc, inputs, kwargs)
    elif method == "__call__":
        found = elementwise(ufunc, inputs, kwargs)
    elif method in ("reduce", "accumulate"):
        found = along_axes(getattr(ufunc, method), inputs, kwargs)
    elif method == "outer":
        shape = np.shape(inputs[0]) + np.shape(inputs[1])
        found = described(ufunc, [one_element(value) for value in inputs], kwargs, shape)
    else:
        return NotImplemented
    if outs is None:
        return found
    results = found if isinstance(found, tuple) else (found,)
    for out, result in zip(outs, results):
        if out is not None and np.broadcast_shapes(out.shape, result.shape) != out.shape:
            raise ValueError(f"non-broadcastable output operand with shape {out.shape} and {result.shape}")
    return outs[0] if len(outs) == 1 else outs


def one_element(value, ndim=0):
    """Return an array of one element for a meta array, of the same dtype; a number as it is."""
    if isinstance(value, ndarray) or (isinstance(value, np.ndarray) and value.ndim):
        return np.zeros((1,) * max(ndim, value.ndim), value.dtype)
    return value


@silent
def described(function, operands, kwargs, shape, like=None):
    """Return meta arrays of a shape, of the dtypes of what the function returns for small operands."""
    found = function(*operands, **kwargs)
    several = found if isinstance(found, tuple) else (found,)
    new = tuple(
        ndarray(shape, np.asarray(each).dtype) if like is None else ordered_like(like, shape, np.asarray(each).dtype)
        for each in several
    )
    return new if isinstance(found, tuple) else new[0]


def elementwise(function, operands, kwargs):
    """Describe what a function computes of each element."""
    shape = np.broadcast_shapes(*(np.shape(value) for value in operands))
    like = next((value for value in operands if isinstance(value, ndarray) and value.shape == shape), None)
    return described(function, [one_element(value) for value in operands], kwargs, shape, like)


def along_axes(function, inputs, kwargs):
    """Describe a reduction, or what else the same call finds for arrays of length 1 along all axes."""
    array, *rest = inputs
    found = function(np.zeros((1,) * array.ndim, array.dtype), *rest, **kwargs)
    if np.ndim(found) == array.ndim:
        reduced = function.__name__ == "reduce"
        axes = _axes(rest[0] if rest else kwargs.get("axis", 0), array.ndim) if reduced else ()
    else:
        axes = _axes(rest[0] if rest else kwargs.get("axis", 0), array.ndim)
    keeps = np.ndim(found) == array.ndim
    shape = [1 if i in axes else n for i, n in enumerate(array.shape) if keeps or i not in axes]
    return ndarray(tuple(shape), np.asarray(found).dtype)


def _axes(axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    return tuple(i % ndim for i in ((axis,) if np.ndim(axis) == 0 else axis))


def of_matrices(ufunc, inputs, kwargs):
    """Describe the result of a generalized ufunc from its signature, such as "(n?,k),(k,m?)->(n?,m?)"."""
    kwargs.pop("axes", None)
    axis, keepdims = kwargs.pop("axis", -1), kwargs.pop("keepdims", False)
    given, made = ufunc.signature.split("->")
    lengths: dict[str, int] = {}
    stacks, absent = [], set()
    operands = list(_groups(given))
    for value, core in zip(inputs, operands):
        shape = np.shape(value)
        if axis != -1 and len(core) == 1:
            shape = (*shape[: axis % len(shape)], *shape[axis % len(shape) + 1 :], shape[axis])
        optional = [name for name in core if name.endswith("?")]
        if len(shape) < len(core) and optional:
            absent.update(optional)
            core = [name for name in core if name not in absent]
        if len(shape) < len(core):
            raise ValueError(f"{ufunc.__name__}: an operand has {len(shape)} dimensions, {len(core)} are required")
        split = len(shape) - len(core)
        stacks.append(shape[:split])
        for name, length in zip(core, shape[split:]):
            if lengths.setdefault(name, length) != length:
                raise ValueError(
                    f"{ufunc.__name__}: Input operand has a mismatch in its core dimension {name}: "
                    f"{length} is different from {lengths[name]}"
                )
    stack = np.broadcast_shapes(*stacks)
    types = [value.dtype if isinstance(value, ndarray) else np.asarray(value).dtype for value in inputs]
    small = [np.zeros((1,) * np.ndim(value), dtype) for value, dtype in zip(inputs, types)]
    with np.errstate(all="ignore"):
        found = ufunc(*small, **kwargs)
    several = found if isinstance(found, tuple) else (found,)
    results = []
    for each, core in zip(several, _groups(made)):
        shape = (*stack, *(lengths[name] for name in core if name not in absent))
        results.append(ndarray((*shape, 1) if keepdims else shape, np.asarray(each).dtype))
    return tuple(results) if isinstance(found, tuple) else results[0]


def _groups(text):
    for group in re.findall(r"\(([^)]*)\)", text):
        yield [name.strip() for name in group.split(",") if name.strip()]
