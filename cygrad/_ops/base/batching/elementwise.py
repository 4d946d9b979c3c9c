"""Batching rules of arithmetic, comparisons, copies and elementwise functions."""

from cygrad._core.graph.opdef import registry
from cygrad._core.graph.record import apply1, apply2
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.base.arithmetic import pow, rsub
from cygrad._ops.base.batching.rules import operands, rule
from cygrad._ops.base.comparisons import where
from cygrad._ops.base.copying import copy, fill

# -- arithmetic.pyx --


@rule("add sub rsub")
def _scaled_sum(call):
    a, b = operands(call, call.inputs)
    entry = registry[call.key].entry
    return entry(a, b, alpha=call.args[0]) if call.args else entry(a, b)


@rule("rsub.Scalar")
def _number_less(call):
    alpha, other = call.args
    return rsub(call.full(call.inputs[0]), other, alpha)


@rule("pow.Scalar")
def _power_of_number(call):
    return pow(call.args[0], call.full(call.inputs[0]))


@rule("div mul pow")
def with_number(call):
    """Call the entry point with aligned operands; a number among the arguments comes last."""
    inputs = operands(call, call.inputs)
    return registry[call.op.name].entry(*inputs, *call.args)


# -- comparisons.pyx --


@rule("where")
def _where(call):
    condition = call.kept[2]
    a, b = operands(call, call.inputs, condition.ndim)
    ndim = max(x.ndim for x in (condition, *call.inputs) if isinstance(x, Tensor))
    found = where(call.aligned(condition, ndim), a, b)
    return found.expand(call.size, *found.shape[1:])


# -- copying.pyx --


@rule("to")
def _to(call):
    return call.full(call.inputs[0]).to(call.out.dtype)


@rule("clone")
def _clone(call):
    return call.full(call.inputs[0]).clone()


@rule("copy fill.Tensor")
def _copy(call):
    return copy(call.full(call.inputs[0]), call.aligned(call.inputs[1], call.out.ndim))


@rule("fill")
def _fill(call):
    value = call.inputs[1] if len(call.inputs) > 1 else call.args[0]
    if call.has(value):
        return _copy(call)
    return fill(call.full(call.inputs[0]), value)


@rule("zero")
def _zero(call):
    return (
        call.full(call.inputs[0]) * 0
        if call.out.requires_grad
        else call.full(call.inputs[0]).new_zeros((call.size, *call.out.shape))
    )


# -- pointwise.pyx --


@rule("tanh_backward sigmoid_backward threshold_backward")
def _same_shapes(call):
    return apply2(call.op, *[call.full(x) for x in call.inputs], None)


@rule("sigmoid_of_saved tanh_of_saved")
def _of_saved(call):
    return apply1(call.op, call.full(call.inputs[0]), None)
