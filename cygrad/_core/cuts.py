"""Where a gradient was cut: what `backward()` tells of a tensor without a history."""

from cygrad._core.access import array_of, origin_of
from cygrad._core.sites import at

_CUT_WORDS = {1: "no_grad", 2: "detach", 3: ".data", 4: "inference_mode"}


def why_no_grad(tensor):
    """One line that says where the gradient of `tensor` was cut."""
    kind, name, code, offset = origin_of(tensor)
    if tensor.requires_grad:
        return "it is a view of a tensor that requires grad, but was made where nothing is recorded (no_grad)"
    if kind == 0:
        return "every input has requires_grad=False: nothing it was computed from asks for a gradient"
    if kind == 5:
        word = "integer op" if array_of(tensor).dtype.kind in "iu" else "non-differentiable op"
        return f"cut by {word} {name} at {at(code, offset)}"
    if kind == 6:
        return f"a gradient, cut by {name} without create_graph=True at {at(code, offset)}"
    word = name if kind == 2 else _CUT_WORDS[kind]
    during = f" (op {name})" if kind in (1, 4) else ""
    return f"cut by {word} at {at(code, offset)}{during}"


def no_grad_error(tensor, index):
    """Backward was asked for on a tensor without history."""
    if origin_of(tensor)[0] == 6:
        cure = "ask for create_graph=True there: then the gradient is itself recorded and can be differentiated"
    else:
        cure = (
            "keep the computation from the parameters to this tensor free of that, "
            "or set requires_grad=True on what it starts from before computing it"
        )
    return RuntimeError(
        f"element {index} of tensors does not require grad and does not have a grad_fn\n"
        f"  {why_no_grad(tensor)}\n  to mend it: {cure}"
    )
