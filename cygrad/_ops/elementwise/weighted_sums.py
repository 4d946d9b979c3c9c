"""Elementwise weighted sums with broadcasting: lerp, addcmul and addcdiv.

Each is one node. Shapes that do not broadcast raise RuntimeError.
"""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, IN0, IN1, IN2, INPLACE, LINEAR, declare, publish
from cygrad._core.graph.record import apply_n, result_type, write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.dispatch import unseen
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop, has_loop
from cygrad._kernels.cpu.elementwise.numpy_pointwise import where as select
from cygrad._kernels.device.cupy_library import as_array, is_array
from cygrad._ops.base.arithmetic import div, mul, neg, sub
from cygrad._ops.base.checks.common import (
    NUMBERS,
    require_broadcast,
    require_factor,
    require_kind,
    require_tensors,
    write_converted,
)
from cygrad._ops.base.pointwise import conjugate

INTEGER_QUOTIENT = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
    "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
    "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for "
    "float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), "
    "for all dtypes."
)


# -- lerp --


def lerp_rule(n, g):
    weight = n.args[0].conjugate()
    return mul(g, 1 - weight) if n.needs(0) else None, mul(g, weight) if n.needs(1) else None


@by_loop("lerp", 3)
def lerp_array(start, end, weight, out=None):
    """start + weight * (end - start), exact at both ends: if |weight| >= 1/2, end + (weight - 1) * (end - start)."""
    near = np.abs(weight) < 0.5
    if np.ndim(weight) == 0 and not is_array(weight):
        begin, weight = (start, weight) if near else (end, weight - 1)
    else:
        begin, weight = select(near, start, end), select(near, weight, weight - 1)
    moved = as_array((end - start) * weight)
    return np.add(moved, begin, out=moved if out is None else out)


def _numbers_of_lerp(weight):
    is_far = not abs(weight) < 0.5
    return None if isinstance(weight, complex) else (weight - 1 if is_far else weight, is_far)


@by_loop("lerp_by_number", 2, _numbers_of_lerp)
def lerp_by_number(start, end, weight, out=None):
    return lerp_array.function(start, end, start.dtype.type(weight), out)


LERP_NUMBER = declare(
    "lerp.Scalar",
    lerp_rule,
    flags=ELEMENTWISE | LINEAR,
    kernel=lerp_by_number,
    inputs="self end",
    attributes="weight",
    node="LerpBackward0",
)


def lerp_tensor_rule(n, g):
    start, end, weight = n.saved(0), n.saved(1), n.saved(2)
    return (
        mul(g, conjugate(sub(1, weight))) if n.needs(0) else None,
        mul(g, conjugate(weight)) if n.needs(1) else None,
        mul(g, conjugate(sub(end, start))) if n.needs(2) else None,
    )


LERP = declare(
    "lerp",
    lerp_tensor_rule,
    saves=(IN2, IN2, IN0 | IN1),
    flags=ELEMENTWISE | INPLACE,
    kernel=lerp_array,
    inputs="self end weight",
    node="LerpBackward1",
    overloads="",
)


def lerp(input, end, weight, *, out=None):
    """Interpolate linearly: `input + weight * (end - input)`, where `weight` is a number or a tensor.

    Saves nothing for a number, else all three. Gradients: g * (1 - weight), g * weight, g * (end - input).
    All must have the same floating-point or complex dtype.

    >>> import cygrad
    >>> cygrad.lerp(cygrad.tensor([0.0, 10.0]), cygrad.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    if not (isinstance(input, Tensor) and isinstance(end, Tensor) and isinstance(weight, (Tensor, *NUMBERS))):
        raise messages.fits_none("lerp")
    require_same_type(input, "end", end)
    require_broadcast(input, end)
    if not isinstance(weight, Tensor):
        require_kind("fc", "lerp_kernel_scalar", input)
        return computed(LERP_NUMBER, (input, end), (weight,), out)
    if not weight.dim():
        kind = result_type((input, weight))  # complex if only the weight is
        input, end, weight = input.to(kind), end.to(kind), weight.to(kind)
    require_same_type(input, "weight", weight)
    require_broadcast(input, end, weight)
    if weight.dim() and isinstance(out, Tensor) and out.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {out.dtype.type_name} but expected {input.dtype.type_name}")
    require_kind("fc", "lerp_kernel_tensor", input)
    return computed(LERP, (input, end, weight), (), out)


def computed(op, inputs, args, out):
    """Like `apply_n`, for a kernel that can write directly into `out`, without a temporary result."""
    if isinstance(out, Tensor) and out.numel() > chunks.FEW:
        arrays = [array_of(t) for t in inputs]
        if out.numel() > chunks.SIZE and not has_loop(*arrays):  # `apply_n` computes it chunk by chunk
            return apply_n(op, inputs, args or None, out)
        result = chunks.result_into(array_of(out), lambda *arrays, out: op.kernel(*arrays, *args, out=out), *arrays)
        if result is not None:
            return write_into(op, out, result, inputs, args or None)
    return apply_n(op, inputs, args or None, out)


def require_same_type(input, name, value):
    if value.dtype is not input.dtype:
        raise RuntimeError(
            f"expected dtype {messages.c_word(input)} for `{name}` but got dtype {messages.c_word(value)}"
        )


# -- addcmul, addcdiv --


def addcmul_rule(n, g):
    scaled = mul(g, n.args[0]) if n.args[0] != 1 else g
    return (
        g if n.needs(0) else None,
        mul(scaled, conjugate(n.saved(2))) if n.needs(1) else None,
        mul(scaled, conjugate(n.saved(1))) if n.needs(2) else None,
    )


@by_loop("addcmul", 3, lambda value: None if isinstance(value, complex) else (value,))
def addcmul_array(x, a, b, value, out=None):
    term = as_array(a * b if value == 1 else x.dtype.type(value) * a * b)
    return np.add(x, term, out=spare(x, term) if out is None else out)


def spare(x, term):
    """Return a term's memory for its sum with `x`, if `x` has the same memory layout."""
    return term if (x.shape, x.strides) == (term.shape, term.strides) else None


