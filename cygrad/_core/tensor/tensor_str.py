"""Formats tensors as text for ``repr(tensor)`` and ``print(tensor)``.

The text equals PyTorch's, character by character. It is produced in four steps, with one function each:

1. ``_summarised`` reduces a large array to its edges, so that its size does not matter;
2. ``_element_texts`` formats the remaining elements in one notation, padded to one width;
3. ``_bracketed`` arranges the elements in nested brackets and breaks long lines;
4. ``_with_suffixes`` appends ``dtype=...``, ``grad_fn=<...>`` and the like.

All but ``repr_of`` deals with arrays and names only, not with tensors. The module is imported on first use.
"""

from __future__ import annotations

import math
import operator
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from cygrad._core.graph.internals import array_of
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.gpu.base.arrays import in_memory

__all__ = ["get_printoptions", "printoptions", "repr_of", "set_printoptions", "tensor_str"]


class PrintOptions(NamedTuple):
    """Print options; immutable, so that each text is formatted with one consistent set."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = _PROFILES["default"]


# ---- options


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, for all threads. Omitted options keep their values.

    Args:
        precision: digits after the decimal point (initially 4).
        threshold: a tensor with more elements than this is summarized (initially 1000).
        edgeitems: elements shown at each end of a summarized dimension (initially 3).
        linewidth: characters per line (initially 80).
        profile: ``"default"``, ``"short"`` (2 digits, 2 edge items) or ``"full"`` (no summaries);
            sets all options; explicit options take precedence. Unknown names are ignored.
        sci_mode: True for scientific notation always, False for never, None to choose for each
            tensor. Unlike the other options it is reset to None when omitted.

    Raises:
        TypeError: precision or edgeitems is not an integer, or threshold or linewidth not a number.
        ValueError: precision or edgeitems is negative, threshold or linewidth is NaN.

    Example:
        >>> import cygrad
        >>> cygrad.set_printoptions(precision=2)
        >>> cygrad.tensor([1.12345])
        tensor([1.12])
        >>> cygrad.set_printoptions(profile="default")
        >>> cygrad.tensor([1.12345])
        tensor([1.1235])
    """
    global _options
    options: dict[str, Any] = {
        "precision": _count("precision", precision),
        "threshold": _number("threshold", threshold),
        "edgeitems": _count("edgeitems", edgeitems),
        "linewidth": _number("linewidth", linewidth),
    }
    given = {name: value for name, value in options.items() if value is not None}
    start = _options if profile is None else _PROFILES.get(profile, _options)
    _options = start._replace(**given, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the current print options as a dict that ``set_printoptions(**options)`` accepts.

    Example:
        >>> import cygrad
        >>> cygrad.get_printoptions()["linewidth"]
        80
    """
    return _options._asdict()


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Set print options for a ``with`` block; takes the arguments of ``set_printoptions``.

    Example:
        >>> import cygrad
        >>> with cygrad.printoptions(precision=1):
        ...     print(cygrad.tensor([0.25, 3.0]))
        tensor([0.2, 3.0])
    """
    global _options
    saved = _options
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _options = saved


def _count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"set_printoptions(): {name} must be an int, not {type(value).__name__}") from None
    if count < 0:
        raise ValueError(f"set_printoptions(): {name} must not be negative, got {count}")
    return count


def _number(name: str, value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"set_printoptions(): {name} must be a number, not {type(value).__name__}")
    if math.isnan(value):
        raise ValueError(f"set_printoptions(): {name} must not be NaN")
    return value


# ---- the text


