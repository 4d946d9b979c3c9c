"""Tensors computed from indices: arange, range, linspace, logspace, meshgrid, eye.

These are not recorded. The keyword arguments are described in creation.pyx.
"""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, facts, publish, shown
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.types.dtypes import dtype_of_number, get_default_dtype
from cygrad._kernels.cpu.base.copying import element
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.random.linspace import evenly_spaced, steps_from
from cygrad._kernels.device.cupy_library import made
from cygrad._kernels.tape.tape import noted_data
from cygrad._ops.base.arguments import integer, is_integer, require
from cygrad._ops.base.creation import check_place, delivered, number, only_strided, type_of_new

# -- arange --

_ARANGE = (
    "Number end, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device device "
    "= None, bool pin_memory = False, bool requires_grad = False",
    "Number start, Number end, Number step = 1, *, Tensor out = None, torch.dtype dtype = None, torch.layout "
    "layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False",
)


@shown
@facts(overloads="18")
def arange(
    *bounds,
    start=None,
    end=None,
    step=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """`arange(end)`, `arange(start, end)`, `arange(start, end, step)`: start, start + step, ..., excluding end.

    The dtype is int64 if all are ints, else the default dtype. Raises RuntimeError if step is 0 or has the wrong sign.

    >>> import cygrad
    >>> cygrad.arange(3), cygrad.arange(1, 2, 0.5)
    (tensor([0, 1, 2]), tensor([1.0000, 1.5000]))
    """
    only_strided(layout, "arange", out, device)
    place = check_place(device, pin_memory)
    if start is end is step is out is dtype is place is None and _plain(bounds):
        return delivered(noted_data(np.arange(*bounds, dtype=np.int64)), None, requires_grad, "arange")
    low, high, by = _bounds(bounds, start, end, step)
    is_whole = isinstance(low, int) and isinstance(high, int) and isinstance(by, int)
    wanted = type_of_new(dtype, out, dtype_of_number(0) if is_whole else get_default_dtype(), "arange")
    kind = wanted.numpy.kind
    if kind in "bc":
        raise messages.not_implemented_for("arange_cpu", wanted)
    count = None
    if kind in "iu":
        if wanted.numpy != np.int64 and not is_whole:
            count = _count(low, high, by)  # count the steps before they are truncated to integers
        elif by and not _whole(by):
            raise ValueError("step must be nonzero")
        low, high, by = _whole(low), _whole(high), _whole(by)
    array = made(place, _range, low, high, by, wanted.numpy, count)
    return delivered_range(array, out, requires_grad, "arange")


def delivered_range(array, out, requires_grad, function):
    """Run `_delivered`, with PyTorch's warning where `out` has elements, but another number of them."""
    if out is not None and 0 < out.numel() != array.size:
        warn(
            f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not "
            f"match the computed number of elements {array.size}. Note that this may occur as a result of rounding "
            f"error. The out tensor will be resized to a tensor of shape ({array.size},)."
        )
    return _delivered(array, out, requires_grad, function)


def _delivered(array, out, requires_grad, function, given=None):
    """Run `delivered`; an `out` with the same number of elements keeps its shape."""
    if out is not None and out.numel() == array.size:
        array = array.reshape(out.shape)
    return delivered(array, out, requires_grad, function, None, given)


def _plain(bounds):
    """Whether these bounds can take the fast path: ints for which np.arange is exact."""
    if len(bounds) == 1:
        return type(bounds[0]) is int and 0 <= bounds[0] < 2**53
    if len(bounds) == 3 and type(bounds[2]) is int and bounds[2] > 0:
        return _plain(bounds[:2]) and max(-bounds[0], bounds[1], bounds[2]) < 2**31  # NumPy divides: exact up to 2^31
    return len(bounds) == 2 and type(bounds[0]) is type(bounds[1]) is int and -(2**53) <= bounds[0] <= bounds[1] < 2**53


def _bounds(given, start, end, step):
    """Return (low, high, by) as numbers."""
    values = [start, end, step]
    first = 1 if len(given) == 1 and end is None else 0  # the argument of arange(3) is the end
    if len(given) > 3 or (not given and end is None):
        raise messages.no_such_call("arange", given, {}, _ARANGE)
    for i, value in enumerate(given, first):
        if values[i] is not None:
            raise TypeError(f"arange() got multiple values for argument '{('start', 'end', 'step')[i]}'")
        if value is None:
            if len(given) == 1:
                raise messages.wrong_type("arange", "end", 1, "Number", None)
            raise messages.no_such_call("arange", given, {}, _ARANGE)
        values[i] = value
    low, high, by = values
    return (
        0 if low is None else number(low, "arange", "start", 1),
        number(high, "arange", "end", 1 if len(given) < 2 else 2),
        1 if by is None else number(by, "arange", "step", 3),
    )


def _whole(value):
    """Convert a bound of an integer range to int64."""
    if isinstance(value, complex) or not -(2**63) <= value < 2**63:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(value)


def _check_range(low, high, by):
    """Raise RuntimeError unless a finite number of steps leads from low to high."""
    for value in (low, high, by):
        if isinstance(value, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
    if by == 0 or by != by:
        raise RuntimeError("step must be nonzero")
    if not math.isfinite(low) or not math.isfinite(high):
        raise RuntimeError(f"unsupported range: {low} -> {high}")
    if (high - low) * by < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _count(low, high, by):
    """Return the number of steps from low to high."""
    _check_range(low, high, by)
    return math.ceil((high - low) / by)


def _range(library, low, high, by, dtype, count=None):
    if count is None:
        count = _count(low, high, by) if dtype.kind not in "iu" else _whole_count(low, high, by)
    return _steps(library, low, by, count, dtype)


def _steps(library, low, by, count, dtype):
    """Return `count` numbers from `low` on."""
    checked_lengths((count,))
    return steps_from(library, low, by, count, dtype)


def _whole_count(low, high, by):
    _check_range(low, high, by)
    return max(0, -(-(high - low) // by))


@shown
def range(
    start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return start, start + step, ... up to and including `end`, in the default dtype; deprecated in favor of `arange`.

    Raises RuntimeError if step is 0 or has the wrong sign.

    >>> import cygrad, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    only_strided(layout, "range", out, device)
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    place = check_place(device, pin_memory)
    if end is None:
        start, end = 0, start
    low, high, by = (
        number(value, "range", name, i)
        for i, (value, name) in enumerate(((start, "start"), (end, "end"), (step, "step")), 1)
    )
    wanted = type_of_new(dtype, out, get_default_dtype(), "range")
    kind = wanted.numpy.kind
    if kind in "bc":
        raise messages.not_implemented_for("range_cpu", wanted)
    if kind in "iu":
        low, high, by = _whole(low), _whole(high), _whole(by)
    _check_range(low, high, by)
    array = made(place, _range_with_end, low, high, by, wanted.numpy)
    return _delivered(array, out, requires_grad, "range")


def _range_with_end(library, low, high, by, dtype):
    return _steps(library, low, by, math.floor((high - low) / by) + 1, dtype)


# -- linspace, logspace --


def _spaced_signatures(more):
    kinds = [f"{a} start, {b} end, int steps" for a in ("Number", "Tensor") for b in ("Number", "Tensor")]
    return tuple(
        f"{kind}, {more}*, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device "
        "device = None, bool pin_memory = False, bool requires_grad = False"
        for kind in kinds
    )


_SPACED = {"linspace": _spaced_signatures(""), "logspace": _spaced_signatures("float base = 10, ")}


def _ends(start, end, steps, function):
    """Return the bounds as numbers, and the number of elements."""
    if type(start) in (int, float) and type(end) in (int, float) and type(steps) is int and 0 <= steps < 2**63:
        return start, end, steps
    given = [value for value in (start, end, steps) if value is not None]
    if not all(isinstance(v, (Tensor, int, float, complex, np.generic)) for v in given) or not is_integer(steps):
        raise messages.no_such_call(function, given, {}, _SPACED[function])
    named = {"start": start, "end": end}
    large = [f"{name} with {v.ndim} dimension(s)" for name, v in named.items() if isinstance(v, Tensor) and v.ndim]
    if large:
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but got {' and '.join(large)}."
        )
    bounds = [
        number(value.detach() if isinstance(value, Tensor) else value, function, name, i)
        for i, (name, value) in enumerate(named.items(), 1)
    ]
    count = integer(steps, function, "steps", 3)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    return bounds[0], bounds[1], count


def _type_between(dtype, out, low, high, function):
    """Return the dtype of the numbers between two bounds."""
    default = get_default_dtype()
    if isinstance(low, complex) or isinstance(high, complex):
        wanted = type_of_new(dtype, out, default.to_complex(), function)
        if not wanted.is_complex:
            raise RuntimeError(
                f"torch.{function}(): inferred dtype {messages.c_name(default.to_complex())} can't be safely cast to "
                f"passed dtype {wanted.type_name}"
            )
        return wanted
    wanted = type_of_new(dtype, out, default, function)
    if wanted.numpy.kind == "b":
        raise messages.not_implemented_for(f"{function}_cpu", wanted)
    return wanted


def _ends_of_type(low, high, count, wanted):
    """Convert the bounds to the dtype, as far as `count` elements use them. Raises RuntimeError if they do not fit."""
    if wanted.numpy.kind not in "iu":
        return low, high
    whole = [element(value, wanted.numpy).item() for value in (low, high)[:count]]
    return whole + [0] * (2 - len(whole))


@shown
@facts(overloads="")
def linspace(
    start, end, steps=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return `steps` evenly spaced numbers `start + i * (end - start) / (steps - 1)`, both ends included.

    >>> import cygrad
    >>> cygrad.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    only_strided(layout, "linspace", out, device)
    place = check_place(device, pin_memory)
    low, high, count = _ends(start, end, steps, "linspace")
    wanted = _type_between(dtype, out, low, high, "linspace")
    checked_lengths((count,))
    low, high = _ends_of_type(low, high, count, wanted)
    array = made(place, evenly_spaced, low, high, count, wanted.numpy)
    return _delivered(array, out, requires_grad, "linspace", (low, high, count))


@shown
@facts(overloads="")
def logspace(
    start,
    end,
    steps=None,
    base=10.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Return `steps` numbers from base^start to base^end, both included, evenly spaced on a log scale.

    >>> import cygrad
    >>> cygrad.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    only_strided(layout, "logspace", out, device)
    place = check_place(device, pin_memory)
    low, high, count = _ends(start, end, steps, "logspace")
    wanted = _type_between(dtype, out, low, high, "logspace")
    checked_lengths((count,))
    if count != 1:
        low, high = _ends_of_type(low, high, count, wanted)
    compute = np.dtype(np.complex128 if wanted.numpy.kind == "c" else np.float64)
    exponents = made(place, evenly_spaced, low, high, count, compute)
    array = _powers(number(base, "logspace", "base", 4), exponents, wanted.numpy)
    return _delivered(noted_data(array), out, requires_grad, "logspace", (low, high, count, base))


@silent
def _powers(base, exponents, dtype):
    found = np.power(base, exponents)
    if found.size == 1 and dtype.kind in "iu":  # a single power is computed from the unconverted start and must fit
        element(found.item(), dtype)
    return found.astype(dtype, copy=False)


# -- meshgrid, eye --


@facts(devices="together", in_python=True)
def meshgrid(*tensors, indexing=None):
    """Return grid coordinates: for each vector (of lengths n, m, ...) a tensor (n, m, ...) that varies along its axis.

    With `indexing` 'ij' dimensions are in the order of the vectors; 'xy' swaps the first two. The results are views.
    Raises RuntimeError for vectors of different dtypes.

    >>> import cygrad
    >>> rows, columns = cygrad.meshgrid(cygrad.arange(2), cygrad.arange(3), indexing="ij")
    >>> columns
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
        indexing = "ij"
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for value in tensors:
        t = require(value, "meshgrid", "tensors")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    if not isinstance(indexing, str):
        raise messages.wrong_keyword("meshgrid", "indexing", "str", indexing)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    exchange = indexing == "xy" and len(tensors) > 1
    if exchange:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(array_of(t).size for t in tensors)
    grids = [t.reshape([n if k == i else 1 for k, n in enumerate(shape)]).expand(shape) for i, t in enumerate(tensors)]
    if exchange:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@shown
@facts(overloads="18")
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Return a matrix of n rows and m (or n) columns with ones on the diagonal and zeros elsewhere.

    >>> import cygrad
    >>> cygrad.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    only_strided(layout, "eye", out, device)
    place = check_place(device, pin_memory)
    rows = integer(n, "eye", "n", 1)
    columns = rows if m is None else integer(m, "eye", "m", 2)
    for length, name in ((rows, "n"), (columns, "m")):
        if length < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    wanted = type_of_new(dtype, out, get_default_dtype(), "eye")
    checked_lengths((rows, columns))
    array = made(place, _ones_on_diagonal, rows, columns, wanted.numpy)
    return delivered(array, out, requires_grad, "eye")


def _ones_on_diagonal(library, rows, columns, dtype):
    array = library.zeros((rows, columns), dtype)
    array.reshape(-1)[: min(rows, columns) * columns : columns + 1] = 1
    return array


composite = {"meshgrid": FUNCTION_ONLY}
functions = publish(globals())
functions |= {function.__name__: function for function in (arange, range, linspace, logspace, eye)}
