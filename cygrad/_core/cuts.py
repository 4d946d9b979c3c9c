"""Where a gradient was cut: what `backward()` tells of a tensor without a history."""

import numpy as np

from cygrad._core.access import array_of, origin_of
from cygrad._core.errors import NoGradientError
from cygrad._core.scalar import last_item
from cygrad._core.sites import at
from cygrad._core.state import get_modes
from cygrad._core.tensor import Tensor

_CUT_WORDS = {1: "no_grad", 2: "detach", 3: ".data", 4: "inference_mode"}
_OF_BACKWARD = 6  # the kinds of `tensor.pxd`
_BY_OP = 5


def why_no_grad(tensor):
    """One line that says where the gradient of `tensor` was lost: by what, and at which line.

    It is also part of the error of `backward()` on such a tensor.

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
        if tensor.grad_fn is None and tensor._base is None and kind != 0:
            return f"it is a leaf: requires_grad was set on it after its history was {_cut(tensor)}"
        if tensor.grad_fn is not None or tensor._base is None:
            return "it requires grad: backward() computes its gradient"
        return "it is a view of a tensor that requires grad, but was made where nothing is recorded (no_grad)"
    return _without_origin(tensor) if kind == 0 else _cut(tensor)


def _cut(tensor):
    """By what, and where."""
    kind, name, code, offset = origin_of(tensor)
    if kind == _BY_OP:
        word = "integer op" if array_of(tensor).dtype.kind in "iu" else "non-differentiable op"
        return f"cut by {word} {name} at {at(code, offset)}"
    if kind == _OF_BACKWARD:
        return f"cut by {name} without create_graph=True at {at(code, offset)}"
    word = name if kind == 2 else _CUT_WORDS[kind]
    during = f" (op {name})" if kind in (1, 4) else ""
    return f"cut by {word} at {at(code, offset)}{during}"


def _without_origin(tensor):
    """Nothing that this was computed from has required grad; unless it came back from a Python number."""
    text = "every input has requires_grad=False: nothing it was computed from asks for a gradient"
    read = last_item()
    if read is not None:
        value, code, offset = read
        array = array_of(tensor)
        with np.errstate(all="ignore"):
            same = array.size == 1 and array.dtype.kind in "fc" and array.item() == array.dtype.type(value)
        if same:
            text += f"; .item() has read this value at {at(code, offset)}, and Python numbers have no gradient"
    if get_modes() & 1:
        text += "; grad mode is off now"
    return text


def no_grad_error(tensor, index):
    """Backward was asked for on a tensor without history."""
    kind, _, code, offset = origin_of(tensor)
    if kind == _OF_BACKWARD:
        cure = "ask for create_graph=True there: then the gradient is itself recorded and can be differentiated"
    else:
        cure = (
            "keep the computation from the parameters to this tensor free of that, "
            "or set requires_grad=True on what it starts from before computing it"
        )
    return NoGradientError(
        f"element {index} of tensors does not require grad and does not have a grad_fn\n"
        f"  {why_no_grad(tensor)}\n  to mend it: {cure}",
        cut=None if kind == 0 else (code, offset),
    )
