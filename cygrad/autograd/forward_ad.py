"""Forward mode: derivatives along one direction, carried along while the values are computed.

Inside of a dual level a tensor and a tangent make a dual tensor; what is computed from it has the tangent J v. Nothing
is kept for a backward pass. On large arrays one pass takes two to four times as long as the function. Note [Forward
mode] in `_core/tangents.py` tells how.
"""

from typing import NamedTuple

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms import forward_mode
from cygrad.autograd.grad_mode import _Mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` gives: the tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level():
    """Open a dual level, and give its number. Raises RuntimeError inside of another one.

    >>> from cygrad.autograd import forward_ad
    >>> forward_ad.enter_dual_level()
    0
    >>> forward_ad.exit_dual_level()
    """
    _enter(forward_mode.Level())
    return 0


def _enter(level):
    if forward_mode.dual_levels():
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    forward_mode.enter(level)


def exit_dual_level(*, level=None):
    """Close the dual level: the tangents of all tensors are gone. Raises RuntimeError if none is open."""
    count = len(forward_mode.dual_levels())
    if level is not None and level != count - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if not count:
        raise RuntimeError("Dual level must be a positive number.")
    forward_mode.leave(forward_mode.dual_levels()[-1])


class dual_level(_Mode):
    """Inside of it tensors may have tangents. A context manager, and a decorator.

    A level is its thread's own, so that threads may each have one; in PyTorch there is one for all of them. Where
    another thread computes with dual tensors of this one, their tangents stay behind.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, 0.0]))
    ...     forward_ad.unpack_dual(x**2).tangent
    tensor([2., 0.])
    """

    _context = 0  # the number of the level

    def _plan(self):
        level = forward_mode.Level()
        return _enter, level, level, forward_mode.leave


def _level(number, function):
    """The open level of this number, the innermost for None; None if there is none."""
    levels = forward_mode.dual_levels()
    if number is None:
        return levels[-1] if levels else None
    if number < 0:
        return None
    if not isinstance(number, int) or isinstance(number, bool):
        raise messages.wrong_keyword(function, "level", "int", number)
    return levels[number] if number < len(levels) else None


def make_dual(tensor, tangent, *, level=None):
    """`tensor` with a tangent: the same memory, and in the graph one node more.

    `tangent` has the shape of `tensor`. Raises RuntimeError outside of a level and for another shape, ValueError for
    dtypes that have no derivatives.
    """
    number, level = level, _level(level, "_make_dual")
    if level is None and number is not None and number >= 0:
        raise RuntimeError("Invalid level given to _make_dual")
    if level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    number = forward_mode.dual_levels().index(level)
    if forward_mode.tangent_of(tensor, level) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{number} is not supported."
        )
    if forward_mode.tangent_of(tangent, level) is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level{number} is not supported."
        )
    forward_mode.check_size(tensor, tangent)
    return forward_mode.dual(tensor, tangent, level)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None if it has none, or outside of a level."""
    level = _level(level, "_unpack_dual")
    if level is None:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise messages.wrong_type("_unpack_dual", "dual", 1, "Tensor", tensor)
    return UnpackedDualTensor(*forward_mode.unpacked(tensor, level))
