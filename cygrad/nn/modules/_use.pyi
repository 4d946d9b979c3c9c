from typing import Any, TypeVar

from cygrad.utils.hooks import HookDict

_C = TypeVar("_C", bound=type)

global_hooks: HookDict

def with_calls(cls: _C) -> _C: ...
def call_as_written(module: Any, *args: Any, **kwargs: Any) -> Any: ...
def find_member(self: Any, name: str) -> Any: ...
