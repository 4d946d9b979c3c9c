"""The values of losses' `reduction`, and the two deprecated flags that it replaces."""

from __future__ import annotations

from cygrad.utils.warning import warn

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number of a `reduction`. Raises ValueError if there is no such one.

    >>> from cygrad.nn._reduction import get_enum
    >>> get_enum("mean")
    1
    """
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction\n  give 'none', 'mean' or 'sum'")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Translate the two deprecated flags to a `reduction`; a flag that is None counts as True."""
    if reduce is not None and not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Translate the two deprecated flags to the number of a `reduction`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
