"""Complex numbers: real and imaginary parts as views, construction from parts, conjugates, and angles.

`real`, `imag`, `view_as_real`, `view_as_complex` and `conj` are views: modifying one modifies the other, including its
history. A conjugate shares the memory of the original and is conjugated when it is read or written (Note [Unresolved
arrays] in _kernels/device/unresolved.pyx); so is the negative in the imaginary part of a conjugate.

Gradients follow PyTorch's convention: for a real loss L and z = x + iy, the gradient is dL/dx + i dL/dy.
"""

from functools import partial

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, holding_memory, own_array, shows_opposite
from cygrad._core.graph.opdef import (
    ELEMENTWISE,
    FLOAT_RESULT,
    FUNCTION_ONLY,
    IN0,
    IN1,
    LINEAR,
    OUT0,
    PRIVATE,
    VIEW,
    declare,
    publish,
    registry,
    variant,
)
from cygrad._core.graph.record import apply1, apply_n, record_view, tensor_argument
from cygrad._core.graph.spent_gradients import is_spare
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import complex_parts as kernels
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.device.unresolved import opposite
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, div, mul, neg
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import require_broadcast, require_tensors
from cygrad._ops.base.copying import contiguous
from cygrad._ops.base.pointwise import abs as absolute
from cygrad._ops.base.pointwise import conj_physical, cos, sin
from cygrad._ops.base.slicing import select
from cygrad._ops.base.views import transpose
from cygrad._ops.elementwise.selection import where

# -- views --


def view_as_real_rule(n, g):
    return view_as_complex(contiguous(g))


VIEW_AS_REAL = declare(
    "view_as_real", view_as_real_rule, flags=VIEW | LINEAR | FUNCTION_ONLY, kernel=kernels.as_parts, inputs="self"
)


def view_as_real(input):
    """View a complex tensor as a real tensor with a last dimension of length 2, (real, imaginary), on the same memory.

    Saves nothing. Gradient: `view_as_complex(g)`. Raises RuntimeError for a real tensor.

    >>> import cygrad
    >>> cygrad.view_as_real(cygrad.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    t = tensor_argument(VIEW_AS_REAL, input, "input", 1)
    if not t.is_complex():
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if shows_opposite(t):
        raise messages.no_parts_of_conjugate()
    return record_view(VIEW_AS_REAL, kernels.as_parts(array_of(t)), t, None)


def view_as_complex_rule(n, g):
    return view_as_real(g)


VIEW_AS_COMPLEX = declare(
    "view_as_complex",
    view_as_complex_rule,
    flags=VIEW | LINEAR | FUNCTION_ONLY,
    kernel=kernels.from_parts,
    inputs="self",
    autocast="float32",
)


def view_as_complex(input):
    """View pairs along the last dimension, of length 2, as complex numbers; the inverse of `view_as_real`.

    The memory is shared. Saves nothing. Gradient: `view_as_real(g)`. Raises RuntimeError for dtypes other than float32
    and float64, and if the pairs are not laid out in memory as complex numbers.

    >>> import cygrad
    >>> cygrad.view_as_complex(cygrad.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    t = tensor_argument(VIEW_AS_COMPLEX, input, "input", 1)
    require_pairs(t)
    if shows_opposite(t):
        raise RuntimeError(
            "view_as_complex doesn't work on unresolved negative tensors: use x.resolve_neg(), which copies them"
        )
    return record_view(VIEW_AS_COMPLEX, kernels.from_parts(array_of(t)), t, None)


@rule("view_as_real view_as_complex")
def _as_parts(call):
    return registry[call.key].entry(call.full(call.inputs[0]))


def require_pairs(t):
    """Raise unless a tensor can be viewed as complex numbers."""
    array = holding_memory(t)
    if is_array(array) and array.data.ptr % (2 * array.itemsize):  # GPUs require this alignment
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    if array.dtype.char in "fd" and array.shape[-1:] == (2,) and array.flags.c_contiguous and t._base is None:
        return
    if not t.is_floating_point() or t.dtype.to_complex().to_real() is not t.dtype:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, "
            f"but got a tensor of scalar type: {t.dtype.type_name}"
        )
    if t.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if t.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if t.numel() == 0:
        return
    *steps, last = t.stride()
    if last != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in steps):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if t.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")


def real(input):
    """Return the real part, a view of the same memory; a real tensor is returned unchanged. Gradient: g.

    >>> import cygrad
    >>> z = cygrad.tensor([1 + 2j])
    >>> z.real.mul_(5)
    tensor([5.])
    >>> z
    tensor([5.+2.j])
    """
    t = require(input, "real")
    if not t.is_complex():
        return t
    return select(view_as_real(conj(t) if shows_opposite(t) else t), -1, 0)


