"""Parametrizations: parameters or buffers computed from other tensors on each access.

A parametrized module gets its own class, a subclass of the original, with a property in place of the parameter.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.modules.container import ModuleDict, ModuleList
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache(threading.local):
    """Values computed inside `cached()`, keyed by module and name."""

    depth = 0

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], Any] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once inside `with cached():`, on first access.

    >>> import cygrad
    >>> from cygrad.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(cygrad.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order of application, and the tensors it is computed from.

    These are `original`, or `original0`, `original1`, ... if the first parametrization's `right_inverse`
    returns several. Created by `register_parametrization`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    >>> m.parametrizations.weight
    ParametrizationList(
      (0): Tanh()
    )
    >>> m.parametrizations.weight.original.shape
    torch.Size([2, 2])
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with cygrad.no_grad():
            value: Any = original
            for module in reversed(list(self)):
                value = _inverse(module, value)
        if not isinstance(value, (Tensor, Sequence)) or isinstance(value, str):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if isinstance(value, Tensor) else len(value)
        if isinstance(value, Tensor):
            self._keep_one(original, value)
        else:
            self._keep_several(original, value)
        if not unsafe:
            self._check_result(shape, dtype)

    def _keep_one(self, original: Tensor, value: Tensor) -> None:
        if value.dtype != original.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {value.dtype}"
            )
        if value is not original:  # keep the object, since an optimizer may hold it
            original.data = value.detach()
        _register(self, "original", original)

    def _keep_several(self, original: Tensor, values: Sequence[Any]) -> None:
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad and value.is_floating_point())
            _register(self, f"original{i}", value.requires_grad_(original.requires_grad))

    def _check_result(self, shape: Any, dtype: Any) -> None:
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def originals(self) -> list[Tensor]:
        """Return the tensors that the first parametrization takes.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.nn.utils import parametrize
        >>> m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
        >>> len(m.parametrizations.weight.originals())
        1
        """
        return [getattr(self, name) for name in self._names()]

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    @cygrad.no_grad()
    def right_inverse(self, value: Any) -> None:
        """Update the originals so that the parametrized tensor becomes `value`, as assigning to it does.

        Calls `right_inverse` of the parametrizations, last to first. Raises `RuntimeError` if one has none.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.nn.utils import parametrize
        >>> class Double(nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        ...     def right_inverse(self, x):
        ...         return x / 2
        >>> m = parametrize.register_parametrization(nn.Linear(1, 1), "weight", Double())
        >>> m.parametrizations.weight.right_inverse(cygrad.tensor([[6.0]]))
        >>> m.parametrizations.weight.original, m.weight
        (Parameter containing:
        tensor([[3.]], requires_grad=True), tensor([[6.]], grad_fn=<MulBackward0>))
        """
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            value = module.right_inverse(value)
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            if value.dtype != self.original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                    f"while `original` has dtype {self.original.dtype}"
                )
            values: Sequence[Tensor] = [value]
        else:
            values = self._checked(value)
        for original, new in zip(self.originals(), values):
            original.data = new.detach()

    def _checked(self, values: Any) -> Sequence[Tensor]:
        if not isinstance(values, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                f"Got a sequence of length {len(values)}."
            )
        for i, (value, original) in enumerate(zip(values, self.originals())):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                    f"Got element {i} of type {type(value).__name__}."
                )
            if value.dtype != original.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} "
                    f"while `original{i}` has dtype {original.dtype}"
                )
        return values

    def forward(self) -> Tensor:
        """Return the parametrized tensor.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.nn.utils import parametrize
        >>> m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
        >>> cygrad.equal(m.parametrizations.weight(), m.weight)
        True
        """
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of `module` by `parametrization`; return `module`.

    `module.weight` then equals `parametrization(original)`, where `module.parametrizations.weight.original` is the
    parameter, or the result of `parametrization.right_inverse` on it. Registering another parametrization of the
    same tensor applies it to the result. Assigning to `module.weight` requires `right_inverse`.

    Dtype and shape may not change unless `unsafe`, which skips all checks. Raises `ValueError` if they do, and for
    an unknown name.

    >>> import cygrad
    >>> from cygrad import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        entry = module.parametrizations[tensor_name]
        entry.append(parametrization)
        entry.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        entry = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = entry
        _choose_class(module)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether any tensor of the module, or the one of this name, is parametrized.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.utils import parametrize
    >>> m = nn.Linear(2, 2)
    >>> m = parametrize.register_parametrization(m, "weight", nn.Tanh())
    >>> parametrize.is_parametrized(m), parametrize.is_parametrized(m, "bias")
    (True, False)
    """
    parametrizations = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Turn a parametrized tensor back into a parameter or buffer with its current value; return `module`.

    With `leave_parametrized=False` it gets the original's value. Raises `ValueError` if the tensor is not
    parametrized, or if it has several originals and `leave_parametrized` is false.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    >>> m = parametrize.remove_parametrizations(m, "weight")
    >>> parametrize.is_parametrized(m), type(m.weight).__name__
    (False, 'Parameter')
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry = module.parametrizations[tensor_name]
    if entry.is_tensor:
        tensor = entry.original
        if leave_parametrized:
            with cygrad.no_grad():
                tensor.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    _choose_class(module)
    _register(module, tensor_name, tensor)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of the module before it was parametrized.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    >>> type(m).__name__, parametrize.type_before_parametrizations(m).__name__
    ('ParametrizedLinear', 'Linear')
    """
    return getattr(type(module), "_unparametrized", type(module))


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Share the parametrizations of `from_module` (of one tensor, if named) and their originals with `to_module`.

    Tensors that do not exist in `to_module` are created.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    >>> other = parametrize.transfer_parametrizations_and_params(m, nn.Linear(2, 2))
    >>> parametrize.is_parametrized(other, "weight")
    True
    """
    if not is_parametrized(from_module):
        return to_module
    source = from_module.parametrizations
    for name in [tensor_name] if tensor_name is not None else list(source):
        entry = source[name]
        if not (name in to_module._parameters or name in to_module._buffers or is_parametrized(to_module, name)):
            _register(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in entry:
            register_parametrization(to_module, name, parametrization, unsafe=entry.unsafe)
        target = to_module.parametrizations[name]
        for original_name, original in zip(entry._names(), entry.originals()):
            setattr(target, original_name, original)
    return to_module


def _register(module: Any, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _inverse(module: Any, value: Any) -> Any:
    """Return the result of `right_inverse`, or the value itself if there is none."""
    if not hasattr(module, "right_inverse"):
        return value
    try:
        return module.right_inverse(value)
    except NotImplementedError:  # a parametrization without an inverse for its current options
        return value


def _check_next(module: Module, name: str, parametrization: Module) -> None:
    """Raise `ValueError` unless a further parametrization preserves dtype and shape, in both directions."""
    before = getattr(module, name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"parametrization(module.{name}).{what}: {getattr(after, what)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    back = _inverse(parametrization, after)
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        if getattr(back, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"returned {what}: {getattr(back, what)}"
            )


# --- The class of a parametrized module --


def _choose_class(module: Any) -> None:
    """Switch the module to a class with a property per parametrized tensor, or back to its original class."""
    base = type_before_parametrizations(module)
    names = list(module.parametrizations) if is_parametrized(module) else []
    if not names:
        module.__class__ = base
        return
    members: dict[str, Any] = {name: property(_getter(name), _setter(name)) for name in names}
    members |= {"_unparametrized": base, "__getstate__": _refuse_to_pickle, "__module__": __name__}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _getter(name: str) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        if not _cache.depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = self.parametrizations[name]()
        return _cache.values[key]

    return get


def _setter(name: str) -> Callable[[Any, Any], None]:
    def set(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return set


def _refuse_to_pickle(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    memo[id(self)] = new = self.__new__(type(self))
    new.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return new
