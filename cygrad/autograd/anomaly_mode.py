"""Anomaly mode: backward stops at the first node that produces a NaN and names its line; `nan_check` is cheaper."""

from __future__ import annotations

from cygrad._core.engine.run import get_anomaly, set_anomaly
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.runtime.interrupt_safe import Block
from cygrad._core.runtime.thread_state import WATCH_INF, WATCH_NAN, WATCH_RESULTS, get_watch, set_watch

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "nan_check",
    "set_anomaly_enabled",
    "set_detect_anomaly",
]


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> import cygrad
    >>> with cygrad.autograd.set_detect_anomaly(True):
    ...     cygrad.is_anomaly_enabled()
    True
    """
    return get_anomaly()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, when enabled, checks for NaN.

    >>> import cygrad
    >>> with cygrad.autograd.set_detect_anomaly(True, check_nan=False):
    ...     cygrad.is_anomaly_check_nan_enabled()
    False
    """
    enabled, check_nan = get_anomaly()
    return check_nan or not enabled


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Enable or disable anomaly mode. Raises TypeError unless both arguments are bools.

    >>> import cygrad
    >>> cygrad.set_anomaly_enabled(True)
    >>> cygrad.is_anomaly_enabled()
    True
    >>> cygrad.set_anomaly_enabled(False)
    """
    set_anomaly(_checked(mode, check_nan))


def _checked(mode, check_nan):
    for position, (name, value) in enumerate((("enabled", mode), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise messages.wrong_type("set_anomaly_enabled", name, position, "bool", value)
    return mode, check_nan


class set_detect_anomaly(Block):
    """Enable or disable anomaly mode: immediately, and as a context manager until the end of the block.

    With `check_nan` a backward pass raises RuntimeError at the first node whose result contains a NaN. The error names
    the line that recorded the node, and the first NaN. The mode applies to all threads, as in PyTorch.

    >>> import cygrad
    >>> with cygrad.autograd.set_detect_anomaly(True):
    ...     cygrad.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._former = get_anomaly()
        set_anomaly_enabled(mode, check_nan)

    def _plan(self):
        return set_anomaly, get_anomaly(), self._former


class detect_anomaly(Block):
    """Enable anomaly mode for a block, with a warning; see `set_detect_anomaly`.

    >>> import cygrad, warnings
    >>> x = cygrad.zeros(1, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with cygrad.autograd.detect_anomaly():
    ...         try:
    ...             (x.sqrt() * 0).backward()
    ...         except RuntimeError as error:
    ...             print(str(error).partition("\\n")[0])
    Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging."
        )

    def _plan(self):
        return set_anomaly, _checked(True, self._check_nan), get_anomaly()


class nan_check(Block):
    """For a block, raise at the first NaN in this thread: in gradients and, with `forward`, in results of ops.

    With `inf`, infinities count, too. The error is an `errors.NonFiniteError` that names the op, the line, the shapes,
    dtypes and ranges of the operands, and the first bad element. The check reads each result once, which takes 2 to 4 %
    of the training step of a network. A NaN that comes from outside is found by the first op that computes with it.

    >>> import cygrad
    >>> with cygrad.autograd.nan_check():
    ...     try:
    ...         cygrad.tensor([1.0, -1.0]).log()
    ...     except cygrad.errors.NonFiniteError as error:
    ...         print(str(error).partition("\\n")[0])
    nan_check: log computed nan values
    """

    def __init__(self, forward: bool = True, inf: bool = False) -> None:
        self._bits = WATCH_NAN | (WATCH_RESULTS if forward else 0) | (WATCH_INF if inf else 0)

    def _plan(self):
        return set_watch, self._bits, get_watch()
