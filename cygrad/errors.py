"""Classes of errors that know where things happened.

Each is a subclass of the exception that PyTorch raises in its place. `error.sites` tells a program what the text tells
a person: a dictionary from what happened ("saved", "changed", "freed", "cut", "recorded", ...) to the `Site` of it, a
tuple of file, line and function.
"""

from cygrad._core.errors.classes import (
    AutogradError,
    CaptureError,
    ChangedInPlaceError,
    FreedGraphError,
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
