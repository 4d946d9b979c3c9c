"""Vector norms, of all elements or along dimensions.

Where a norm has no derivative, the gradient is the subgradient of least norm: 0 where the norm is 0, and split among
equal maxima.
"""

import math

import numpy as np

import cygrad._kernels.cpu.base.reduce as reduce
from cygrad._core.engine import blocked_gradients
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, OUT0, declare, facts, note_facts, publish, variant
from cygrad._core.graph.record import apply_n, result_type
from cygrad._core.types.dtypes import as_dtype
from cygrad._core.types.dtypes import promote_types_py as promote_types
from cygrad._kernels.cpu.base import chunks, stack_chunks
from cygrad._kernels.device.gpu_forms import half_as_it_is
from cygrad._ops.base.arguments import integers, require
from cygrad._ops.base.arithmetic import div, mul, pow, sub
from cygrad._ops.base.batching.rules import shifting
from cygrad._ops.base.pointwise import abs, sgn
from cygrad._ops.base.reductions import axes_argument, flag_argument, restored
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.elementwise.selection import where
from cygrad._ops.linalg.common import LINALG, check_inexact
from cygrad._ops.reduction.aggregates import times
from cygrad._ops.reduction.variance import reduced_count


@half_as_it_is
def norm_array(a, ord, axes, keepdim):
    """Process large arrays chunk by chunk: a norm of norms is the norm of all, except for ord 0, which adds up."""
    if a.size <= chunks.SIZE or ord == 2 and stack_chunks.is_of_rows(a, axes):  # the kernel stores no squares of rows
        return reduce.norm(a, ord, axes, keepdim)

    def norm(part, axes, keepdim):
        return reduce.norm(part, ord, axes, keepdim)

    return stack_chunks.reduced(norm, a, axes, keepdim, norm if ord else reduce.sum)


def vector_norm_rule(n, g):
    ord, axes, keepdim = n.args
    x = n.saved(0)
    if ord == 0:
        return None  # undefined, as in PyTorch: the number of elements other than 0 does not depend on their values
    g = restored(g, x.shape, axes, keepdim)
    if ord == 1:
        return times(sgn(x), g)
    norm = restored(n.saved_result(), x.shape, axes, keepdim)
    # At a norm of 0 the gradient is 0, and so are its derivatives: avoid any division by 0 there.
    at_zero = norm == 0
    g, divisor = where(at_zero, 0.0, g), where(at_zero, 1.0, norm)
    if ord == 2:
        return times(div(x, divisor), g)
    if math.isinf(ord):
        size = abs(x)
        reached = (size == norm) | ((size != size) & (norm != norm))
        return mul(div(mul(g, reached), total(reached, axes, True).to(sum_type(g))), sgn(x))
    if n.may_run_in_parts(g) and isinstance(array_of(x), np.ndarray):

        def part(g, x, divisor):
            return array_of(_times_slope(tensor_of(g), tensor_of(x), tensor_of(divisor), ord))

        arrays = [array_of(t) for t in (g, x, divisor)]
        return tensor_of(chunks.in_blocks(part, arrays, None, blocked_gradients.SIZE))
    return _times_slope(g, x, divisor, ord)


def _times_slope(g, x, divisor, ord):
    size = abs(x)
    slope = pow(div(where(size == 0, divisor, size), divisor), ord - 1)  # where size is 0, so is its sign
    return mul(g, mul(sgn(x), slope))


VECTOR_NORM = declare(
    "linalg_vector_norm",
    vector_norm_rule,
    saves=IN0 | OUT0,
    flags=LINALG,
    kernel=norm_array,
    inputs="self",
    attributes="ord dim keepdim",
    autocast_gpu="float32",
    takes_dtype=True,
    out_dtype="same",
    batching=shifting(".D."),
)


FROBENIUS = variant(VECTOR_NORM, node="NormBackward1", name="frobenius_norm")
note_facts("frobenius_norm", {"out_dtype": "same", "batching": shifting(".D.")})


def vector_norm(t, ord, axes, keepdim, out=None, op=VECTOR_NORM):
    """Compute the norm of the elements over `axes` (None: all), for any number of dimensions."""
    check_inexact(t, "linalg.vector_norm")
    if (ord < 0 or ord == math.inf) and reduced_count(t, axes) == 0:
        check_identity(t, ord, axes)
    return apply_n(op, (t,), (float(ord), axes, keepdim), out)


