"""Opt-in checks for mistakes that raise no error; they cost nothing unless enabled."""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from cygrad._core.diagnostics.graph_growth import Watch
from cygrad._core.runtime.interrupt_safe import Block
from cygrad.optim.optimizer import global_post_hooks
from cygrad.utils.warning import warn

__all__ = ["debug"]

_PLACE = "cygrad.debug"  # the key among the hooks


class _Sentinel:
    """A post-step hook of all optimizers that warns once."""

    def __init__(self) -> None:
        self.watches: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()
        self.has_warned = False

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.has_warned:
            return
        watch = self.watches.setdefault(optimizer, Watch())
        text = watch.after_step([parameter for group in optimizer.param_groups for parameter in group["params"]])
        if text is not None:
            self.has_warned = True
            warn(text)


class debug(Block):
    """Enable or disable detection of growing graphs, immediately, and as a context manager until the end of the block.

    After each `optimizer.step()` the live nodes of earlier steps' graphs are counted. If the count has grown five steps
    in a row, one UserWarning describes the oldest retained result: the line that created it, the length of the chain of
    nodes behind it, where it enters earlier steps, and what to write instead. Typical causes are a running total of
    losses, a list of them, or state carried over without `detach`. Each count walks over all objects, which takes
    milliseconds; when disabled, there is no cost. Raises TypeError unless `mode` is a bool.

    >>> import cygrad, warnings
    >>> w = cygrad.ones(1, requires_grad=True)
    >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
    >>> total = 0
    >>> with cygrad.debug(), warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     for _ in range(10):
    ...         loss = (w * w).sum()
    ...         loss.backward()
    ...         optimizer.step()
    ...         total += loss
    >>> print(str(seen[0].message).splitlines()[-1].strip())
    to fix it: a running total needs no history: add `loss.detach()` or `loss.item()` to it
    """

    def __init__(self, mode: bool = True) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"debug(): argument 'mode' must be bool, not {type(mode).__name__}")
        self._former = global_post_hooks.get(_PLACE)
        self._sentinel = _Sentinel() if mode else None
        function, sentinel = _putting(self._sentinel)
        function(sentinel)

    def _plan(self) -> Any:
        end, former = _putting(self._former)
        return *_putting(self._sentinel), former, end


def _putting(sentinel: _Sentinel | None) -> tuple[Any, Any]:
    """Return (function, argument) that install this sentinel, or none, as the post-step hook."""
    if sentinel is None:
        return partial(global_post_hooks.pop, _PLACE), None
    return partial(global_post_hooks.__setitem__, _PLACE), sentinel
