"""NumPy's ufuncs on tensors: `np.sin(t)`, `np.add(array, t)`, `array * t`, `np.maximum.reduce(t)` are recorded ops.

PyTorch converts its tensors to arrays here; in cygrad, gradients flow through. The row of an op declares its ufunc
(`ufunc`, `numpy`, or its name). Dtypes are promoted by cygrad's rules, and results are tensors. A ufunc without an op
is computed by NumPy, which raises PyTorch's error for tensors that require grad.
"""

import sys
from functools import partial, reduce
from typing import Any

import numpy as np

from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.opdef import ELEMENTWISE, OUT0, PRIVATE, declare, entries_by_ufunc, publish, registry
from cygrad._core.graph.record import apply1, result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import as_dtype, get_default_dtype
from cygrad._kernels.cpu.base.arrays import private
from cygrad._ops.base.arithmetic import div, mul
from cygrad._ops.base.creation import from_values, full_like
from cygrad._ops.base.pointwise import positive
from cygrad._ops.base.products import matmul
from cygrad._ops.base.slicing import stack, unbind
from cygrad._ops.elementwise.rounding import floor_divide, remainder, trunc
from cygrad._ops.lazy_families import import_all
from cygrad._ops.numpy_api.operands import Foreign, as_tensor, convert, deliver, operand, public, select, wrapped

# -- ufuncs that are not a single op of PyTorch --


def cbrt_rule(n, g):
    root = n.saved_result()
    return div(g, mul(mul(root, root), 3))


CBRT = declare("cbrt", cbrt_rule, saves=OUT0, flags=ELEMENTWISE | PRIVATE, ufunc="cbrt", inputs="self")


def cbrt(input):
    """Compute the real cube root: `np.cbrt(tensor)`. Saves the result r. Gradient: g / (3 r^2), inf at 0."""
    return apply1(CBRT, input if input.dtype.is_floating_point else input * 1.0, None)


COMPOSED = {
    np.cbrt: cbrt,
    np.positive: positive,
    np.divmod: lambda a, b: (floor_divide(a, b), remainder(a, b)),
    np.modf: lambda a: (a - trunc(a), trunc(a)),
    np.vecdot: lambda a, b: (np.conjugate(a) * b).sum(-1),
}
if hasattr(np, "matvec"):  # NumPy 2.2
    COMPOSED[np.matvec] = lambda a, b: matmul(a, b.unsqueeze(-1)).squeeze(-1)
    COMPOSED[np.vecmat] = lambda a, b: matmul(np.conjugate(a).unsqueeze(-2), b).squeeze(-2)

# The ops of `reduce` and `accumulate`; other binary ufuncs are applied slice by slice.
REDUCTIONS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "amax",
    np.minimum: "amin",
    np.logical_and: "all",
    np.logical_or: "any",
    np.logaddexp: "logsumexp",
}
SCANS = {
    np.add: "cumsum",
    np.multiply: "cumprod",
    np.maximum: "cummax",
    np.minimum: "cummin",
    np.logaddexp: "logcumsumexp",
}


def function_of(ufunc):
    """Return the function that implements a ufunc, or None."""
    found = entries_by_ufunc.get(ufunc) or COMPOSED.get(ufunc)
    if found is not None:
        return found
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc:
        if name in registry or public(name):
            found = registry[name].entry if name in registry else public(name)
        else:
            import_all()
            found = entries_by_ufunc.get(ufunc)
    elif getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        found = public(f"special.{name}")
    if found is not None:
        entries_by_ufunc[ufunc] = found
    return found