def tensor_str(
    array: Any,
    *,
    dtype_name: str,
    default_dtype_name: str,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    device: str | None = None,
    tangent: str | None = None,
    class_name: str | None = None,
    is_parameter: bool = False,
    is_parameter_prefix: bool = False,
    tensor_contents: str | None = None,
    indent: int = 0,
) -> str:
    """Return the text of a tensor under the current print options.

    Args:
        array: the elements, a NumPy or CuPy array (only the part shown is copied to the host), of
            a complex, boolean or integer dtype, or one that casts to float64.
        dtype_name: the dtype as shown, ``"torch.float32"``.
        default_dtype_name: the default dtype, which is not shown.
        requires_grad: shown for a tensor without ``grad_fn``.
        grad_fn_name: the name of the node that computed the tensor, ``"MulBackward0"``.
        device: the device as shown, ``"cuda:0"``; None to omit it. On ``"meta"`` there are no elements to show.
        tangent: the tangent of a dual tensor, as returned by ``format(tangent)``.
        class_name: the name of a subclass, shown in place of ``tensor``.
        is_parameter: put that of a subclass in ``Parameter(...)``.
        is_parameter_prefix: start with a line ``Parameter containing:``.
        tensor_contents: a text to show in place of the elements.
        indent: the column at which the text will be placed: later lines are indented by as much,
            and lines are broken correspondingly earlier.

    Returns:
        str: lines without a final newline.
    """
    options = _options
    opening = f"{class_name or 'tensor'}("
    column = indent + len(opening)
    contents = tensor_contents
    if contents is None:
        contents = "..." if device == "meta" else _contents(array, column, options)

    suffixes = []
    if device is not None:
        suffixes.append(f"device='{device}'")
    if device == "meta" or _hides_size(array, options):
        suffixes.append(f"size={tuple(array.shape)}")
    if not _is_implied(dtype_name, default_dtype_name, empty=not array.size or device == "meta"):
        suffixes.append(f"dtype={dtype_name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")

    text = _with_suffixes(opening + contents, suffixes, indent, column, options) + ")"
    if (is_parameter or is_parameter_prefix) and class_name is not None:
        text = f"Parameter({text})"
    if is_parameter_prefix:
        text = "Parameter containing:\n" + " " * indent + text
    return text


def _hides_size(array: Any, options: PrintOptions) -> bool:
    """Whether the brackets do not reveal the shape, so that ``size`` must be shown."""
    if not array.size:
        return array.ndim != 1
    return not options.edgeitems


def _is_implied(dtype_name: str, default_dtype_name: str, *, empty: bool) -> bool:
    """Whether a reader would assume this dtype if none is shown."""
    if dtype_name == default_dtype_name:
        return True
    if empty:
        return False
    is_double = default_dtype_name == "torch.float64"
    default_complex = "torch.complex128" if is_double else "torch.complex64"
    return dtype_name in ("torch.bool", "torch.int64", default_complex)


def _contents(array: Any, column: int, options: PrintOptions) -> str:
    if not array.size:
        return "[]"
    shown, elided = _summarised(array, options)
    if any(elided) and not options.edgeitems:
        return "[...]"
    texts, width = _element_texts(shown.reshape(-1), options)
    if not elided:
        return texts[0]
    items = np.array(texts, dtype=object).reshape(shown.shape).tolist()
    return _bracketed(items, elided, column, width, options)


# ---- step 1: the part that is shown


def _summarised(array: Any, options: PrintOptions) -> tuple[np.ndarray, tuple[bool, ...]]:
    """Return the elements to show, on the host, and for each dimension whether its middle was omitted."""
    edge = options.edgeitems
    too_many = array.size > options.threshold
    elided = tuple(too_many and length > 2 * edge for length in array.shape)
    if any(elided):
        edges = (
            np.r_[:edge, length - edge : length] if cut else np.arange(length)
            for length, cut in zip(array.shape, elided)
        )
        array = array[np.ix_(*edges)]
    return in_memory(array), elided


# ---- step 2: the elements