def imag(input):
    """Return the imaginary part, a view of the same memory. Gradient: g * 1j. Raises RuntimeError for a real tensor.

    >>> import cygrad
    >>> cygrad.imag(cygrad.tensor([1 + 2j]))
    tensor([2.])
    """
    t = require(input, "imag")
    if not t.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if shows_opposite(t):
        return select(neg_view(view_as_real(conj(t))), -1, 1)
    return select(view_as_real(t), -1, 1)


def set_part(part, value):
    if isinstance(value, Tensor):
        part.copy_(value)
    else:
        part.fill_(value)


def set_real(self, value):
    set_part(real(self), value)


def set_imag(self, value):
    set_part(imag(self), value)


# -- conjugates --


def conj_rule(n, g):
    if is_spare(g):
        np.conjugate(own_array(g), out=own_array(g))
        return g
    return conj_physical(g)


CONJ = declare("conj", conj_rule, flags=VIEW | LINEAR, kernel=opposite, inputs="self")


def conj(input):
    """View a tensor as its complex conjugate, on the same memory; a real tensor is returned unchanged.

    Each op that reads the view conjugates a copy; `resolve_conj` makes one to keep. Saves nothing. Gradient: conj(g).

    >>> import cygrad
    >>> x = cygrad.tensor([1 + 2j])
    >>> x.conj().mul_(2)
    tensor([2.-4.j])
    >>> x
    tensor([2.+4.j])
    """
    t = tensor_argument(CONJ, input, "input", 1)
    return record_view(CONJ, opposite(own_array(t)), t, None) if t.is_complex() else t


def neg_view_rule(n, g):
    return neg(g)


NEG_VIEW = declare("neg_view", neg_view_rule, flags=VIEW | LINEAR | PRIVATE, kernel=opposite, inputs="self")


def neg_view(input):
    """View a real tensor as its negative, on the same memory. Saves nothing. Gradient: -g."""
    t = tensor_argument(NEG_VIEW, input, "input", 1)
    return record_view(NEG_VIEW, opposite(own_array(t)), t, None)


def _neg_view(input):
    """View a real tensor as its negative, on the same memory; see `is_neg`. Saves nothing. Gradient: -g.

    Raises NotImplementedError for complex tensors and booleans.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, -2.0])
    >>> cygrad._neg_view(x).mul_(3)
    tensor([-3.,  6.])
    >>> x
    tensor([ 3., -6.])
    """
    t = require(input, "_neg_view")
    if t.is_complex():
        raise NotImplementedError("_neg_view is not implemented for complex tensors: use x.neg(), which copies them")
    if t.dtype.name == "bool":
        raise messages.not_implemented_for("neg_cpu", t.dtype)
    return neg_view(t)


@rule("conj neg_view")
def _opposite(call):
    return registry[call.key].entry(call.full(call.inputs[0]))


RESOLVE_CONJ = variant(registry["clone"], "ResolveConjBackward0")
RESOLVE_NEG = variant(registry["clone"], "ResolveNegBackward0")


def resolve_conj(input):
    """Return a conjugate view as a tensor with memory of its own, and any other tensor as it is.

    Saves nothing. Gradient: g.

    >>> import cygrad
    >>> y = cygrad.tensor([1 + 2j]).conj()
    >>> y.resolve_conj().is_conj(), y.is_conj()
    (False, True)
    """
    t = require(input, "resolve_conj")
    return apply1(RESOLVE_CONJ, t, None) if is_conj(t) else t


def resolve_neg(input):
    """Return a negative view as a tensor with memory of its own, and any other tensor as it is; see `is_neg`.

    Saves nothing. Gradient: g.

    >>> import cygrad
    >>> x = cygrad.tensor([1 + 2j]).conj().imag
    >>> x.is_neg(), cygrad.resolve_neg(x).is_neg()
    (True, False)
    """
    t = require(input, "resolve_neg")
    return apply1(RESOLVE_NEG, t, None) if is_neg(t) else t


def is_conj(input):
    """Whether `input` is a conjugate view: its memory holds the conjugates of its elements.

    >>> import cygrad
    >>> cygrad.is_conj(cygrad.tensor([1 + 2j]).conj())
    True
    """
    t = require(input, "is_conj")
    return t.is_complex() and shows_opposite(t)


def is_neg(input):
    """Whether `input` is a negative view: its memory holds the negatives of its elements.

    The imaginary part of a conjugate view is one.

    >>> import cygrad
    >>> cygrad.tensor([1 + 2j]).conj().imag.is_neg()
    True
    """
    t = require(input, "is_neg")
    return shows_opposite(t) and not t.is_complex()


