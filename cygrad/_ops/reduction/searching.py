"""Binary search in sorted sequences, and membership tests. Not differentiable."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, NONDIFF, declare, facts, publish
from cygrad._core.graph.record import as_type, promoted, record_n, result_type, write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import as_dtype
from cygrad._kernels.cpu.base.arrays import private
from cygrad._kernels.cpu.base.copying import check_bits, in_dtype
from cygrad._kernels.cpu.reduction import searching as kernels
from cygrad._kernels.device.cupy_library import beside, is_array
from cygrad._ops.base.batching.rules import rule

QUIET = NONDIFF | FUNCTION_ONLY
_NUMBERS = (int, float, complex)


def _kind_of(value):
    if type(value) is int:
        return result_type((value,))
    return value.dtype if isinstance(value, Tensor) else as_dtype(np.asarray(value).dtype)


def _finished(op, array, inputs, out, args, hint=None):
    """Record the result, or write it to `out`; `args` is for the batching rule."""
    return record_n(op, array, inputs, args, hint) if out is None else write_into(op, out, array, inputs, args)


# -- searchsorted --

SEARCHSORTED = declare(
    "searchsorted",
    flags=QUIET,
    kernel=kernels.searchsorted,
    inputs="sorted_sequence self",
    devices="together",
    overloads="",
    float8="searchsorted_out_cpu",
)


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Return the index at which each value of `input` would be inserted into `sorted_sequence`.

    It is i with sequence[i - 1] < value <= sequence[i], or with `right` sequence[i - 1] <= value < sequence[i].

    The sequence is ascending along its last dimension. `input`, a tensor or a number, is inserted before equal
    elements, or after them with `right` (or side='right'). All dimensions but the last must match, or the sequence is
    1-d. `sorter` holds the indices that sort the sequence. The result is int64, or int32 with `out_int32`. Raises
    RuntimeError for mismatched shapes.

    >>> import cygrad
    >>> cygrad.searchsorted(cygrad.tensor([1, 3, 5]), cygrad.tensor([3, 4]))
    tensor([1, 2])
    """
    return _places("searchsorted", sorted_sequence, input, out_int32, right, side, sorter, out)


def _places(name, sorted_sequence, input, out_int32, right, side, sorter, out):
    if not isinstance(sorted_sequence, Tensor) or not isinstance(input, (Tensor, *_NUMBERS)):
        raise messages.fits_none("searchsorted")
    sequence, values = (
        array_of(sorted_sequence),
        array_of(input) if isinstance(input, Tensor) else beside(input, array_of(sorted_sequence)),
    )
    _check_side(side, right)
    _check_sequence(sequence.shape, values.shape)
    _check_sorter(sorter, sequence)
    _check_kind(out, out_int32)
    for value in (sorted_sequence, input):
        kind = _kind_of(value)
        if kind.is_complex:
            raise messages.not_implemented_for("searchsorted_out_cpu", kind)
    if sorter is not None:
        sequence = np.take_along_axis(sequence, private(array_of(sorter)), -1)
    found = kernels.searchsorted(sequence, values, "right" if right or side == "right" else "left")
    if out_int32 or found.itemsize != 8:
        found = in_dtype(found, np.dtype(np.int32 if out_int32 else np.int64))
    args = sorter, right or side == "right", out_int32
    return _finished(SEARCHSORTED, found, (sorted_sequence, input), out, args, (name,))


@rule("searchsorted")
def _searchsorted(call):
    sequence, values = call.inputs
    sorter, right, out_int32 = call.args
    named = {"right": right, "out_int32": out_int32}
    if sequence.ndim == 1 and not call.has(sequence) and not call.has(sorter):
        return searchsorted(sequence, call.samples(values), sorter=sorter, **named)
    rows, sorter = call.full(sequence), None if sorter is None else call.full(sorter)
    found = call.full(_tensor(values, sequence))
    if sequence.ndim == 1:
        found = found.reshape(call.size, values.numel() if call.out.ndim else 1)
    return call.shaped(searchsorted(rows, found, sorter=sorter, **named), call.out.shape)


