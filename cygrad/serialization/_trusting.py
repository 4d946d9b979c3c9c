"""Python's unpickler for files that the user trusts: `weights_only=False`."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

from cygrad.serialization._names import find
from cygrad.serialization._rebuilding import STORAGES, StorageType


def trusting_unpickler(module: ModuleType, options: dict[str, Any]) -> Callable[[bytes, Callable[..., Any]], Any]:
    """Return a function that runs a pickle with a pickle module; `options` go to its `Unpickler`."""
    options = {"encoding": "utf-8", **options}
    base: Any = module.Unpickler

    def run(program: bytes, load_storage: Callable[..., Any]) -> Any:
        class Unpickler(base):
            def find_class(self, origin: str, name: str) -> Any:
                if origin.partition(".")[0] != "torch":
                    return super().find_class(origin, name)
                return STORAGES[name] if name in STORAGES else find(origin, name)

            def persistent_load(self, saved: Any) -> Any:
                kind, *rest = saved
                if _text(kind) == "module":  # of the format before version 1.6: a class, its file and its source
                    return rest[0]
                storage, key, location, length, *view = rest
                if _text(kind) != "storage" or not isinstance(storage, StorageType):
                    raise RuntimeError(f"Unknown saved id type: {kind!r:.99}")
                return load_storage(storage, _text(key), _text(location), length, *view)

        return Unpickler(io.BytesIO(program), **options).load()

    return run


def _text(value: Any) -> Any:
    return value.decode("ascii") if isinstance(value, bytes) else value
