"""Numbers in place of the elements that a mask selects."""

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.graph.inplace import check_operand_memory
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import INPLACE, LINEAR, MAY_OVERLAP, PRIVATE, declare, publish, registry, variant
from cygrad._core.graph.record import record_n, write_into, written_in_place
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.cpu.indexing import indexing
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import kind_of, number_of
from cygrad._ops.base.comparisons import where
from cygrad._ops.base.copying import apart
from cygrad._ops.base.indexing import writes_expanded
from cygrad._ops.indexing.gathering import keeping


def masked_fill_rule(n, g):
    return masked_fill(g, n.saved(2), 0)


MASKED_FILL = declare(
    "masked_fill",
    masked_fill_rule,
    flags=LINEAR | INPLACE,
    kernel=indexing.masked_fill,
    inputs="self _ mask",
    attributes="value",
    devices=(2, "value"),
    vmap_write="inplace arithmetic",
    overloads="",
    float8="masked_fill",
)


@in_parts(0, 0, inputs=0)
def masked_fill_tensor_rule(n, g):
    mask = n.saved(2)
    return (
        masked_fill(g, mask, 0) if n.needs(0) else None,
        masked_fill(g, registry["logical_not"].entry(mask), 0) if n.needs(1) else None,
    )


MASKED_FILL_TENSOR = declare(
    "masked_fill.Tensor",
    masked_fill_tensor_rule,
    flags=LINEAR | PRIVATE,
    node="MaskedFillBackward1",
    inputs="self value mask",
    float8="masked_fill",
)
MASKED_FILL_UNRECORDED = variant(MASKED_FILL, flags=MAY_OVERLAP)  # for integers, and writes into expanded memory


def masked_fill(input, mask, value, *, out=None):
    """Replace elements of `input` by `value`, a number or a 0-dim tensor, where the boolean `mask` is True.

    `input` and `mask` broadcast. Saves `mask`. Gradient: g, and 0 where the mask is True; for `value`, the sum of g
    there. Raises RuntimeError for a mask that is not boolean, shapes that do not broadcast, and a value that the dtype
    cannot hold.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).masked_fill(cygrad.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    t, value = require(input, "masked_fill"), number_of(value)
    if not isinstance(mask, Tensor) or not isinstance(value, (Tensor, int, float, complex)):
        signatures = "Tensor mask, Tensor value", "Tensor mask, Number value"
        raise messages.no_such_call("masked_fill", (mask, value), {}, signatures)
    if out is t:
        value = apart(value, t)
    a, where = array_of(t), array_of(mask)
    element = mask_value(a, mask, value)
    shape = a.shape if where.shape == a.shape else broadcast_shape(where.shape, a.shape)
    inputs = (t, value) if isinstance(value, Tensor) else (t,)
    row = MASKED_FILL_UNRECORDED
    if kind_of(t.dtype) in "fc":
        row = MASKED_FILL_TENSOR if isinstance(value, Tensor) else MASKED_FILL
    if out is None:
        return keeping(record_n(row, indexing.masked_fill(a, element, where), inputs, (value,), mask), mask)
    if out is not t:
        return write_into(row, out, indexing.masked_fill(a, element, where), inputs, (value,))
    if shape != a.shape:
        raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    check_operand_memory(t, mask)
    if writes_expanded(t, value, "masked_fill_"):
        row = MASKED_FILL_UNRECORDED
    return written_in_place(row, t, inputs, (value,), mask, lambda: indexing.fill_where(array_of(t), element, where))


@rule("masked_fill masked_fill.Tensor")
def _masked_fill(call):
    mask = call.aligned(call.kept[2], call.out.ndim)
    shape = (call.size, *call.out.shape)
    value = call.aligned(call.inputs[1], call.out.ndim) if len(call.inputs) > 1 else call.args[0]
    found = where(mask, value, call.aligned(call.inputs[0], call.out.ndim))
    return found.to(call.out.dtype).expand(shape)


def mask_value(a, mask, value):
    """Return the fill value as a 0-dim array, after all checks."""
    if mask.dtype.name != "bool":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {messages.c_word(mask)}")
    if not isinstance(value, Tensor):
        return copying.element(value, a.dtype)
    if value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return copying.element(value.item(), a.dtype) if value.is_complex() else array_of(value)


functions = publish(globals())
