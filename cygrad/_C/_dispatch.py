"""PyTorch's dispatch keys and tags, which programs name: cygrad has no dispatcher, so that they change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
_KEYS = {
    "Undefined": 0,
    "Dense": 1,
    "Quantized": 5,
    "Sparse": 8,
    "SparseCsr": 9,
    "NestedTensor": 10,
    "BackendSelect": 11,
    "Python": 13,
    "FuncTorchDynamicLayerBackMode": 14,
    "Functionalize": 15,
    "Conjugate": 16,
    "Negative": 17,
    "ZeroTensor": 18,
    "ADInplaceOrView": 19,
    "AutogradOther": 20,
    "AutogradFunctionality": 21,
    "AutogradNestedTensor": 22,
    "AutocastCPU": 24,
    "AutocastXPU": 27,
    "AutocastIPU": 28,
    "AutocastHPU": 29,
    "AutocastMPS": 31,
    "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33,
    "FuncTorchBatched": 34,
    "FuncTorchVmapMode": 36,
    "FuncTorchGradWrapper": 39,
    "PythonTLSSnapshot": 41,
    "FuncTorchDynamicLayerFrontMode": 42,
    "PreDispatch": 45,
    "PythonDispatcher": 46,
}
for _first, _prefix in ((49, ""), (66, "Quantized"), (83, "Sparse"), (100, "SparseCsr"), (117, "NestedTensor")):
    _KEYS |= {f"{_prefix}{_backend}": _first + _i for _i, _backend in enumerate(_BACKENDS)}
_KEYS |= {f"Autograd{_backend}": 134 + _i for _i, _backend in enumerate(_BACKENDS)}
_KEYS |= {"Autograd": 150, "CompositeImplicitAutograd": 151, "FuncTorchBatchedDecomposition": 152}
_KEYS |= {"CompositeImplicitAutogradNestedTensor": 153, "CompositeExplicitAutograd": 154}
_KEYS |= {"CompositeExplicitAutogradNonFunctional": 155}
_TAGS = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy"
).split()

DispatchKey: Any = IntEnum("DispatchKey", _KEYS, module="cygrad._C", qualname="DispatchKey")  # type: ignore[misc]
DispatchKey.__doc__ = "The functions of an op among which PyTorch's dispatcher chooses."
_NUMBERS = {name: number for number, name in enumerate(_TAGS)}
Tag: Any = IntEnum("Tag", _NUMBERS, module="cygrad", qualname="Tag")  # type: ignore[misc]
Tag.__doc__ = """What PyTorch notes of an op.

    >>> import cygrad
    >>> cygrad.Tag.pointwise.name
    'pointwise'
    """


class DispatchKeySet:
    """A set of dispatch keys, made from one."""

    def __init__(self, key: Any) -> None:
        self._keys = frozenset((key,) if isinstance(key, DispatchKey) else key)

    def has(self, key: Any) -> bool:
        """Whether a key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """Return the set with a key more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """Return the set without a key."""
        return DispatchKeySet(self._keys - {key})

    def highestPriorityTypeId(self) -> Any:
        """Return the key that the dispatcher would take first."""
        return max(self._keys, default=DispatchKey(0))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __iter__(self) -> Any:
        return iter(sorted(self._keys))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


class _Guard:
    """A block in which keys are left out or added; ops do not ask for them."""

    def __init__(self, keys: Iterable) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        """Nothing changes."""

    def __exit__(self, *error: Any) -> None:
        """Nothing was changed."""


class _ExcludeDispatchKeyGuard(_Guard):
    """A block without keys."""


class _IncludeDispatchKeyGuard(_Guard):
    """A block with additional keys."""
