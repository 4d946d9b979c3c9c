"""Error classes that carry the sites involved; public as `cygrad.errors`.

Each is a subclass of the exception that PyTorch raises in its place. `error.sites` provides programs with what the text
tells humans: a dictionary from events ("saved", "changed", "freed", "cut", "recorded", ...) to the `Site` of each.
"""

from importlib import import_module
from typing import NamedTuple

from cygrad._core.errors.sites import line_of


class Site(NamedTuple):
    """A line of the user's code.

    >>> import cygrad
    >>> site = cygrad.errors.Site("train.py", 12, "step")
    >>> str(site), site.function
    ('train.py:12', 'step')
    """

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
    """A tensor that backward needs was changed in place. Sites: saved, changed.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = x.exp()
    >>> z = y.mul_(2)  # exp needs its result
    >>> try:
    ...     z.sum().backward()
    ... except cygrad.errors.ChangedInPlaceError as error:
    ...     list(error.sites)
    ['saved', 'changed']
    """

    __module__ = "cygrad.errors"


class FreedGraphError(AutogradError):
    """The graph was freed by an earlier pass. Sites: freed, recorded, and joined if an old tensor connects both.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> loss = x.exp().sum()
    >>> loss.backward()
    >>> try:
    ...     loss.backward()  # the first call should have had retain_graph=True
    ... except cygrad.errors.FreedGraphError as error:
    ...     list(error.sites)
    ['freed', 'recorded']
    """

    __module__ = "cygrad.errors"


class NoGradientError(AutogradError):
    """Backward from a tensor without a history. Sites: cut.

    >>> import cygrad
    >>> w = cygrad.ones(2, requires_grad=True)
    >>> loss = (w * w).sum().detach()
    >>> try:
    ...     loss.backward()
    ... except cygrad.errors.NoGradientError as error:
    ...     list(error.sites)
    ['cut']
    """

    __module__ = "cygrad.errors"


class LeafChangedError(AutogradError):
    """A leaf that requires grad, or a view of one, was changed in place. Sites: changed, and made for a view.

    >>> import cygrad
    >>> w = cygrad.ones(2, requires_grad=True)
    >>> try:
    ...     w.add_(1)
    ... except cygrad.errors.LeafChangedError as error:
    ...     list(error.sites)
    ['changed']
    >>> with cygrad.no_grad():
    ...     w.add_(1)  # as optimizers do
    tensor([2., 2.], requires_grad=True)
    """

    __module__ = "cygrad.errors"


class ViewChangedError(AutogradError):
    """A view whose history cannot be rewritten was changed in place. Sites: changed, made.

    >>> import cygrad
    >>> x = cygrad.ones(3, requires_grad=True)
    >>> a, b = (x * 2).unbind()[:2]
    >>> try:
    ...     a.add_(1)  # one view of several
    ... except cygrad.errors.ViewChangedError as error:
    ...     list(error.sites)
    ['changed', 'made']
    """

    __module__ = "cygrad.errors"


class OverlapError(AutogradError):
    """Written memory overlaps itself or an operand that is read. Sites: changed.

    >>> import cygrad
    >>> x = cygrad.zeros(1).expand(3)  # three elements at one address
    >>> try:
    ...     x.add_(1)
    ... except cygrad.errors.OverlapError as error:
    ...     list(error.sites)
    ['changed']
    """

    __module__ = "cygrad.errors"


class ReadOnlyError(AutogradError):
    """The memory to be written is read-only. Sites: changed.

    >>> import cygrad
    >>> import numpy as np
    >>> array = np.ones(2)
    >>> array.flags.writeable = False
    >>> x = cygrad.as_tensor(array)
    >>> try:
    ...     x.add_(1)
    ... except cygrad.errors.ReadOnlyError as error:
    ...     list(error.sites)
    ['changed']
    """

    __module__ = "cygrad.errors"


class NonFiniteError(AutogradError):
    """Anomaly mode or `nan_check` found a NaN or an infinity. Sites: recorded, or computed for a result.

    >>> import cygrad
    >>> x = cygrad.zeros(2, requires_grad=True)
    >>> with cygrad.autograd.set_detect_anomaly(True):
    ...     try:
    ...         (x.sqrt() * 0).sum().backward()
    ...     except cygrad.errors.NonFiniteError as error:
    ...         list(error.sites)
    ['recorded']
    """

    __module__ = "cygrad.errors"


class UnusedInputError(AutogradError):
    """An input of `grad` is not part of the graph, or does not require grad. Sites: recorded, called.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> other = cygrad.ones(2, requires_grad=True)
    >>> try:
    ...     cygrad.autograd.grad(x.sum(), other)  # allow_unused=True returns None for it
    ... except cygrad.errors.UnusedInputError as error:
    ...     print(type(error).__name__)
    UnusedInputError
    """

    __module__ = "cygrad.errors"


class InvalidGradientError(AutogradError):
    """A node returned gradients of the wrong number, kind or shape. Sites: recorded.

    >>> import cygrad
    >>> class Double(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2, grad  # one too many
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> try:
    ...     Double.apply(x).sum().backward()
    ... except cygrad.errors.InvalidGradientError as error:
    ...     list(error.sites)
    ['recorded']
    """

    __module__ = "cygrad.errors"


class CaptureError(AutogradError):
    """An operation that cannot be part of a captured GPU graph was executed during capture. Sites: called.

    It is raised within `cuda.graph(...)`, for what makes the host wait, such as `item`:

    >>> import cygrad
    >>> issubclass(cygrad.errors.CaptureError, cygrad.errors.AutogradError)
    True
    """

    __module__ = "cygrad.errors"


class GraphBreak(AutogradError):
    """A function compiled with `fullgraph=True` cannot be replayed. Sites: one for each reason, "reason 1" and so on.

    `reasons` has the text of each.

    >>> import cygrad
    >>> import random
    >>> @cygrad.compile(fullgraph=True)
    ... def f(x):
    ...     return x * random.random()  # a number that a replay could not know
    >>> try:
    ...     for _ in range(4):
    ...         y = f(cygrad.ones(2))
    ... except cygrad.errors.GraphBreak as error:
    ...     len(error.reasons), list(error.sites)
    (1, ['reason 1'])
    """

    __module__ = "cygrad.errors"
    reasons: list[str]

    def note(self, reasons):
        """Keep the reasons, and the lines that they name.

        >>> import cygrad
        >>> error = cygrad.errors.GraphBreak("no plan")
        >>> error.note([])
        >>> error.reasons
        []
        """
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
    """NumPy or a deep copy would lose the gradient. Sites: called, recorded.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> try:
    ...     x.numpy()
    ... except cygrad.errors.LeavesGraphError as error:
    ...     list(error.sites)
    ['called']
    >>> x.detach().numpy()
    array([1., 1.], dtype=float32)
    """

    __module__ = "cygrad.errors"


# Pickles refer to these classes as `cygrad.errors.NoGradientError` and the like, and some picklers (cloudpickle, and so
# Ray) look into loaded modules only.
import_module("cygrad.errors")


class AcceleratorError(RuntimeError):
    """PyTorch's class for errors from an accelerator. In cygrad, errors from GPUs are of CuPy's classes instead.

    >>> import cygrad
    >>> issubclass(cygrad.AcceleratorError, RuntimeError)
    True
    """

    __module__ = "cygrad"