def adjoint(input):
    """View a matrix with its last two dimensions transposed and complex numbers conjugated; see `conj`.

    Gradient: the adjoint of g. Raises RuntimeError for a 1-dimensional tensor.

    >>> import cygrad
    >>> cygrad.adjoint(cygrad.tensor([[1j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return of_matrix(require(input, "adjoint"), "adjoint()")


def of_matrix(t, name):
    if t.ndim == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if t.ndim == 0:
        warn(f"Tensor.{name} is deprecated on 0-D tensors. Consider using x.conj().")
        return conj(t)
    return conj(transpose(t, -2, -1))


def matrix_adjoint(self):
    """Transpose the last two dimensions and conjugate complex numbers; see `cygrad.adjoint`."""
    return of_matrix(self, "mH")


def conjugate_transpose(self):
    """Return the conjugate transpose of a matrix; see `cygrad.adjoint`, which also accepts batches."""
    if self.ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.{batches}")
    return of_matrix(self, "H")


# -- angle, and construction from parts --


def angle_rule(n, g):
    z = n.saved(0)
    if not z.is_complex():
        return mul(g, 0.0)
    size = absolute(z)  # not the sum of squares, which may leave the range
    size = where(size == 0, 1.0, size)  # makes the gradient 0 there
    return mul(mul(div(g, size), div(z, size)), 1j)


ANGLE = declare(
    "angle", angle_rule, saves=IN0, flags=ELEMENTWISE | FLOAT_RESULT, kernel=kernels.angle, inputs="self", direct=True
)


def angle(input, *, out=None):
    """Return the angle in radians; for real numbers 0, or pi where they are negative.

    For complex numbers it is atan2(imag, real).

    Saves `input`. Gradient: 0 for a real tensor; g * 1j * input / abs(input)^2, and 0 at 0, for a complex one.

    >>> import cygrad
    >>> cygrad.angle(cygrad.tensor([1j, -1.0]))
    tensor([1.5708, 3.1416])
    """
    return apply1(ANGLE, input, out)


def complex_rule(n, g):
    return real(g) if n.needs(0) else None, imag(g) if n.needs(1) else None


COMPLEX = declare(
    "complex",
    complex_rule,
    flags=ELEMENTWISE | LINEAR | FUNCTION_ONLY,
    kernel=partial(kernels.joined),
    inputs="real imag",
)


def complex(real, imag, *, out=None):
    """`real + 1j * imag`, with broadcasting. Saves nothing. Gradients: the real and imaginary parts of g.

    Raises RuntimeError unless both are float32 or both are float64.

    >>> import cygrad
    >>> cygrad.complex(cygrad.tensor([1.0]), cygrad.tensor([2.0]))
    tensor([1.+2.j])
    """
    require_tensors(COMPLEX, real, imag, names=("real", "imag"))
    require_parts(real, imag, out)
    return apply_n(COMPLEX, (real, imag), None, out)


def require_parts(a, b, out):
    """Raise unless two tensors can be the parts of complex numbers that `out` can hold."""
    if not (a.dtype.is_floating_point and b.dtype.is_floating_point):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {a.dtype.type_name} and "
            f"{b.dtype.type_name}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {a.dtype.type_name} but got scalar type {b.dtype.type_name} for second "
            "argument"
        )
    wanted = a.dtype.to_complex()
    if wanted.to_real() is not a.dtype:
        raise RuntimeError(f"no complex dtype has {a.dtype.type_name} components: use .float() first")
    if isinstance(out, Tensor) and out.dtype is not wanted:
        raise RuntimeError(
            f"Expected object of scalar type {wanted.type_name} but got scalar type {out.dtype.type_name} for argument "
            "'out'"
        )
    require_broadcast(a, b)


def polar_rule(n, g):
    along = across = None
    if n.needs(0):
        theta = n.saved(1)
        along = add(mul(real(g), cos(theta)), mul(imag(g), sin(theta)))
    if n.needs(1):
        across = imag(mul(g, conj_physical(n.saved_result())))
    return along, across


POLAR = declare(
    "polar",
    polar_rule,
    saves=(IN1, OUT0),
    flags=ELEMENTWISE | FUNCTION_ONLY,
    kernel=kernels.polar,
    inputs="abs angle",
    autocast="float32",
)


def polar(abs, angle, *, out=None):
    """Return complex numbers with magnitude `abs` and angle `angle`, with broadcasting.

    The result is abs * (cos(angle) + 1j * sin(angle)).

    Saves `angle`, and the result r if `angle` needs its gradient. Gradients: Re(g * exp(-1j * angle)) and Im(g *
    conj(r)). Raises RuntimeError unless both are float32 or both are float64.

    >>> import cygrad
    >>> cygrad.polar(cygrad.tensor([2.0]), cygrad.tensor([0.0]))
    tensor([2.+0.j])
    """
    require_tensors(POLAR, abs, angle, names=("abs", "angle"))
    require_parts(abs, angle, out)
    return apply_n(POLAR, (abs, angle), None, out)


composite = {
    "real": FUNCTION_ONLY,
    "imag": FUNCTION_ONLY,
    "resolve_conj": 0,
    "resolve_neg": 0,
    "is_conj": 0,
    "is_neg": 0,
    "_neg_view": 0,
    "adjoint": 0,
}
methods = {
    "real": property(real, set_real),
    "imag": property(imag, set_imag),
    "H": property(conjugate_transpose),
    "mH": property(matrix_adjoint),
}
functions = publish(globals())
