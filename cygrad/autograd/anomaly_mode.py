"""Anomaly mode: backward passes stop at the first node that makes a nan, and name its forward line."""

import warnings

from cygrad._core.run import get_anomaly, set_anomaly


def is_anomaly_enabled():
    """Whether anomaly mode is on."""
    return get_anomaly()[0]


def is_anomaly_check_nan_enabled():
    """Whether anomaly mode, when it is on, looks for nan."""
    enabled, check_nan = get_anomaly()
    return check_nan or not enabled


def set_anomaly_enabled(mode, check_nan=True):
    """Switch anomaly mode on or off."""
    set_anomaly(bool(mode), bool(check_nan))


class set_detect_anomaly:
    """Switch anomaly mode on or off: at once, and as a context manager until the end of the block.

    With `check_nan` a backward pass raises RuntimeError at the first node whose result holds a nan.
    """

    def __init__(self, mode, check_nan=True):
        self._former = get_anomaly()
        set_anomaly(bool(mode), bool(check_nan))

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        set_anomaly(*self._former)


class detect_anomaly:
    """Anomaly mode for a block; see `set_detect_anomaly`.

    >>> import cygrad
    """

    def __init__(self, check_nan=True):
        self._check_nan = check_nan
        self._former = get_anomaly()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self._former = get_anomaly()
        set_anomaly(True, self._check_nan)

    def __exit__(self, *exc_info):
        set_anomaly(*self._former)
