"""Names of ops as PyTorch writes them: selective checkpoints refer to matrix products as `ops.aten.mm.default`.

Ops that have several names in PyTorch, one for each backend, are a single op here and compare equal: `convolution` and
`conv2d`, the various `_scaled_dot_product_..._attention`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import cygrad
from cygrad._core.graph.opdef import registry
from cygrad._core.registry.autocast import POLICY_OF

_SAME = dict.fromkeys(
    [
        *[f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)],
        "_convolution",
        "convolution_overrideable",
        "mkldnn_convolution",
        "thnn_conv2d",
    ],
    "convolution",
)
_SAME |= dict.fromkeys(
    [
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
    ],
    "scaled_dot_product_attention",
)
_KNOWN = {"convolution"} | _SAME.keys()


def _has_policy(name):
    registry.import_families()
    return name in POLICY_OF


class OpOverload:
    """An op: equal to others with the same name, and callable if it is a function of the package."""

    def __init__(self, packet: Any, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self):
        name = self.overloadpacket.__name__
        return _SAME.get(name, name), self._overloadname

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """Return a name like `aten::mm`."""
        return f"aten::{self.overloadpacket.__name__}" + f".{self._overloadname}".removesuffix(".default")

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """The overloads of an op, as attributes; `default` is the one for the usual arguments."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.default = OpOverload(self, "default")

    def __getattr__(self, overload: str) -> Any:
        if f"{self.__name__}.{overload}" not in registry:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        setattr(self, overload, found := OpOverload(self, overload))
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(cygrad, self.__name__)(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _Aten(ModuleType):
    """The ops, by name."""

    def __getattr__(self, name: str) -> Any:
        is_special = name.startswith("__")
        if is_special or not (name in _KNOWN or name in registry or hasattr(cygrad, name) or _has_policy(name)):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        setattr(self, name, packet := OpOverloadPacket(name))
        return packet


aten = sys.modules[f"{__name__}.aten"] = _Aten(f"{__name__}.aten")
