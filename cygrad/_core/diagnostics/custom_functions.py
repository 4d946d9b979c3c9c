"""Error messages for incorrect custom functions."""

import inspect

from cygrad._core.errors.classes import InvalidGradientError
from cygrad._core.errors.messages import type_name
from cygrad._core.errors.sites import at, warn
from cygrad._core.graph.function import PyNode
from cygrad._core.graph.tensor import Tensor

DIRTY_VIEW_OF_SEVERAL = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input "
    "is not a view (using .clone() for example) or make your Function only return one Tensor (potentially "
    "splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that "
    "does the other operations)."
)
INPUT_AS_IS = (
    "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
    "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup "
    "ctx inside the forward function itself."
)


def check_dirty(value, is_output, is_input):
    """Check an argument of mark_dirty."""
    if not isinstance(value, Tensor):
        raise RuntimeError(f"mark_dirty can only accept variables, but argument is of type {type_name(value)}")
    if not is_output:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    if not is_input:
        warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty()."
        )


def check_non_differentiable(value):
    """Check an argument of mark_non_differentiable."""
    if not isinstance(value, Tensor):
        raise RuntimeError(f"mark_non_differentiable only accepts variable arguments, but got {type_name(value)}")


def check_for_forward(values):
    """Check the arguments of save_for_forward."""
    if not all(value is None or isinstance(value, Tensor) for value in values):
        raise AssertionError(
            "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
        )


def not_saved(value, index):
    """Return the error for a save_for_backward argument that is not a tensor."""
    return TypeError(f"save_for_backward can only save variables, but argument {index} is of type {type_name(value)}")


def no_jvp(node):
    """Return the error for forward mode through a function that only has a backward."""
    text = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
    if isinstance(node, PyNode):
        text += (
            f"\n  {node._forward_cls.__name__} was applied at {at(*node._site)}\n"
            "  to fix it: define `jvp(ctx, *tangents)`, which computes the tangents of the outputs from those of the "
            "arguments; or use reverse mode: `vjp`, `jacrev`, `grad`"
        )
    return NotImplementedError(text)


# -- results of backward --


def _names_of_inputs(node):
    """Return the names of `forward`'s parameters; empty for old-style functions, and if Python cannot tell."""
    function = getattr(type(node), "_forward_cls", None)
    if function is None:
        return []
    names = list(inspect.signature(function.forward).parameters)
    return names[1:] if "setup_context" not in vars(function) else names


def _argument(node, position):
    names = _names_of_inputs(node)
    return f"argument `{names[position]}` of forward" if position < len(names) else f"argument {position} of forward"


def _invalid(node, text, hint):
    return InvalidGradientError(
        f"{text}\n  {hint}\n  {node.name()} was recorded at {at(*node._site)}", recorded=node._site
    )


def wrong_number_of_gradients(node, expected, got):
    """Return the error for too many or too few gradients returned by `backward`."""
    names = ", ".join(_names_of_inputs(node))
    wanted = f"one for each argument of forward ({names})" if names else "one for each argument of forward"
    return _invalid(
        node,
        f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {got})",
        f"backward must return {expected} values: {wanted}, None for non-tensors",
    )


def not_a_gradient(node, position, value):
    """Return the error for a value returned by `backward` that is neither a tensor nor None."""
    return _invalid(
        node,
        f"expected Variable or None (got {type_name(value)})",
        f"this is the gradient of {_argument(node, position)}",
    )


def gradient_of_no_tensor(node, position):
    """Return the error for a gradient of a non-tensor argument returned by `backward`."""
    return _invalid(
        node,
        f"function {node.name()} returned a gradient different than None at position {position + 1}, "
        "but the corresponding forward input was not a Variable",
        f"{_argument(node, position)} was not a tensor: return None for it",
    )
