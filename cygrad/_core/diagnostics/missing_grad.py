"""Explains where a gradient was cut, for the errors of `backward()` on a tensor without history."""

import numpy as np

from cygrad._core.errors.classes import NoGradientError
from cygrad._core.errors.sites import at, is_ours, warn
from cygrad._core.graph.internals import (
    CUT_BACKWARD,
    CUT_DATA,
    CUT_DETACH,
    CUT_INFERENCE,
    CUT_NO_GRAD,
    CUT_NON_DIFFERENTIABLE,
    CUT_NONE,
    array_of,
    origin_of,
)
from cygrad._core.graph.opdef import facts_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, current_place, get_modes
from cygrad._core.tensor.scalar import last_item

_CUT_WORDS = {CUT_NO_GRAD: "no_grad", CUT_DETACH: "detach", CUT_DATA: ".data", CUT_INFERENCE: "inference_mode"}


def why_no_grad(tensor):
    """Return one line that states where the gradient of `tensor` was lost: by which op, and at which line.

    The same text is part of the error of `backward()` on such a tensor.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.why_no_grad(x.detach() * 2).partition(" at ")[0]
    'cut by detach'
    >>> cygrad.why_no_grad(x * 2)
    'it requires grad: backward() computes its gradient'
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"why_no_grad(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    kind = origin_of(tensor)[0]
    if tensor.requires_grad:
        if tensor.grad_fn is None and tensor._base is None and kind != CUT_NONE:
            return f"it is a leaf: requires_grad was set on it after its history was {_cut(tensor)}"
        if tensor.grad_fn is not None or tensor._base is None:
            return "it requires grad: backward() computes its gradient"
        return "it is a view of a tensor that requires grad, but was made while recording was off (no_grad)"
    return _without_origin(tensor) if kind == CUT_NONE else _cut(tensor)


def _cut(tensor):
    """Return by which op, and where, the gradient was cut."""
    kind, name, code, offset = origin_of(tensor)
    if kind == CUT_NON_DIFFERENTIABLE and name == "to":
        return f"cut by conversion to integers or booleans at {at(code, offset)}"
    if kind == CUT_NON_DIFFERENTIABLE:
        word = "integer op" if array_of(tensor).dtype.kind in "iu" else "non-differentiable op"
        return f"cut by {word} {name} at {at(code, offset)}"
    if kind == CUT_BACKWARD:
        return f"cut by {name} without create_graph=True at {at(code, offset)}"
    word = name if kind == CUT_DETACH else _CUT_WORDS[kind]
    during = f" (op {name})" if kind in (CUT_NO_GRAD, CUT_INFERENCE) else ""
    if _in_custom_forward(kind, code):
        during += ", in which a custom Function's forward runs"
    return f"cut by {word} at {at(code, offset)}{during}"


def _without_origin(tensor):
    """Explain a tensor none of whose inputs required grad, possibly because of a detour through Python numbers."""
    text = "every input has requires_grad=False: nothing it was computed from requires grad"
    read = last_item()
    if read is not None:
        value, code, offset = read
        array = array_of(tensor)
        with np.errstate(all="ignore"):
            same = array.size == 1 and array.dtype.kind in "fc" and array.item() == array.dtype.type(value)
        if same:
            text += f"; .item() or float() read this value at {at(code, offset)}, and Python numbers have no gradient"
    if get_modes() & NO_GRAD:
        text += "; grad mode is off now"
    return text


def _in_custom_forward(kind, code):
    """Whether grad mode was off because the line is in the `forward` of a custom function."""
    return kind == CUT_NO_GRAD and code is not None and code.co_name == "forward" and code.co_varnames[:1] == ("ctx",)


_CURES = {
    0: "set requires_grad=True on the tensors it starts from before computing it; if a parameter does require grad, an "
    "intermediate step used numbers or arrays (`.item()`, `.tolist()`, `.numpy()`): use the tensors themselves there",
    1: "compute this outside no_grad, or inside `with torch.enable_grad():`",
    2: "remove the detach between the parameters and this tensor",
    3: "use the tensor itself instead of its `.data`",
    4: "compute this outside inference_mode",
    5: "a tensor gets a gradient only if it reaches the loss through differentiable floating-point ops",
    6: "pass create_graph=True there: the gradient is then itself recorded and can be differentiated",
}
_CURE_OF_COPY = "torch.tensor copies values without their history: use the tensor itself, or torch.stack for several"


def _cure(kind, name, code):
    if _in_custom_forward(kind, code):
        return (
            "intermediate values of forward are not recorded: return this one as an additional output and save that "
            "output, or recompute it in backward"
        )
    if kind not in (CUT_DETACH, CUT_NON_DIFFERENTIABLE):
        return _CURES[kind]
    return _CURE_OF_COPY if name == "torch.tensor" else facts_of["advice"].get(name, _CURES[kind])


def no_grad_error(tensor, index):
    """Return the error for `backward()` on a tensor without history."""
    kind, name, code, offset = origin_of(tensor)
    return NoGradientError(
        f"element {index} of tensors does not require grad and does not have a grad_fn\n"
        f"  {why_no_grad(tensor)}\n  to fix it: {_cure(kind, name, code)}",
        cut=None if kind == CUT_NONE else (code, offset),
    )


def warn_late_leaf(tensor):
    """Warn about `backward()` on a tensor made a leaf after its history was cut: no parameter gets a gradient."""
    code = current_place()[0]
    if code is not None and not is_ours(code):
        kind, name, cut_code, _ = origin_of(tensor)
        warn(
            "backward() has nothing to do: requires_grad was set on this tensor after its history was "
            f"{_cut(tensor)}; only its own .grad is filled\n  to fix it: {_cure(kind, name, cut_code)}"
        )
