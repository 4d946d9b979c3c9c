"""Notes that new nodes receive, and the stack of the program that they come from."""

import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
]

_current: dict[str, Any] = {}
_preserves = False


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """In the block, `set_current_meta` and `annotate` have an effect.

    >>> from cygrad.fx import traceback
    >>> with traceback.preserve_node_meta():
    ...     traceback.has_preserved_node_meta()
    True
    """
    global _preserves, _current
    outer, _preserves = (_preserves, _current), enable
    _current = dict(_current)
    try:
        yield
    finally:
        _preserves, _current = outer


def has_preserved_node_meta() -> bool:
    """Whether a block `preserve_node_meta` is open.

    >>> from cygrad.fx.traceback import has_preserved_node_meta
    >>> has_preserved_node_meta()
    False
    """
    return _preserves


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """In the block, the current notes have the entries of a dictionary under "custom".

    >>> from cygrad.fx import traceback
    >>> with traceback.preserve_node_meta(), traceback.annotate({"stage": 1}):
    ...     traceback.get_current_meta()["custom"]
    {'stage': 1}
    """
    global _current
    outer = _current
    if _preserves:
        _current = {**_current, "custom": {**_current.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _current = outer


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for functions whose calls are blocks of `annotate`.

    >>> from cygrad.fx import traceback
    >>> @traceback.annotate_fn({"stage": 1})
    ... def stage():
    ...     return traceback.get_current_meta()["custom"]
    >>> with traceback.preserve_node_meta():
    ...     stage()
    {'stage': 1}
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorator


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """In the block, the current notes are those of a node."""
    global _current
    outer = _current
    if _preserves and node.meta:
        _current = dict(node.meta)
    try:
        yield
    finally:
        _current = outer


def get_current_meta() -> dict[str, Any]:
    """Return the current notes.

    >>> from cygrad.fx.traceback import get_current_meta
    >>> get_current_meta()
    {}
    """
    return _current


def set_stack_trace(stack: list[str]) -> None:
    """Note the lines of a stack trace, if notes are preserved."""
    if _preserves and stack:
        _current["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Return the lines of the noted stack trace, or of the current one.

    >>> from cygrad.fx.traceback import format_stack
    >>> all(isinstance(line, str) for line in format_stack())
    True
    """
    if _preserves:
        return [_current.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])
