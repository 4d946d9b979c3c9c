"""Forward mode: derivatives along one direction, propagated while the values are computed.

Inside a dual level, a tensor and a tangent form a dual tensor; results computed from it have the tangent J v. Nothing
is saved for a backward pass. On large arrays one pass takes two to four times as long as the function. Note [Forward
mode] in `_core/transforms/forward_mode.py` describes the method.
"""

from __future__ import annotations

from typing import NamedTuple

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms import forward_mode
from cygrad.autograd.grad_mode import _Mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the tensor without its tangent, and the tangent or None.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> forward_ad.unpack_dual(cygrad.tensor(3.0)).tangent is None
    True
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a dual level and return its number. Raises RuntimeError inside another level.

    >>> from cygrad.autograd import forward_ad
    >>> forward_ad.enter_dual_level()
    0
    >>> forward_ad.exit_dual_level()
    """
    _enter(forward_mode.Level())
    return 0


def _enter(level):
    if forward_mode.open_dual_levels():
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    forward_mode.enter(level)


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level and drop the tangents of all tensors. Raises RuntimeError if no level is open.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level(level=level)
    """
    levels = forward_mode.open_dual_levels()
    count = len(levels)
    if level is not None and level != count - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if not count:
        raise RuntimeError("Dual level must be a positive number.")
    forward_mode.leave(levels[-1])


class dual_level(_Mode):
    """Context manager and decorator inside which tensors may have tangents.

    A level belongs to its thread, so each thread may have one; in PyTorch all threads share one. If another thread
    computes with dual tensors of this one, their tangents are not propagated.

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
    """Return the open level with this number, or the innermost for None; None if there is none."""
    levels = forward_mode.open_dual_levels()
    if number is None:
        return levels[-1] if levels else None
    if number < 0:
        return None
    if not isinstance(number, int) or isinstance(number, bool):
        raise messages.wrong_keyword(function, "level", "int", number)
    return levels[number] if number < len(levels) else None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return `tensor` with a tangent: the same memory, with one more node in the graph.

    `tangent` must have the shape of `tensor`. Raises RuntimeError outside a level and for a different shape, ValueError
    for non-differentiable dtypes.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(cygrad.tensor(3.0), cygrad.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor(6.)
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
    number = forward_mode.open_dual_levels().index(level)
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


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return (primal, tangent) of a tensor; the tangent is None if it has none, or outside a level.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(cygrad.tensor(3.0), cygrad.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """
    level = _level(level, "_unpack_dual")
    if level is None or not forward_mode.is_enabled():
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise messages.wrong_type("_unpack_dual", "dual", 1, "Tensor", tensor)
    return UnpackedDualTensor(*forward_mode.unpacked(tensor, level))


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are propagated inside dual levels."""
    return forward_mode.is_enabled()


class _set_fwd_grad_enabled(_Mode):
    """Have tangents propagated, or not: immediately, and as a context manager until the end of the block."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.prev = mode, forward_mode.is_enabled()
        forward_mode.set_enabled(mode)

    def _plan(self):
        return forward_mode.set_enabled, self.mode, self.prev

    def clone(self) -> _set_fwd_grad_enabled:
        """Return a fresh instance; creating it switches immediately."""
        return _set_fwd_grad_enabled(self.mode)

    def __call__(self, fn):
        forward_mode.set_enabled(self.prev)  # as a decorator it has no immediate effect
        return super().__call__(fn)


def __getattr__(name):
    """`_current_level`, which programs read: the number of the open level, or -1."""
    if name == "_current_level":
        return len(forward_mode.open_dual_levels()) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
