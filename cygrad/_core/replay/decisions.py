"""Conditions on values by which the package's own Python code decides, and which a captured step tests again."""

from __future__ import annotations

from typing import Any

from cygrad._core.graph.internals import array_of
from cygrad._kernels.tape.conditions import is_true


def decide(condition: Any) -> bool:
    """Return whether a tensor of one element is true. A replay that finds it otherwise ends, with nothing done."""
    return is_true(array_of(condition))