ADDCMUL = declare(
    "addcmul",
    addcmul_rule,
    saves=(0, IN2, IN1),
    flags=ELEMENTWISE | INPLACE,
    kernel=addcmul_array,
    inputs="self tensor1 tensor2",
    attributes="value",
    autocast_gpu="widest",
    arguments_first=("tensor1 tensor2", "tn", "value"),
)


def addcmul(input, tensor1, tensor2, *, value=1, out=None):
    """Compute `input + value * tensor1 * tensor2`. Saves each factor if the other needs a gradient.

    Gradients: g, value * g * tensor2, value * g * tensor1. Raises NotImplementedError for bools.

    >>> import cygrad
    >>> cygrad.addcmul(cygrad.tensor([1.0]), cygrad.tensor([2.0]), cygrad.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    return of_three(ADDCMUL, input, tensor1, tensor2, value, out)


def of_three(op, input, tensor1, tensor2, value, out):
    """Convert the operands to their promoted dtype and compute. Raises NotImplementedError if all are bools."""
    if not (isinstance(input, Tensor) and isinstance(tensor1, Tensor) and isinstance(tensor2, Tensor)):
        require_tensors(op, input, tensor1, tensor2, names=("input", "tensor1", "tensor2"))
    require_broadcast(input, tensor1, tensor2)
    require_factor(op, "value", value)
    if input.dtype is tensor1.dtype is tensor2.dtype and not isinstance(value, complex):
        if input.dtype.name == "bool":
            raise messages.not_implemented_for(f"{op.name}_cpu_out", input.dtype)
        return computed(op, (input, tensor1, tensor2), (value,), out)
    dtype = result_type((input, tensor1, tensor2))
    if isinstance(value, complex) and not dtype.is_complex:
        word = "float" if dtype.is_floating_point else "int64_t"
        raise RuntimeError(f"value cannot be converted to type {word} without overflow")
    with unseen():
        operands = tuple([t if t.dtype is dtype else t.to(dtype) for t in (input, tensor1, tensor2)])
    if out is input is not operands[0]:
        return write_converted(out, computed(op, operands, (value,), None))
    return computed(op, operands, (value,), out)


def addcdiv_rule(n, g):
    share = None
    if n.needs(1) or n.needs(2):
        divisor = n.saved(2)
        share = div(mul(g, n.args[0]), conjugate(divisor))
    return (
        g if n.needs(0) else None,
        share if n.needs(1) else None,
        neg(mul(share, conjugate(div(n.saved(1), divisor)))) if n.needs(2) else None,
    )


@by_loop("addcdiv", 3, lambda value: None if isinstance(value, complex) else (value,))
def addcdiv_array(x, a, b, value, out=None):
    with np.errstate(all="ignore"):
        term = as_array(a / b)
        if value != 1:
            np.multiply(term, x.dtype.type(value), out=term)
        return np.add(x, term, out=spare(x, term) if out is None else out)


ADDCDIV = declare(
    "addcdiv",
    addcdiv_rule,
    saves=(0, IN2, IN1 | IN2),
    flags=ELEMENTWISE | INPLACE,
    kernel=addcdiv_array,
    inputs="self tensor1 tensor2",
    attributes="value",
    autocast_gpu="widest",
    arguments_first=("tensor1 tensor2", "tn", "value"),
)


def addcdiv(input, tensor1, tensor2, *, value=1, out=None):
    """Compute `input + value * tensor1 / tensor2`. Saves `tensor2`, and `tensor1` if `tensor2` needs a gradient.

    Gradients: g, value * g / tensor2, -value * g * tensor1 / tensor2^2. Raises RuntimeError for a quotient of integers.

    >>> import cygrad
    >>> cygrad.addcdiv(cygrad.tensor([1.0]), cygrad.tensor([2.0]), cygrad.tensor([4.0]))
    tensor([1.5000])
    """
    if not (isinstance(tensor1, Tensor) and isinstance(tensor2, Tensor)):
        require_tensors(ADDCDIV, input, tensor1, tensor2, names=("input", "tensor1", "tensor2"))
    quotient = result_type((tensor1, tensor2))
    if not (quotient.is_floating_point or quotient.is_complex):
        raise RuntimeError(INTEGER_QUOTIENT)
    return of_three(ADDCDIV, input, tensor1, tensor2, value, out)


functions = publish(globals())
