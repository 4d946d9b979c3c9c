"""What looks for mistakes that raise no error, at a price that is paid only where it is switched on."""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from cygrad._core.diagnostics.graph_growth import Watch
from cygrad._core.errors.sites import warn
from cygrad._core.runtime.interrupt_safe import Block
from cygrad.optim.optimizer import global_post_hooks

__all__ = ["debug"]

_PLACE = "cygrad.debug"  # among the hooks


class _Sentinel:
    """Called after each step of each optimizer; warns once."""

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
    """Switch on, or off, the search for graphs that grow: at once, and as a context manager until the end of the block.

    After each `optimizer.step()` what is alive of the graphs of earlier steps is counted. If it has become more in five
    steps in a row, one UserWarning tells of the oldest result that is held: the line that made it, how long the chain
    of nodes behind it is, where it enters earlier steps, and what to write instead. A running total of losses, a list
    of them, or a state that is carried on without `detach` are the usual causes. Each count walks over all objects,
    which takes milliseconds; where this is off, nothing is done. Raises TypeError for what is no bool.

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
    to mend it: a running total needs no history: add `loss.detach()` or `loss.item()` to it
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
    """The function, and its argument, that make this one, or none, the one that is called after each step."""
    if sentinel is None:
        return partial(global_post_hooks.pop, _PLACE), None
    return partial(global_post_hooks.__setitem__, _PLACE), sentinel