def apply(function, operands):
    """Call the function; convert numbers to tensors if it does not accept them."""
    try:
        return function(*operands)
    except TypeError:
        if all(isinstance(value, Tensor) for value in operands):
            raise
        kind = result_type(tuple(operands))
        operands = [
            value if isinstance(value, Tensor) else from_values(value, kind, False, "tensor") for value in operands
        ]
    except (NotImplementedError, RuntimeError):  # it requires one dtype, or does not support integers
        common = result_type(tuple(operands))
        if not (common.is_floating_point or common.is_complex):
            common = get_default_dtype()
        if all(isinstance(value, Tensor) and value.dtype is common for value in operands):
            raise
        operands = [as_tensor(value).to(common) for value in operands]
    return function(*operands)


# -- methods of ufuncs --


def call(ufunc, *inputs, out=None, where=True, dtype=None, **options):
    """Implement `ufunc(...)`."""
    check_options(ufunc, options, ("casting", "order", "subok"))
    operands = [operand(value) for value in inputs]
    if dtype is not None:
        operands = [value.to(as_dtype(dtype)) if isinstance(value, Tensor) else value for value in operands]
    result = apply(function_of(ufunc), operands)
    if not isinstance(result, tuple):
        return deliver(result, out, where)
    return tuple(deliver(r, o, where) for r, o in zip(result, out if isinstance(out, tuple) else (None,) * len(result)))


def check_options(ufunc, options, known):
    """Ignore options that have no effect here; reject others."""
    for name in options:
        if name not in known:
            raise TypeError(f"{ufunc.__name__}() of a tensor got an unexpected keyword argument '{name}'")


