"""Checks of the arguments of losses."""

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.record import result_type
from cygrad._ops.base.arguments import require

# -- elementwise losses --


def warn_sizes(input, target):
    """Warn if the shapes differ."""
    if input.shape != target.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )


def check_floating(input, target, kernel):
    """Raise NotImplementedError unless the promoted dtype is floating point."""
    kind = result_type((input, target))
    if not kind.is_floating_point:
        raise messages.not_implemented_for(kernel, kind)


def check_expands(weight, shape):
    """Raise RuntimeError unless a weight broadcasts to the shape of the input."""
    own = weight.shape
    for i, length in enumerate(reversed(own), 1):
        if i > len(shape) or (length != 1 and length != shape[-i]):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {length} at {-i}! Mismatching argument at index 1 had "
                f"{weight.shape}; but expected shape should be broadcastable to {list(shape)}"
            )


# -- classification losses --


def check_target(input, target):
    """Raise unless log-probabilities and class indices have matching shapes, and the indices a supported dtype."""
    shape, found = input.shape, target.shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) == 1:
        if len(found) == 1 and found != (1,):
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {found[0]}")
        if len(found) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    else:
        batch = found[0] if found else 0
        if batch != shape[0]:
            raise ValueError(
                f"Expected input batch_size ({shape[0]}) to match target batch_size ({batch}).\n"
                f"  the input has shape {list(shape)}, the target {list(found)}: it must have one class index per row "
                "of the input; for sequences, use input.flatten(0, 1) and target.flatten()"
            )
        if found != shape[:1] + shape[2:]:
            raise _target_size_error(shape, found)
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.type_name}\n"
            "  class indices are integers: convert them with .long(); class probabilities have the shape of the input, "
            f"{list(shape)}"
        )


def _target_size_error(shape, found):
    wanted = list(shape[:1] + shape[2:])
    hint = (
        f"\n  input has shape {list(shape)}: dimension 1 holds the {shape[1]} classes, so target must have shape "
        f"{wanted}, but has {list(found)}"
    )
    if len(shape) == 2:
        return RuntimeError(f"0D or 1D target tensor expected, multi-target not supported{hint}")
    if len(shape) == 4:
        if len(found) != 3:
            return RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                f"{len(found)}{hint}"
            )
        return RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(found)}{hint}")
    return RuntimeError(f"Expected target size {wanted}, got {list(found)}{hint}")


def check_class_weight(weight, input, function, prefix=""):
    """Raise unless there is one weight per class, with the dtype of the input."""
    require(weight, function, "weight", 3)
    shape = input.shape
    classes = shape[1 if len(shape) > 1 else 0]
    if weight.shape != (classes,):
        raise RuntimeError(
            f"{prefix}weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
        )
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.type_name} but found {weight.dtype.type_name}\n"
            f"  convert the weight: weight.to({input.dtype})"
        )


def too_much_smoothing(smoothing):
    """Return the error for a `label_smoothing` above 1."""
    return RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing:g}")