def check_identity(t, ord, axes):
    """Raise RuntimeError for a norm that is a maximum or minimum over no elements."""
    text = f"linalg.vector_norm cannot compute the {ord:g} norm on"
    if axes is None:
        raise RuntimeError(f"{text} an empty tensor because the operation does not have an identity")
    for i in axes:
        if t.shape[i] == 0:
            raise RuntimeError(
                f"{text} the dimension {i}because this dimension is empty and the operation does not have an identity"
            )


def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """Compute the norm of the elements over `dim`, by default all: sum(|x|^ord)^(1/ord).

    ord=inf and ord=-inf are the largest and smallest |x|, ord=0 is the number of nonzero elements. Complex input gives
    a real result. With `dtype` the input is converted first. Saves x and the result r. Gradient:
    g * sgn(x) * (|x| / r)^(ord - 1); 0 where r is 0; for ord=inf split among equal elements. Raises RuntimeError for
    integers and for a maximum over no elements.

    >>> import cygrad
    >>> cygrad.linalg.vector_norm(cygrad.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    t = converted(require(x, "linalg_vector_norm", "x"), dtype, "linalg.vector_norm")
    check_order(ord)
    return vector_norm(t, ord, axes_of(t, dim), flag_argument(VECTOR_NORM, keepdim, None), out)


def check_real_order(ord, kind):
    if isinstance(ord, complex):
        raise RuntimeError(f"linalg.{kind}_norm: Expected a non-complex scalar as the order of norm.")


def check_order(ord):
    check_real_order(ord, "vector")
    if not isinstance(ord, (int, float)):
        raise TypeError(
            f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {messages.type_name(ord)}"
        )


def axes_of(t, dim):
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        integers(dim, "linalg_vector_norm", "dim", 3)
    return axes_argument(VECTOR_NORM, t, dim, None)


def converted(t, wanted, function):
    """Convert to the requested dtype, if any, which must not be narrower."""
    if wanted is None:
        return t
    check_inexact(t, function)
    wanted = as_dtype(wanted)
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"{function}: dtype should be floating point or complex, but got {wanted.type_name}")
    if t.is_complex() != wanted.is_complex:
        kind = "complex" if t.is_complex() else "real"
        raise RuntimeError(f"{function}: dtype should be {kind} for {kind} inputs, but got {wanted.type_name}")
    if promote_types(t.dtype, wanted) is not wanted:
        raise RuntimeError(
            f"{function}: the dtype of the input ({t.dtype.type_name}) should be convertible without "
            f"narrowing to the specified dtype ({wanted.type_name})"
        )
    return t.to(wanted)


def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """Compute the Euclidean norm over one or two dimensions, or all if `dim` is empty. Gradient: g * x / r; 0 at r = 0.

    The result is r = sqrt(sum(|x|^2)).

    >>> import cygrad
    >>> cygrad.frobenius_norm(cygrad.tensor([[3.0, 4.0]]), dim=(0, 1))
    tensor(5.)
    """
    t = require(input, "frobenius_norm")
    dims = (dim,) if hasattr(dim, "__index__") else integers(dim, "frobenius_norm", "dim", 2)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {t.dtype.type_name} instead."
        )
    return vector_norm(t, 2, axes_of(t, dims), bool(keepdim), out, FROBENIUS)


# -- distance --


@facts(autocast_gpu="float32")
def dist(input, other, p=2):
    """Return the p-norm of `input - other` as a 0-dim tensor. Gradients: as for `norm`; 0 where both are equal.

    The result is (sum of |input - other|^p)^(1/p).

    >>> import cygrad
    >>> cygrad.dist(cygrad.tensor([1.0, 2.0]), cygrad.tensor([4.0, 6.0]))
    tensor(5.)
    """
    require(input, "dist")
    require(other, "dist", "other", 2)
    dtype = result_type((input, other))
    if not (dtype.is_floating_point or dtype.is_complex):
        name = dtype.type_name
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {name} instead.")
    check_order(p)
    return vector_norm(sub(input, other), p, None, False)


composite = {"frobenius_norm": FUNCTION_ONLY, "dist": 0}
functions = publish(globals())
