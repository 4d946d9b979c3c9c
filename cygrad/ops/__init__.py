"""Ops by the names of PyTorch's library, as in `ops.aten.mm.default`: for programs that call ops or tell them apart.

An op is found among the functions that only this library has (`_aten`), the public functions of
the package, and the methods of Tensor. Overloads of an op call the same function, which accepts the arguments of all.

Ops that have several names in PyTorch, one for each backend, are a single op here and compare equal: `convolution` and
`conv2d`, the various `_scaled_dot_product_..._attention`.
"""

import sys
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Self

import cygrad
from cygrad._core.graph.opdef import registry
from cygrad._core.registry.autocast import POLICY_OF
from cygrad._core.registry.dispatch import taken_up
from cygrad.ops._schema import FunctionSchema
from cygrad.ops._schema_table import outs_of, overloads_of, schema_of, tags_of
from cygrad.overrides import handle_torch_function

__all__ = ["aten", "load_library"]

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
_MODULES = (
    "_aten",
    "_dispatch",
    "_dispatch_gradients",
    "_dispatch_images",
    "_dispatch_layers",
    "_dispatch_linalg",
    "_dispatch_losses",
    "_dispatch_rules",
    "_dispatch_searches",
    "_dispatch_views",
    "_higher_order",
    "_schema",
    "_schema_table",
    "_schema_types",
)  # of this package, not libraries of ops
_NAMESPACES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}  # by the beginning of a name


def _has_policy(name: str) -> bool:
    registry.import_families()
    return name in POLICY_OF


def _function_of(name: str) -> Callable[..., Any] | None:
    """Return the function of an op, or None if there is none."""
    own = import_module(f"{__name__}._aten").functions
    if name in own:
        return own[name]
    for beginning, namespace in _NAMESPACES.items():
        if name.startswith(beginning):
            found = getattr(import_module(f"cygrad.{namespace}"), name.removeprefix(beginning), None)
            if found is not None:
                return found
    found = getattr(cygrad, name, None)
    found = getattr(cygrad.Tensor, name, None) if found is None else found
    if found is None and name in registry:
        found = registry[name].entry
    return found if callable(found) else None


class _Named:
    """What is known by its name: its copies are the thing itself, and a pickle holds the name."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, tuple(str(self).split("."))


def _named(namespace: str, *names: str) -> Any:
    """Return the packet, or the overload, of these names."""
    found = getattr(sys.modules[__name__], namespace)
    for name in names:
        found = getattr(found, name)
    return found


def _standing_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments that stand for tensors without being any, such as proxies; they see the op itself."""
    return [
        value
        for value in (*args, *kwargs.values())
        if hasattr(value, "__torch_function__") and not isinstance(value, (cygrad.Tensor, type))
    ]


