"""Modules as functions of their parameters, as the package `functorch` has them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cygrad
from cygrad import Tensor, nn
from cygrad.func.modules import check_alike

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble"]
__all__ += ["functional_init", "functional_init_with_buffers"]
__all__ += ["make_functional", "make_functional_with_buffers"]


class FunctionalModuleWithBuffers(nn.Module):
    """The function of `make_functional_with_buffers`: `func(params, buffers, *args)`."""

    def __init__(self, stateless_model: nn.Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters and buffers in place of its own."""
        names = (*self.param_names, *self.buffer_names)
        state = dict(zip(names, (*params, *buffers), strict=True))
        return cygrad.func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(nn.Module):
    """The function of `make_functional`: `func(params, *args)`."""

    def __init__(self, stateless_model: nn.Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters in place of its own."""
        state = dict(zip(self.param_names, params, strict=True))
        return cygrad.func.functional_call(self.stateless_model, state, args, kwargs)


def _taken_apart(model: nn.Module, disable_autograd_tracking: bool) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A copy of a module without memory for its state, and a copy of the state as (parameters, buffers) by name."""
    own = copy.deepcopy(model)
    params, buffers = dict(own.named_parameters()), dict(own.named_buffers())
    if disable_autograd_tracking:
        for param in params.values():
            param.requires_grad_(False)
    bare: dict[int, Any] = {id(buffer): buffer.detach().to("meta") for buffer in model.buffers()}
    bare.update((id(p), nn.Parameter(p.detach().to("meta"), p.requires_grad)) for p in model.parameters())
    return copy.deepcopy(model, bare), params, buffers  # what is one tensor in the module is one in the copy


def make_functional(model: nn.Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Any]:
    """Return (func, params): `func(params, *args)` calls a copy of the module with the parameters `params`, a tuple.

    The parameters are copies, too; with `disable_autograd_tracking` they do not require gradients.

    Raises RuntimeError for a module with buffers.

    >>> import cygrad as torch
    >>> func, params = make_functional(torch.nn.Linear(2, 1))
    >>> func([torch.ones(1, 2), torch.zeros(1)], torch.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    model, params, _ = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModule(model, tuple(params)), tuple(params.values())


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return (func, params, buffers): `func(params, buffers, *args)` calls a copy of the module with this state.

    >>> import cygrad as torch
    >>> func, params, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(3))
    >>> len(params), len(buffers)
    (2, 3)
    """
    model, params, buffers = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(model, tuple(params), tuple(buffers)), (*params.values(),), (*buffers.values(),)


def combine_state_for_ensemble(
    models: Sequence[nn.Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return (func, params, buffers) of several modules of one class; each tensor is a stack of all modules' tensors.

    `vmap(func, (0, 0, None))(params, buffers, x)` calls all of them.

    Raises RuntimeError if there are no modules, or if they are of different classes or modes.

    >>> import cygrad as torch
    >>> func, params, buffers = combine_state_for_ensemble([torch.nn.Linear(2, 3) for _ in range(5)])
    >>> torch.vmap(func, (0, 0, None))(params, buffers, torch.ones(4, 2)).shape
    torch.Size([5, 4, 3])
    """
    check_alike(models, "combine_state_for_ensemble")
    funcs, params, buffers = zip(*[make_functional_with_buffers(model) for model in models], strict=True)
    return funcs[0], _stacked(params), _stacked(buffers)


def functional_init(
    model_class: Callable[..., nn.Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[tuple[Tensor, ...], Callable[..., Any], tuple[str, ...]]]:
    """Return a function of the arguments of a class of modules, which makes modules: it returns (params, func, names).

    `func(params, args)` calls a module with a tuple of arguments. With an `ensemble_shape` of (n,), n modules are made,
    each parameter is a stack, and `vmap(func)` calls all of them.

    Raises RuntimeError for modules with buffers, ValueError for more than one dimension or less than one module.

    >>> import cygrad as torch
    >>> params, func, names = functional_init(torch.nn.Linear, (5,))(2, 3)
    >>> names, torch.vmap(func)(params, (torch.ones(5, 4, 2),)).shape
    (('weight', 'bias'), torch.Size([5, 4, 3]))
    """

    def init(*args: Any, **kwargs: Any) -> tuple[tuple[Tensor, ...], Callable[..., Any], tuple[str, ...]]:
        parts = [make_functional(model) for model in _made(model_class, ensemble_shape, device, args, kwargs)]
        function = parts[0][0]
        params = _stacked([params for _, params in parts]) if len(ensemble_shape) else parts[0][1]
        return params, lambda params, args: function(params, *args), function.param_names

    return init


def functional_init_with_buffers(
    model_class: Callable[..., nn.Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[Any, Any, Callable[..., Any], tuple[str, ...], tuple[str, ...]]]:
    """Do what `functional_init` does for modules with buffers: the result is (params, buffers, func, names, names).

    >>> import cygrad as torch
    >>> params, buffers, func, *names = functional_init_with_buffers(torch.nn.BatchNorm1d)(2)
    >>> func(params, buffers, (torch.ones(4, 2),)).shape
    torch.Size([4, 2])
    """

    def init(*args: Any, **kwargs: Any) -> tuple[Any, Any, Callable[..., Any], tuple[str, ...], tuple[str, ...]]:
        models = _made(model_class, ensemble_shape, device, args, kwargs)
        parts = [make_functional_with_buffers(model) for model in models]
        function, params, buffers = parts[0]
        if len(ensemble_shape):
            params, buffers = (_stacked([part[i] for part in parts]) for i in (1, 2))

        def func(params: Any, buffers: Any, args: Any) -> Any:
            return function(params, buffers, *args)

        return params, buffers, func, function.param_names, function.buffer_names

    return init


def _made(
    model_class: Callable[..., nn.Module], shape: Sequence[int], device: Any, args: Any, kwargs: Any
) -> list[nn.Module]:
    """Make the modules of an ensemble; one if its shape has no dimensions."""
    if len(shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    count = shape[0] if len(shape) else 1
    if count <= 0:
        raise ValueError(f"num_models {count} should be > 0")
    return [model_class(*args, **kwargs).to(device) for _ in range(count)]


def _stacked(states: Any) -> tuple[Tensor, ...]:
    return tuple(cygrad.stack(parts).detach() for parts in zip(*states, strict=True))
