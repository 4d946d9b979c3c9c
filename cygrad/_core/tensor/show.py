"""The repr of tensors; imported on first use."""

import sys
import textwrap

from cygrad._core.graph.internals import array_of
from cygrad._core.tensor.tensor_str import tensor_str
from cygrad._core.types.dtypes import get_default_dtype


def repr_of(tensor, *, class_name=None, is_parameter_prefix=False, tensor_contents=None):
    """Return the text that PyTorch shows for the same tensor; `tensor_contents` replaces the elements."""
    batched = _batch_text(tensor)
    if batched is not None:
        return batched
    try:
        node = tensor.grad_fn
        name = None if node is None else node.name().rpartition("::")[2]
    except RuntimeError:  # a view whose base was changed so that its history cannot be updated
        name = "Invalid"
    array = array_of(tensor)
    return tensor_str(
        array,
        device=None if tensor.device.type == "cpu" else str(tensor.device),
        dtype_name=str(tensor.dtype),
        default_dtype_name=str(get_default_dtype()),
        requires_grad=tensor.requires_grad,
        grad_fn_name=name,
        tangent=_tangent_text(tensor),
        class_name=class_name,
        is_parameter_prefix=is_parameter_prefix,
        tensor_contents=tensor_contents,
    )


def _batch_text(tensor):
    """Return the text of all samples in the innermost `vmap`, or None."""
    tangents = sys.modules.get("cygrad._core.transforms.forward_mode")
    if tangents is None or not tangents.has_samples(tensor):
        return None
    batch, outside = tangents.batch_of((tensor,))
    text = tangents.on_levels(outside, lambda: repr(batch.samples(tensor)))
    return f"BatchedTensor(lvl={len(outside) + 1}, bdim=0, value=\n{textwrap.indent(text, ' ' * 4)}\n)"


def _tangent_text(tensor):
    """Return the text of the tangent at the innermost dual level, or None."""
    tangents = sys.modules.get("cygrad._core.transforms.forward_mode")
    if tangents is None or not tangents.dual_levels():
        return None
    tangent = tangents.tangent_of(tensor, tangents.dual_levels()[-1])
    return None if tangent is None else repr(tangent)
