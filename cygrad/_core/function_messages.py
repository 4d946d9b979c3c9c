"""What users read when a custom function is wrong."""

import warnings

from cygrad._core.messages import type_name
from cygrad._core.tensor import Tensor

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
    """What mark_dirty was given."""
    if not isinstance(value, Tensor):
        raise RuntimeError(f"mark_dirty can only accept variables, but argument is of type {type_name(value)}")
    if not is_output:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    if not is_input:
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty().",
            UserWarning,
            stacklevel=2,
        )


def check_non_differentiable(value):
    """What mark_non_differentiable was given."""
    if not isinstance(value, Tensor):
        raise RuntimeError(f"mark_non_differentiable only accepts variable arguments, but got {type_name(value)}")


def not_saved(value, index):
    """save_for_backward was given something that is not a tensor."""
    return TypeError(f"save_for_backward can only save variables, but argument {index} is of type {type_name(value)}")
