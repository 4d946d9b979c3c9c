from typing import Any

from cygrad.utils.hooks import HookDict

global_hooks: HookDict

class Called:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def call_as_written(module: Any, *args: Any, **kwargs: Any) -> Any: ...
def find_member(self: Any, name: str) -> Any: ...
