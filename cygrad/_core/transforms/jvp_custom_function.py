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
        if node.materialize_grads:
            pairs = zip(given, args, strict=True)
            given = [zeros_like(x) if v is None and isinstance(x, Tensor) else v for v, x in pairs]
        forward_mode.open_only(levels[:depth])
        try:
            found = call_jvp(node, given)
            found = found if isinstance(found, tuple) else (found,)
            _check_jvp(found, outputs, node.non_differentiable or ())
            for out, tangent in zip(outputs, found, strict=True):
                if tangent is not None and isinstance(out, Tensor):
                    forward_mode.check_size(out, tangent)
                    forward_mode.set_tangent(out, level, tangent)
            forward_mode.flush()
        finally:
            forward_mode.open_only(levels)


def _check_jvp(found, outputs, constant):
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(found)})"
        )
    for i, value in enumerate(found):
        if value is not None and not isinstance(value, Tensor):
            raise RuntimeError(f"expected Variable or None (got {messages.type_name(value)}) for grad output {i}.")
        if value is not None and any(internals.own_array(outputs[i]) is internals.own_array(t) for t in constant):
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
