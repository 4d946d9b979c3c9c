"""Whether mixed precision can work on a GPU at all, which libraries ask before they choose a scaler."""

from __future__ import annotations

from cygrad import cuda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU.

    >>> import cygrad
    >>> from cygrad.cuda.amp.common import amp_definitely_not_available
    >>> amp_definitely_not_available() or cygrad.cuda.is_available()
    True
    """
    return not cuda.is_available()
