"""Error classes that carry the sites involved; public as `cygrad.errors`.

Each is a subclass of the exception that PyTorch raises in its place. `error.sites` provides programs with what the text
tells humans: a dictionary from events ("saved", "changed", "freed", "cut", "recorded", ...) to the `Site` of each.
"""

from importlib import import_module
from typing import NamedTuple

from cygrad._core.errors.sites import line_of


class Site(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int | None
    function: str

    def __str__(self):
        return f"{self.file}:{self.line}"


def site(code, offset):
    """Return the site of an instruction, or None if no Python code was running."""
    return None if code is None else Site(code.co_filename, line_of(code, offset), code.co_qualname)


class AutogradError(RuntimeError):
    """Base class of graph errors; `sites` maps each event to the line where it happened.

    >>> import cygrad
    >>> w = cygrad.ones(2, requires_grad=True)
    >>> try:
    ...     w += 1
    ... except cygrad.errors.LeafChangedError as error:
    ...     list(error.sites)
    ['changed']
    """

    __module__ = "cygrad.errors"
    sites: dict[str, Site]

    def __init__(self, text, **places):
        super().__init__(text)
        found = {name: site(*place) for name, place in places.items() if place is not None}
        self.sites = {name: where for name, where in found.items() if where is not None}


class ChangedInPlaceError(AutogradError):
    """A tensor that backward needs was changed in place. Sites: saved, changed."""

    __module__ = "cygrad.errors"


class FreedGraphError(AutogradError):
    """The graph was freed by an earlier pass. Sites: freed, recorded, and joined if an old tensor connects both."""

    __module__ = "cygrad.errors"


class NoGradientError(AutogradError):
    """Backward from a tensor without a history. Sites: cut."""

    __module__ = "cygrad.errors"


class LeafChangedError(AutogradError):
    """A leaf that requires grad, or a view of one, was changed in place. Sites: changed, and made for a view."""

    __module__ = "cygrad.errors"


class ViewChangedError(AutogradError):
    """A view whose history cannot be rewritten was changed in place. Sites: changed, made."""

    __module__ = "cygrad.errors"


class OverlapError(AutogradError):
    """Written memory overlaps itself or an operand that is read. Sites: changed."""

    __module__ = "cygrad.errors"


class ReadOnlyError(AutogradError):
    """The memory to be written is read-only. Sites: changed."""

    __module__ = "cygrad.errors"


class NonFiniteError(AutogradError):
    """Anomaly mode or `nan_check` found a NaN or an infinity. Sites: recorded, or computed for a result."""

    __module__ = "cygrad.errors"


class UnusedInputError(AutogradError):
    """An input of `grad` is not part of the graph, or does not require grad. Sites: recorded, called."""

    __module__ = "cygrad.errors"


class InvalidGradientError(AutogradError):
    """A node returned gradients of the wrong number, kind or shape. Sites: recorded."""

    __module__ = "cygrad.errors"


class CaptureError(AutogradError):
    """An operation that cannot be part of a captured GPU graph was executed during capture. Sites: called."""

    __module__ = "cygrad.errors"


class GraphBreak(AutogradError):
    """A function compiled with `fullgraph=True` cannot be replayed. Sites: one for each reason, "reason 1" and so on.

    `reasons` has the text of each.
    """

    __module__ = "cygrad.errors"
    reasons: list[str]

    def note(self, reasons):
        """Keep the reasons, and the lines that they name."""
        self.reasons = [reason.text for reason in reasons]
        for i, reason in enumerate(reasons, 1):
            if reason.site is not None:
                file, line = reason.site
                self.sites[f"reason {i}"] = Site(file, line, "")


class OutOfMemoryError(RuntimeError):
    """A GPU has too little free memory, even after releasing everything that can be released.

    >>> import cygrad
    >>> issubclass(cygrad.OutOfMemoryError, RuntimeError)
    True
    """

    __module__ = "cygrad"


class LeavesGraphError(AutogradError):
    """NumPy or a deep copy would lose the gradient. Sites: called, recorded."""

    __module__ = "cygrad.errors"


# Pickles refer to these classes as `cygrad.errors.NoGradientError` and the like, and some picklers (cloudpickle, and so
# Ray) look into loaded modules only.
import_module("cygrad.errors")