class OpOverload(_Named):
    """An op: equal to others with the same name, and callable if it is a function of the package.

    >>> import cygrad
    >>> op = cygrad.ops.aten.mm.default
    >>> op.name(), op == cygrad.ops.aten.mm.default
    ('aten::mm', True)
    >>> op(cygrad.eye(2), cygrad.ones(2, 1))
    tensor([[1.],
            [1.]])
    """

    def __init__(self, packet: "OpOverloadPacket", overload: str) -> None:
        self.overloadpacket = self._overloadpacket = packet
        self._overloadname = overload
        self._opname = packet.__name__
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.name()
        self.namespace = packet.namespace
        self.__module__ = packet.__module__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str]:
        name = self.overloadpacket.__name__
        return _SAME.get(name, name), self._overloadname

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = taken_up(self, args, kwargs)
        if found is not None:
            return found[0]
        if standing_in := _standing_in(args, kwargs):
            return handle_torch_function(self, standing_in, *args, **kwargs)
        packet = self.overloadpacket
        if "out" in kwargs and not self._takes_out:
            raise RuntimeError(
                f"Unknown keyword argument 'out' for operator '{packet._qualified_op_name}'. Schema: {self._schema}"
            )
        return packet(*args, **kwargs)

    @property
    def op(self) -> Callable[..., Any]:
        """The function of the op."""
        return self.overloadpacket.op

    @property
    def _schema(self) -> FunctionSchema:
        found = schema_of(self._opname, self._overloadname)
        if found is None:
            raise AttributeError(f"PyTorch has no op {self.name()}, so that it has no schema")
        return found

    @cached_property
    def tags(self) -> list[Any]:
        """What PyTorch notes of the op: `torch.Tag.pointwise`, for example."""
        return tags_of(self._opname, self._overloadname)

    @cached_property
    def _nondeterministic_seeded(self) -> bool:
        return cygrad.Tag.nondeterministic_seeded in self.tags

    @cached_property
    def _takes_out(self) -> bool:
        """Whether the op has an argument `out`, which need not be one that it writes into."""
        schema = getattr(self, "_schema", None)
        return schema is None or any(argument.name == "out" for argument in schema.arguments)

    @cached_property
    def _is_mutable(self) -> bool:
        """Whether the op writes into an argument."""
        schema = getattr(self, "_schema", None)  # which ops lack that PyTorch does not have
        return self._opname.endswith("_") and not self._opname.endswith("__") if schema is None else schema.is_mutable

    @property
    def is_view(self) -> bool:
        """Whether the result shares the memory of an argument."""
        return self._schema._is_view_op()

    def name(self) -> str:
        """Return a name like `aten::mm`."""
        return self.overloadpacket._qualified_op_name + f".{self._overloadname}".removesuffix(".default")

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket(_Named):
    """The overloads of an op, as attributes; `default` is the one for the usual arguments.

    >>> import cygrad
    >>> packet = cygrad.ops.aten.mm
    >>> packet, packet.overloads()
    (<OpOverloadPacket(op='aten.mm')>, ['default', 'dtype', 'out', 'dtype_out'])
    >>> packet(cygrad.eye(2), cygrad.ones(2, 1))
    tensor([[1.],
            [1.]])
    """

    namespace = "aten"

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._qualified_op_name = f"{self.namespace}::{name}"
        self.__module__ = f"torch._ops.{self.namespace}"  # which programs show
        self.default = OpOverload(self, "default")

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return overloads_of(self.__name__) + outs_of(self.__name__)

    @property
    def _schemas(self) -> dict[str, FunctionSchema]:
        found = {overload: getattr(self, overload)._schema for overload in self.overloads()}
        return {schema.overload_name: schema for schema in found.values()}

    @property
    def op(self) -> Callable[..., Any]:
        """The function of the op. Raises NotImplementedError if there is none."""
        found = _function_of(self.__name__)
        if found is None:
            raise NotImplementedError(f"{self._qualified_op_name} is a name without a function here")
        return found

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):  # asked before there is a name, and of no op
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{overload}'")
        is_known = overload in self.overloads() or f"{self.__name__}.{overload}" in registry
        if not (is_known or overload.endswith("out")):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        setattr(self, overload, found := OpOverload(self, overload))
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if standing_in := _standing_in(args, kwargs):
            return handle_torch_function(self, standing_in, *args, **kwargs)
        if "self" in kwargs and not args:  # public functions call it `input`
            args = (kwargs.pop("self"),)
        return self.op(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _OpNamespace(ModuleType):
    """The ops of a library, by name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{__name__}.{name}")
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")


class _Aten(_OpNamespace):
    """The ops of PyTorch's own library, by name."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        is_special = name.startswith("__") and name not in ("__and__", "__or__", "__xor__")
        if is_special or not (name in _KNOWN or _function_of(name) is not None or _has_policy(name)):
            return super().__getattr__(name)
        setattr(self, name, packet := OpOverloadPacket(name))
        return packet


aten = sys.modules[f"{__name__}.aten"] = _Aten("aten")


missed_libraries: list[str] = []  # the paths of those that programs tried to load


def load_library(path: str) -> None:
    """Load a C++ library of ops: raises OSError, since such libraries need PyTorch itself.

    >>> import cygrad
    >>> cygrad.ops.load_library("libmylib.so")
    Traceback (most recent call last):
        ...
    OSError: Could not load this library: libmylib.so...
    """
    missed_libraries.append(path)
    raise OSError(f"Could not load this library: {path}\n  it needs the C++ library of PyTorch, which is not here")


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name in _MODULES:
        raise AttributeError(f"module 'cygrad.ops' has no attribute {name!r}")
    globals()[name] = found = _OpNamespace(name)
    return found
