"""Forward mode through custom functions: their `jvp` computes the tangents. Note [Forward mode] in forward_mode.py."""

from cygrad._core.errors import messages
from cygrad._core.graph import internals
from cygrad._core.graph.function import call_jvp
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms import forward_mode
from cygrad._core.transforms.jvp_rules import zeros_like
from cygrad._core.transforms.vmap_levels import NoBatchingRule


def carry_through_function(node, args, outputs):
    """Compute the tangents of a custom function's outputs from those of its arguments with its `jvp`."""
    forward_mode.flush()
    batch, _ = forward_mode.batch_of([x for x in args if isinstance(x, Tensor)])
    if batch is not None and not getattr(node, "_is_batched", False):
        raise NoBatchingRule(node.name())
    levels = forward_mode.levels()
    for depth, level in enumerate(levels):
        given = [forward_mode.tangent_of(x, level) if isinstance(x, Tensor) else None for x in args]
        if all(tangent is None for tangent in given):
            continue
        taken = _materialized(given, args) if node.materialize_grads else given
        forward_mode.open_only(levels[:depth])
        try:
            found = call_jvp(node, taken)
            found = found if isinstance(found, tuple) else (found,)
            _check_jvp(found, outputs, node.non_differentiable or ())
            for out, tangent in zip(outputs, found, strict=True):
                if _is_differentiable(out):
                    _check_sharing(out, tangent, args, given, taken)
                if tangent is not None and isinstance(out, Tensor):
                    forward_mode.check_size(out, tangent)
                    forward_mode.set_tangent(out, level, tangent)
            forward_mode.flush()
        finally:
            forward_mode.open_only(levels)


def _materialized(given, args):
    """Return the tangents with zeros for the floating point and complex arguments that have none."""
    pairs = zip(given, args, strict=True)
    return [zeros_like(x) if v is None and _is_differentiable(x) else v for v, x in pairs]


def _is_differentiable(value):
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _check_jvp(found, outputs, constant):
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(found)})"
        )
    for i, (value, out) in enumerate(zip(found, outputs, strict=True)):
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise RuntimeError(f"expected Variable or None (got {messages.type_name(value)}) for grad output {i}.")
        if not isinstance(out, Tensor):
            continue
        is_constant = any(internals.own_array(out) is internals.own_array(t) for t in constant)
        if is_constant or not _is_differentiable(out):
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )


def _check_sharing(out, tangent, args, given, taken):
    """Check that a tangent shares memory as its output does: changed in place, or a view, of an argument's tangent.

    Later changes in place of either tensor could not reach the other's tangent otherwise.
    """
    place = next((i for i, value in enumerate(args) if value is out), None)
    if place is not None:
        if given[place] is not None and tangent is not given[place]:
            raise RuntimeError(_NOT_AS_IS if _root(tangent) is _root(given[place]) else _NOT_IN_PLACE)
        return
    if not out._is_view() or (tangent is None and all(each is None for each in taken)):
        return
    if tangent is None or not tangent._is_view():
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    base = _root(out)
    for value, start in zip(args, taken, strict=True):
        if isinstance(value, Tensor) and _root(value) is base and start is not None:
            if _root(tangent) is not _root(start):
                of_what = "same base as the given grad input" if value._is_view() else "given grad input"
                raise RuntimeError(
                    f"A custom Function is returning a view but the jvp is not returning a view of the {of_what}."
                )
            return


def _root(tensor):
    """Return the tensor whose memory a view shows, or the tensor itself."""
    return tensor._base if isinstance(tensor, Tensor) and tensor._is_view() else tensor


_IN_PLACE = "If the forward is modifying an input inplace, then the jvp function must modify the "
_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. "
    f"{_IN_PLACE}corresponding gradient inplace."
)
_NOT_AS_IS = (
    "An inplace custom Function is not returning the forward mode gradients as-is. "
    f"{_IN_PLACE}gradient inplace and return it as-is."
)