def _check_side(side, right):
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )


def _check_sequence(sequence, values):
    if not sequence:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if not values and len(sequence) > 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({len(sequence)}) and input value's dim(0) numel(1)"
        )
    if len(sequence) > 1 and sequence[:-1] != values[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence)} and input value "
            f"tensor {list(values)}"
        )


def _check_sorter(sorter, sequence):
    if sorter is None:
        return
    order = array_of(sorter)
    if order.shape != sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)}and got sorter tensor {list(order.shape)}"
        )
    if order.dtype != np.int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.type_name}"
        )
    if order.size and not is_array(order) and (order.min() < 0 or order.max() >= sequence.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def _check_kind(out, out_int32):
    if isinstance(out, Tensor) and array_of(out).dtype != (np.int32 if out_int32 else np.int64):
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending "
            f"on whether out_int32 flag is True, but we got output tensor's dtype {out.dtype.type_name} and out_int32 "
            f"flag is {bool(out_int32)}"
        )


@facts(devices="together", overloads="5")
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """Return the index of the interval between the ascending `boundaries` that contains each value of `input`.

    It is i with boundaries[i - 1] < value <= boundaries[i], or with `right` boundaries[i - 1] <= value < boundaries[i].

    `input` is a tensor or a number. A value equal to a boundary belongs to the interval before it, or with `right` to
    the one after it; see `searchsorted`.

    >>> import cygrad
    >>> cygrad.bucketize(cygrad.tensor([0.5, 2.0, 9.0]), cygrad.tensor([1.0, 2.0]))
    tensor([0, 1, 2])
    """
    if isinstance(boundaries, Tensor) and boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return _places("bucketize", boundaries, input, out_int32, right, None, None, out)


# -- isin --

ISIN = declare(
    "isin",
    flags=QUIET,
    kernel=kernels.isin,
    inputs="elements test_elements",
    devices="together",
    out_dtype="same",
    overloads="",
)


def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each of `elements` is in `test_elements`, or with `invert` not in it; one of the two may be a number.

    Raises RuntimeError for booleans and complex numbers.

    >>> import cygrad
    >>> cygrad.isin(cygrad.tensor([1, 2, 3]), cygrad.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    given = (elements, test_elements)
    tensors = tuple([value for value in given if isinstance(value, Tensor)])
    if not tensors or not all(isinstance(value, (Tensor, *_NUMBERS)) for value in given):
        raise messages.fits_none("isin")
    for value in given:
        check_bits(value)
        kind = _kind_of(value)
        if kind.is_complex or kind.name == "bool":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind.type_name}")
    if "bfloat16" in [t.dtype.name for t in tensors]:
        ours, tests = promoted(*given, 0)  # NumPy cannot promote bfloat16
    else:
        ours, tests = [array_of(value) if isinstance(value, Tensor) else _beside(value, tensors[0]) for value in given]
    array = kernels.isin(ours, tests, bool(assume_unique), bool(invert))
    return _finished(ISIN, array, tensors, out, (*given, bool(invert)), (bool(assume_unique),))


@rule("isin")
def _isin(call):
    elements, tests, invert = call.args
    if not call.has(tests):
        return isin(call.samples(elements), tests, invert=invert)
    ordered = call.full(tests).reshape(call.size, tests.numel()).sort(1).values
    wanted = call.full(_tensor(elements, tests))
    wanted = wanted.reshape(call.size, wanted[:1].numel())
    count = ordered.shape[1]
    if not count:
        found = wanted != wanted
    else:
        places = searchsorted(ordered, wanted).clamp(max=count - 1)
        found = ordered.gather(1, places) == wanted
    return call.shaped(~found if invert else found, call.out.shape)


def _tensor(value, like):
    """Convert a number to a tensor."""
    return tensor_of(np.asarray(value)).to(like.device) if isinstance(value, (int, float)) else value


def _beside(number, t):
    """Return a number as an array, of the dtype it is promoted to with the tensor."""
    return beside(as_type(number, result_type((t, number))), array_of(t))


composite = {"bucketize": FUNCTION_ONLY}
functions = publish(globals())
