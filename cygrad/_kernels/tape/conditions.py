"""Values by which Python decides how a step goes on.

A replay reads them again; if one is another, the replay ends, with nothing done, and the step runs as it is written.
"""

from __future__ import annotations

from typing import Any

from cygrad._kernels.tape.calls import noted


@noted
def is_true(array: Any) -> bool:
    """Whether an array of one element is true."""
    return bool(array)


@noted
def whole_number(array: Any) -> int:
    """The element of an array of integers or truth values."""
    return array.item()


@noted
def whole_numbers(array: Any) -> Any:
    """The elements of such an array, as `ndarray.tolist` returns them."""
    return array.tolist()


@noted
def any_true(array: Any) -> bool:
    """Whether any element of an array is true."""
    return bool(array.any())
