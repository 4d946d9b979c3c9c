"""Building blocks of gradient rules in several families."""

from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.cpu.elementwise.fused_loops import fused
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.views import transpose


def fused_gradient(name, *operands, numbers=()):
    """Compute a gradient with one loop of fused_loops.h; None if the backward pass is recorded or no loop fits."""
    if not get_modes() & NO_GRAD:
        return None
    found = fused(name, *map(array_of, operands), numbers=numbers)
    return None if found is None else tensor_of(found)


def sum_type(t):
    """Return the dtype in which to add and count elements like those of `t`: float32 for half precision.

    float16 ends at 65504, and bfloat16 has no odd numbers above 256.
    """
    return by_name()["float32"] if t.dtype.itemsize == 2 and t.dtype.is_floating_point else t.dtype


def measured(t):
    """Return `t` as kernels compare it with numbers: half precision in float32, where the number is not rounded."""
    return t.float() if t.dtype.itemsize == 2 and t.dtype.is_floating_point else t


def adjoint(t):
    """Return the conjugate transpose of matrices."""
    return conjugate(transpose(t, -2, -1))