def reduce_(ufunc, array, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
    """Implement `ufunc.reduce(...)`, over one dimension, several, or all (None)."""
    t = as_tensor(array)
    if dtype is not None:
        t = t.to(as_dtype(dtype))
    if where is not True:
        identity = ufunc.identity if initial is None else initial
        if identity is None:
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
        t = select(where, t, identity)
    result = reduced(ufunc, t, axis, keepdims, initial)
    if initial is not None and ufunc in REDUCTIONS:
        result = call(ufunc, result, initial)
    return deliver(result, out)


def reduced(ufunc, t, axis, keepdims, initial=None):
    dims = tuple(range(t.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    dims = tuple(sorted(dim % t.ndim if t.ndim and -t.ndim <= dim < t.ndim else dim for dim in dims))
    if not dims:
        return t
    for dim in dims:
        if not 0 <= dim < t.ndim:
            raise np.exceptions.AxisError(dim, t.ndim)
    name = REDUCTIONS.get(ufunc)
    if name in ("sum", "amax", "amin") or (name and len(dims) == 1):
        return public(name)(t, dims[0] if len(dims) == 1 else dims, keepdims)
    kept = [dim for dim in range(t.ndim) if dim not in dims]
    flat = t.permute([*kept, *dims]).reshape([t.shape[dim] for dim in kept] + [-1])
    if name:
        result = public(name)(flat, -1)
    else:
        check_binary(ufunc)
        slices = unbind(flat, -1)
        if initial is not None:
            slices = (full_like(slices[0], initial), *slices) if slices else ()
        if not slices:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        result = reduce(partial(call, ufunc), slices)
    return result.reshape([1 if dim in dims else n for dim, n in enumerate(t.shape)]) if keepdims else result


def check_binary(ufunc):
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError("reduce only supported for binary functions")


def accumulate(ufunc, array, axis=0, dtype=None, out=None):
    """Implement `ufunc.accumulate(...)`."""
    check_binary(ufunc)
    t = as_tensor(array)
    if dtype is not None:
        t = t.to(as_dtype(dtype))
    name = SCANS.get(ufunc)
    if name:
        result = public(name)(t, axis)
        result = result[0] if isinstance(result, tuple) else result
    else:
        parts = list(unbind(t.bool() if ufunc.__name__.startswith("logical") else t, axis))
        for i in range(1, len(parts)):
            parts[i] = call(ufunc, parts[i - 1], parts[i])
        result = stack(parts, axis) if parts else t.clone()
    return deliver(result, out)


def reduceat(ufunc, array, indices, axis=0, dtype=None, out=None):
    """Implement `ufunc.reduceat(...)`: a reduction of each slice between neighboring indices."""
    check_binary(ufunc)
    t = as_tensor(array)
    if dtype is not None:
        t = t.to(as_dtype(dtype))
    starts = np.asarray(convert(indices)).tolist()
    parts = []
    for first, last in zip(starts, [*starts[1:], t.shape[axis]]):
        if not 0 <= first < t.shape[axis]:
            raise IndexError(f"index {first} out-of-bounds in {ufunc.__name__}.reduceat [0, {t.shape[axis]})")
        part = t.narrow(axis, first, max(last - first, 1))
        parts.append(reduced(ufunc, part, (axis,), False))
    return deliver(stack(parts, axis), out)


def outer(ufunc, a, b, **options):
    """Implement `ufunc.outer(...)`: apply it to each pair of elements of `a` and `b`."""
    a, b = as_tensor(a), as_tensor(b)
    return call(ufunc, a.reshape([*a.shape, *[1] * b.ndim]), b, **options)


def at(ufunc, a, indices, b=None):
    """Implement `ufunc.at(...)`: in place, and once per occurrence of an index."""
    indices = convert(indices)
    indices = tuple(map(_own, indices)) if isinstance(indices, tuple) else _own(indices)
    if not isinstance(a, Tensor):
        return ufunc.at(a, indices, *(() if b is None else (convert(b),)))
    places = np.arange(a.numel()).reshape(tuple(a.shape))[indices]
    flat = places.ravel()
    values = None if b is None else as_tensor(b).to(a.dtype).expand(places.shape).reshape(-1)
    order = np.argsort(flat, kind="stable")
    first = np.searchsorted(flat[order], flat[order])
    turn = np.empty(len(flat), np.intp)
    turn[order] = np.arange(len(flat)) - first  # number of earlier occurrences of the same index
    for k in range(int(np.max(turn)) + 1 if len(turn) else 0):
        chosen = np.flatnonzero(turn == k)
        index = tuple(map(tensor_of, np.unravel_index(flat[chosen], tuple(a.shape))))
        operands = [a[index]] if values is None else [a[index], values[tensor_of(chosen)]]
        a[index] = apply(function_of(ufunc), operands).to(a.dtype)
    return None


def _own(index):
    return private(index) if isinstance(index, np.ndarray) else index


METHODS: dict[str, Any] = {
    "__call__": call,
    "reduce": reduce_,
    "accumulate": accumulate,
    "reduceat": reduceat,
    "outer": outer,
    "at": at,
}


def by_numpy(ufunc, method, inputs, out, options):
    """Let NumPy compute a ufunc that has no op."""
    result = wrapped(getattr(ufunc, method)(*map(convert, inputs), **convert(options)))
    if out is None:
        return result
    return deliver(result, out) if not isinstance(result, tuple) else tuple(map(deliver, result, out))


def array_ufunc(self, ufunc, method, *inputs, **options):
    """Implement `__array_ufunc__`, which NumPy calls for its ufuncs on tensors; the op is recorded.

    >>> import cygrad, numpy
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> numpy.multiply(numpy.array([3.0, 4.0]), x).sum().backward()
    >>> x.grad
    tensor([3., 4.])
    """
    try:
        if method == "__call__" and not options and ufunc in entries_by_ufunc:  # fast path, as for `array * t`
            return apply(entries_by_ufunc[ufunc], list(map(operand, inputs)))
        return called(ufunc, method, inputs, options)
    except Foreign:
        return NotImplemented


def called(ufunc, method, inputs, options):
    """Run a ufunc with any method and options."""
    out = options.pop("out", None)
    if out is not None and len(out) == 1:
        (out,) = out
    if function_of(ufunc) is None:
        return by_numpy(ufunc, method, inputs, out, options)
    if out is not None:
        options["out"] = out
    return METHODS[method](ufunc, *inputs, **options)


methods = {"__array_ufunc__": array_ufunc}
functions = publish(globals())