def _element_texts(values: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """Return the text of each value (1-D), and the width used for breaking lines."""
    kind = values.dtype.kind
    if kind == "c":
        return _complex_texts(values, options)
    if kind in "biu":
        texts = [str(value) for value in values.tolist()]
        return _padded(texts, max(map(len, texts)))
    return _float_texts(values, options)


def _float_texts(values: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    with np.errstate(invalid="ignore"):  # a signaling NaN
        numbers = values.astype(np.float64)
    # Zeros, infinities and NaNs do not affect notation and width; if they are wider than the rest, they
    # stick out.
    counts = np.isfinite(numbers) & (numbers != 0)
    counted = numbers[counts]
    whole = bool((counted == np.rint(counted)).all())
    scientific = _is_scientific(np.abs(counted), whole, options)
    if scientific:
        notation = f".{options.precision}e"
    else:
        notation = ".0f" if whole else f".{options.precision}f"
    texts = [format(number, notation) for number in numbers.tolist()]
    if whole and not scientific:
        texts = [text + "." if text[-1].isdigit() else text for text in texts]
    width = max((len(text) for text, count in zip(texts, counts.tolist()) if count), default=1)
    return _padded(texts, width)


def _is_scientific(magnitudes: np.ndarray, whole: bool, options: PrintOptions) -> bool:
    if not magnitudes.size:
        return False
    if options.sci_mode is not None:
        return bool(options.sci_mode)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    too_wide = largest / smallest > 1000 or largest > 1e8
    return too_wide or (not whole and smallest < 1e-4)


def _complex_texts(values: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """Real and imaginary parts choose their notations independently; only the real parts are aligned."""
    reals, real_width = _float_texts(values.real, options)
    imags, imag_width = _float_texts(values.imag, options)
    imags = [imag.lstrip() for imag in imags]
    imags = [imag if imag.startswith("-") else "+" + imag for imag in imags]
    texts = [f"{real}{imag}j" for real, imag in zip(reals, imags)]
    return texts, real_width + imag_width + 1


def _padded(texts: list[str], width: int) -> tuple[list[str], int]:
    return [text.rjust(width) for text in texts], width


# ---- step 3: brackets and lines


def _bracketed(items: list, elided: tuple[bool, ...], column: int, width: int, options: PrintOptions) -> str:
    """Format nested lists of element texts in brackets, with the opening bracket at ``column``."""
    cut, deeper = elided[0], elided[1:]
    edge = options.edgeitems
    margin = "\n" + " " * (column + 1)
    if deeper:
        rows = [_bracketed(item, deeper, column + 1, width, options) for item in items]
        if cut:
            rows.insert(edge, "...")
        # A blank line separates matrices, two blank lines separate 3-D arrays, and so on.
        return "[" + ("," + "\n" * (len(deeper) - 1) + margin).join(rows) + "]"
    if cut:
        items = [*items[:edge], " ...", *items[edge:]]
    room = (options.linewidth - column) / (width + len(", "))
    per_line = int(min(max(room, 1), len(items)))
    lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
    return "[" + ("," + margin).join(lines) + "]"


# ---- step 4: the suffixes


def of_parts(parts: dict[str, Any], suffixes: list[str], breaks: bool) -> str:
    """Return the text of a sparse tensor: the arrays that it consists of by name, and what else there is to say.

    ``breaks``: the suffixes begin on a new line.
    """
    options, column = _options, len("tensor(")
    shown = []
    for name, array in parts.items():
        text = _contents(array, column + len(f"{name}=tensor("), options)
        size = "" if array.size else f", size={tuple(array.shape)}"
        shown.append(f"{name}=tensor({text}{size})")
    text = "tensor(" + (",\n" + " " * column).join(shown)
    if breaks and suffixes:
        first, *suffixes = suffixes
        text += ",\n" + " " * column + first
    return _with_suffixes(text, suffixes, 0, column, options) + ")"


def _with_suffixes(text: str, suffixes: list[str], indent: int, column: int, options: PrintOptions) -> str:
    """Append each suffix to the last line if it fits, otherwise on a new line."""
    first_line = "\n" not in text
    end = len(text) - text.rfind("\n") + (indent if first_line else 0) + 1
    for suffix in suffixes:
        if end + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * column + suffix
            end = column + len(suffix)
        else:
            text += ", " + suffix
            end += len(suffix) + 2
    return text


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
        is_parameter=getattr(tensor, "_is_param", False),
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
