"""Errors of anomaly mode and `nan_check`: which op produced the first NaN, at which line, and from what."""

import numpy as np

from cygrad._core.errors.classes import NonFiniteError
from cygrad._core.errors.sites import at
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import current_place

# Nodes that pass a gradient on to some of the elements only.
_CHOOSING = ("Where", "MaskedFill", "MaskedScatter", "MaskedSelect", "Index", "Maximum", "Minimum", "Clamp")


def _bad_places(array, inf):
    return np.argwhere(~np.isfinite(array) if inf else np.isnan(array))


def _word(array, place):
    return "nan" if np.isnan(array[tuple(place)]) else "inf"


def _shape_and_type(array):
    return f"shape {array.shape} and dtype torch.{array.dtype}"


def bad_gradient(node, index, grad, incoming, nodes, inf):
    """Raise the error for a node that produced a NaN, or with `inf` an infinity, from its gradient."""
    array = array_of(grad)
    bad = _bad_places(array, inf)
    word, first = _word(array, bad[0]), tuple(bad[0].tolist())
    text = (
        f"Function '{node.name()}' returned {word} values in its {index}th output.\n"
        f"  recorded at {at(*node._site)}\n"
        f"  the gradient has {_shape_and_type(array)}; the first {word} is at {first}, one of {len(bad)}"
    )
    given = incoming[0] if isinstance(incoming, tuple) else incoming
    if isinstance(given, Tensor) and array_of(given).shape == array.shape:
        value = array_of(given)[first]
        saved = _saved_there(node, array.shape, first)
        text += f"\n  computed from an incoming gradient of {value} there"
        if saved:
            text += "; the op saved " + ", ".join(f"{name} = {was}" for name, was in saved.items()) + " there"
        if value == 0:
            text += _masked(node, nodes) or _singular(saved)
    raise NonFiniteError(text, recorded=node._site)


def bad_given(index, array, inf):
    """Raise the `nan_check` error for an initial gradient with a NaN, or with `inf` an infinity."""
    bad, place = _bad_places(array, inf), current_place()
    word, first = _word(array, bad[0]), tuple(bad[0].tolist())
    text = (
        f"nan_check: the gradient passed for output {index} has {word} values\n"
        f"  at {at(*place)}\n"
        f"  it has {_shape_and_type(array)}; the first {word} is at {first}, one of {len(bad)}"
    )
    raise NonFiniteError(text, computed=place)


def _saved_there(node, shape, place):
    """Return the op's inputs at that position, by name, as far as they are saved."""
    found = {}
    for name in getattr(node, "__dir__", list)():
        if name.startswith("_saved_"):
            try:
                value = getattr(node, name)
            except Exception:  # a hook that returns a value only once, such as a checkpoint's
                continue
            if isinstance(value, Tensor) and array_of(value).shape == shape:
                found[name.removeprefix("_saved_")] = array_of(value)[place]
    return found


def _masked(node, nodes):
    """Explain which op closer to the loss left this element out, if any did."""
    users: dict = {}
    for user in nodes:
        for child, _ in user.next_functions:
            users.setdefault(child, []).append(user)
    seen, waiting = {node}, [node]
    while waiting:
        user = waiting.pop()
        if user.name().partition("Backward")[0] in _CHOOSING:
            return (
                f"\n  that element was not selected by {user.name()} recorded at {at(*user._site)}: 0 times an "
                "infinite derivative is nan\n"
                "  to fix it: replace the operand there before calling the op, as in `x = torch.where(mask, x, 1)`"
            )
        above = [one for one in users.get(user, ()) if one not in seen]
        seen.update(above)
        waiting += above
    return ""


def _singular(saved):
    """Suggest a fix for an infinite derivative of an element that no op left out."""
    if not saved or any(np.isnan(value) for value in saved.values()):
        return ""
    return (
        "\n  0 times an infinite derivative is nan\n"
        "  to fix it: keep the operand away from this point, as in `x.clamp(min=1e-12)`, before calling the op"
    )


def bad_result(op_name, array, inputs, inf):
    """Raise the `nan_check` error for an op that computed a NaN, or with `inf` an infinity."""
    bad = _bad_places(array, inf)
    place = current_place()
    word, first = _word(array, bad[0]), tuple(bad[0].tolist())
    text = (
        f"nan_check: {op_name} computed {word} values\n"
        f"  at {at(*place)}\n"
        f"  the result has {_shape_and_type(array)}; the first {word} is at {first}, one of {len(bad)}"
    )
    for i, value in enumerate(inputs):
        if isinstance(value, Tensor):
            text += f"\n  operand {i} has {_shape_and_type(array_of(value))}{_extent(array_of(value), inf)}"
        elif value is not None:
            text += f"\n  operand {i} is {value!r}"
    raise NonFiniteError(text, computed=place)


def _extent(array, inf):
    """Describe the range of the real elements, and how many are not finite."""
    if array.dtype.kind not in "fiu" or not array.size:
        return ""
    bad = len(_bad_places(array, inf)) if array.dtype.kind == "f" else 0
    if bad == array.size:
        return ", and is all nan"
    low, high = np.nanmin(array), np.nanmax(array)
    return f", from {low} to {high}" + (f", and {bad} that are nan or infinite" if bad else "")
