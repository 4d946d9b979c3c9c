"""Distinct values of a tensor. Derivatives are not implemented, as in PyTorch: backward raises an error."""

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import declare, publish, variant
from cygrad._core.graph.record import record_outputs
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.reduction import searching as kernels
from cygrad._kernels.device.cupy_library import require_values
from cygrad._ops.base.arguments import dim_argument, require
from cygrad._ops.base.batching.rules import of_unknown_shape
from cygrad._ops.base.checks.common import require_kind, typed

_NAMES = {"Unique2Backward0": "_unique2", "UniqueDimBackward0": "unique_dim"}


def _no_derivative(n, g):
    raise NotImplementedError(
        f"the derivative for '{_NAMES.get(n.name(), 'unique_consecutive')}' is not implemented.\n"
        "  detach the values with `.detach()`, or select elements, as in x[index], which has a derivative"
    )


UNIQUE = declare(
    "unique",
    _no_derivative,
    inputs="self",
    node="Unique2Backward0",
    kernel=kernels.distinct,
    batching=of_unknown_shape,
    in_python=True,
    float8="unique",
)
UNIQUE_DIM = variant(UNIQUE, "UniqueDimBackward0")
UNIQUE_CONSECUTIVE = declare(
    "unique_consecutive",
    _no_derivative,
    inputs="self",
    kernel=kernels.runs,
    batching=of_unknown_shape,
    in_python=True,
    float8="unique",
)


def _wanted(op, found, t, *wanted, dim=None):
    """Return the values, or a tuple of the values and the other requested arrays."""
    values = in_dtype(found[0], array_of(t).dtype)  # half-precision numbers are sorted as float32
    arrays = (values, *(array for array, flag in zip(found[1:], wanted) if flag))
    results = record_outputs(op, arrays, (t,), None, 1, (dim, *wanted))
    return results if len(results) > 1 else results[0]


def _check_flags(function, **flags):
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise messages.wrong_keyword(function, name, "bool", flag)


def _along(op, t, dim):
    """Return the dimension, the only one that may have length 0."""
    d = dim_argument(dim, t.ndim, op.name, "dim", 5)
    if not t.ndim:
        raise messages.no_dimensions(dim)
    if 0 in array_of(t).shape[:d] + array_of(t).shape[d + 1 :]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return d


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Return the distinct elements, or the distinct slices along `dim`, always in ascending order.

    With `return_inverse`, also returns the index of each element of `input` among them, with `return_counts` the number
    of occurrences of each; the result is then a tuple. All nans are distinct. Saves nothing. Raises NotImplementedError
    for complex tensors, and in backward.

    >>> import cygrad
    >>> cygrad.unique(cygrad.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    t = require(input, "_unique2")
    function = "_unique2" if dim is None else "unique_dim"
    _check_flags(function, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    require_values(array_of(t), function)
    if dim is None:
        require_kind("bif", "unique", t)
        found = kernels.distinct(as_float32(array_of(t)), return_inverse, return_counts)
        return _wanted(UNIQUE, found, t, return_inverse, return_counts)
    d = _along(UNIQUE_DIM, t, dim)
    require_kind("bif", "unique_dim", t)
    found = kernels.distinct_slices(as_float32(array_of(t)), d)
    return _wanted(UNIQUE_DIM, found, t, return_inverse, return_counts, dim=d)


@typed(return_inverse=bool, return_counts=bool)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Return the first element of each run of equal elements (or of equal slices along `dim`), in order; see `unique`.

    Saves nothing.

    >>> import cygrad
    >>> cygrad.unique_consecutive(cygrad.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    t = require(input, "unique_consecutive")
    _check_flags("unique_consecutive", return_inverse=return_inverse, return_counts=return_counts)
    require_values(array_of(t), "unique_consecutive")
    if dim is None:
        found = kernels.runs(array_of(t), return_inverse, return_counts)
    else:
        d = _along(UNIQUE_CONSECUTIVE, t, dim)
        found = kernels.runs_of_slices(array_of(t), d, return_inverse, return_counts)
    return _wanted(UNIQUE_CONSECUTIVE, found, t, return_inverse, return_counts, dim=dim)


functions = publish(globals())
