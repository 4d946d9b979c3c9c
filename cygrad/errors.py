"""Error classes that carry the sites involved.

Each is a subclass of the exception that PyTorch raises in its place. `error.sites` provides programs with what the text
tells humans: a dictionary from events ("saved", "changed", "freed", "cut", "recorded", ...) to the `Site` of each, a
tuple of file, line and function.
"""

from cygrad._core.errors.classes import (
    AutogradError,
    CaptureError,
    ChangedInPlaceError,
    FreedGraphError,
    GraphBreak,
    InvalidGradientError,
    LeafChangedError,
    LeavesGraphError,
    NoGradientError,
    NonFiniteError,
    OverlapError,
    ReadOnlyError,
    Site,
    UnusedInputError,
    ViewChangedError,
)

__all__ = [
    "AutogradError",
    "CaptureError",
    "ChangedInPlaceError",
    "FreedGraphError",
    "GraphBreak",
    "InvalidGradientError",
    "LeafChangedError",
    "LeavesGraphError",
    "NoGradientError",
    "NonFiniteError",
    "OverlapError",
    "ReadOnlyError",
    "Site",
    "UnusedInputError",
    "ViewChangedError",
]
