"""Optimizer, the base of all optimizers: parameter groups, state, and hooks."""

from __future__ import annotations

import copy
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.runtime.thread_state import is_observed
from cygrad._kernels.optimizer_steps import is_followed_on_gpu
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.optim._for_packages import _default_to_fused_or_foreach as _default_to_fused_or_foreach
from cygrad.optim._for_packages import _device_dtype_check_for_fused as _device_dtype_check_for_fused
from cygrad.optim._for_packages import _disable_dynamo_if_unsupported as _disable_dynamo_if_unsupported
from cygrad.optim._for_packages import _get_capturable_supported_devices as _get_capturable_supported_devices
from cygrad.optim._for_packages import _get_scalar_dtype as _get_scalar_dtype
from cygrad.optim._for_packages import _get_value as _get_value
from cygrad.optim._for_packages import _stack_if_compiling as _stack_if_compiling
from cygrad.optim._for_packages import _to_scalar as _to_scalar
from cygrad.optim._for_packages import _use_grad_for_differentiable as _use_grad_for_differentiable
from cygrad.optim._for_packages import _view_as_real as _view_as_real
from cygrad.optim._state import adapted, converted, count_in_tensors, count_on_gpu
from cygrad.utils import typename
from cygrad.utils._foreach_utils import _group_tensors_by_device_and_dtype
from cygrad.utils.gradients import clear_grad
from cygrad.utils.hooks import HookDict, RemovableHandle, add_hook
from cygrad.utils.interop import on_writable_memory
from cygrad.utils.warning import warn

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT = Iterable[Any]  # for annotations
global_pre_hooks: HookDict = HookDict()
global_post_hooks: HookDict = HookDict()  # hooks of all optimizers


class _RequiredParameter:
    def __repr__(self) -> str:
        return "<required parameter>"


# Default of an option that every parameter group must specify.
required = _RequiredParameter()


class Optimizer:
    """Updates parameters along their gradients.

    `params` holds tensors, (name, tensor) pairs, or dictionaries: parameter groups, each with
    `"params"` and options that override `defaults`. Subclasses define `step(closure=None)`.

    `param_groups` is the list of groups, `state` maps each parameter to a dictionary.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    >>> optimizer.zero_grad()
    """

    _counts_in_tensors = False  # whether numbers in the state are 0-dim tensors

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._init_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {typename(params)}"
            )
        if isinstance(params, cygrad.nn.Module) and not hasattr(type(params), "__iter__"):
            raise TypeError(f"'{type(params).__name__}' object is not iterable\n  to fix it: pass model.parameters()")
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError(
                "optimizer got an empty parameter list\n  parameters() can be iterated over once, and finds modules in "
                "attributes and in nn.ModuleList, but not in plain lists"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def _init_hooks(self) -> None:
        self._optimizer_step_pre_hooks = HookDict()
        self._optimizer_step_post_hooks = HookDict()
        self._optimizer_state_dict_pre_hooks = HookDict()
        self._optimizer_state_dict_post_hooks = HookDict()
        self._optimizer_load_state_dict_pre_hooks = HookDict()
        self._optimizer_load_state_dict_post_hooks = HookDict()

    def _patch_step_function(self) -> None:
        """Does nothing: hooks are run by every class's `step`, since the class was made.

        PyTorch's optimizers call this when they are made, and so do those of libraries that make themselves.
        """

    # Stepping

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `step` that calls the hooks and is shown by profilers. The `step` of a subclass does both anyway.

        >>> import cygrad
        >>> class Still(cygrad.optim.Optimizer):
        ...     @cygrad.optim.Optimizer.profile_hook_step
        ...     def step(self, closure=None):
        ...         return "nothing moves"
        >>> Still([cygrad.ones(1)], {}).step()
        'nothing moves'
        """
        return _with_hooks(func)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their `grad`. Parameters without a gradient are passed over.

        `closure`, if given, computes the loss and its gradients; its value is returned.

        >>> import cygrad
        >>> w = cygrad.ones(2, requires_grad=True)
        >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.9000, 0.9000], requires_grad=True)
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None; with `set_to_none=False` fill them with zeros.

        >>> import cygrad
        >>> w = cygrad.ones(2, requires_grad=True)
        >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.zero_grad()
        >>> print(w.grad)
        None
        """
        if self.__dict__.pop("_has_arrived", False):
            self._optimizer_step_post_hooks[_WATCH] = _watch_first_step
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                else:
                    clear_grad(parameter, False)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> Any:
        """The lists of tensors by device and dtype, for optimizers of other packages."""
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _can_leave_out(self, device: Any) -> bool:
        """Whether a step can skip itself depending on a flag on that GPU (`unless` in
        `_kernels/gpu/optim/optim.py`).
        """
        return False

    def _check_capture(self) -> None:
        """Raise RuntimeError if a CUDA graph would bake in the scalars of this step."""
        groups = self.param_groups
        if all(group["capturable"] or not group["params"][0].is_cuda for group in groups if group["params"]):
            return
        if cygrad.cuda.is_current_stream_capturing() and not is_followed_on_gpu():
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} but "
                "param_groups' capturable is False."
            )

    # Groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to update, with their own options.

        Raises `TypeError` for non-tensors and unordered collections, `ValueError` for a non-leaf tensor,
        a tensor that is already in a group, or a group that lacks a required option.

        >>> import cygrad
        >>> a, b = cygrad.ones(1, requires_grad=True), cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.SGD([a], lr=0.1)
        >>> optimizer.add_param_group({"params": [b], "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group
        parameters, names = _split_names(group["params"])
        group["params"] = parameters
        if names is not None:
            group["param_names"] = names
        self._check_names(named=names is not None)
        self._check_parameters(parameters)
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len(parameters) != len(set(parameters)):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information"
            )
        known = {p for other in self.param_groups for p in other["params"]}
        if not known.isdisjoint(parameters):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def _check_parameters(self, parameters: list[Any]) -> None:
        for parameter in parameters:
            if not isinstance(parameter, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(parameter))
            differentiable = self.defaults.get("differentiable")
            if not (differentiable or parameter.is_leaf or parameter.retains_grad):
                raise ValueError(
                    "can't optimize a non-leaf Tensor\n  it is the result of an op: optimize the tensors that it was "
                    "computed from, or make it a leaf, as in x.detach().requires_grad_()"
                )

    def _check_names(self, named: bool) -> None:
        if self.param_groups and named != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if named else 'without'} names to the optimizer"
            )

    # State

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume: `{"state": ..., "param_groups": ...}`.

        Parameters are represented by numbers, in the order of the groups. The layout is PyTorch's.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(2, requires_grad=True)], lr=0.1)
        >>> optimizer.state_dict()['param_groups'][0]['lr']
        0.1
        """
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": [numbers[id(p)] for p in group["params"]]})
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: converted(key, value, "_state_out")
            for key, value in self.state.items()
        }
        state_dict: dict[str, Any] = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replaced = post_hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict` of an optimizer for the same parameters.

        Tensors, including those of other libraries such as PyTorch, are copied in the dtype of their
        parameter. Raises `ValueError`, with nothing changed, if the groups do not match.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> saved = cygrad.optim.SGD([w], lr=0.1).state_dict()
        >>> optimizer = cygrad.optim.SGD([w], lr=1.0)
        >>> optimizer.load_state_dict(saved)
        >>> optimizer.param_groups[0]["lr"]
        0.1
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = pre_hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        self._check_saved_groups(saved_groups)

        old_numbers = itertools.chain.from_iterable(g["params"] for g in saved_groups)
        parameters = itertools.chain.from_iterable(g["params"] for g in self.param_groups)
        by_number = dict(zip(old_numbers, parameters))
        capturable = {number: g.get("capturable") for g in saved_groups for number in g["params"]}
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                parameter = by_number[key]
                values = converted(parameter, value, "_state_in")
                state[parameter] = {k: adapted(k, v, parameter) for k, v in values.items()}
                if parameter.is_cuda and capturable.get(key):
                    count_on_gpu(state[parameter], parameter)
            else:
                state[key] = value
        for group, saved in zip(self.param_groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_saved_groups(self, saved_groups: list[dict[str, Any]]) -> None:
        if len(saved_groups) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups\n"
                f"It has {len(saved_groups)}, this optimizer {len(self.param_groups)}."
            )
        for i, (saved, group) in enumerate(zip(saved_groups, self.param_groups)):
            if len(saved["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group\nGroup {i} has {len(saved['params'])} parameters there, "
                    f"{len(group['params'])} here."
                )

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for values in self.state.values():
            for value in values.values() if isinstance(values, dict) else ():
                if isinstance(value, Tensor):
                    on_writable_memory(value)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._init_hooks()
            self._has_arrived = True
        for group in self.param_groups:  # options added after the state was saved
            for name, default in self.defaults.items():
                group.setdefault(name, default)
            if self._counts_in_tensors:
                for parameter in group["params"]:
                    count_in_tensors(self.state.get(parameter, {}), parameter, group.get("capturable"))

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new ones. `args[0]` is the optimizer.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("about to step"))
        >>> optimizer.step()
        about to step
        """
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("stepped"))
        >>> optimizer.step()
        stepped
        """
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_state_dict_pre_hook(lambda optimizer: print("saving"))
        >>> state = optimizer.state_dict()
        saving
        """
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return a different one.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "epoch": 3})
        >>> optimizer.state_dict()["epoch"]
        3
        """
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return a different one.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: print(sorted(state)))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        ['param_groups', 'state']
        """
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading.

        >>> import cygrad
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_load_state_dict_post_hook(lambda optimizer: print("loaded"))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        loaded
        """
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] if i else []
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer.

    >>> import cygrad
    >>> from cygrad.optim.optimizer import register_optimizer_step_pre_hook
    >>> handle = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("about to step"))
    >>> cygrad.optim.SGD([cygrad.ones(1)], lr=0.1).step()
    about to step
    >>> handle.remove()
    """
    return add_hook(global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer.

    >>> import cygrad
    >>> from cygrad.optim.optimizer import register_optimizer_step_post_hook
    >>> handle = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("stepped"))
    >>> cygrad.optim.SGD([cygrad.ones(1)], lr=0.1).step()
    stepped
    >>> handle.remove()
    """
    return add_hook(global_post_hooks, hook)


_WATCH = -1  # the key of a hook that no handle removes


def _watch_first_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """After the first step that follows `zero_grad` of an unpickled or copied optimizer: warn if it changed nothing.

    Models and optimizers share parameters only if they travel together; else the optimizer has copies of its own, which
    never get a gradient.
    """
    del optimizer._optimizer_step_post_hooks[_WATCH]
    if all(parameter.grad is None for group in optimizer.param_groups for parameter in group["params"]):
        warn(
            f"{type(optimizer).__name__}.step() has changed nothing: no parameter of this optimizer has a gradient. It "
            "was unpickled or copied; if that was apart from its model, it has parameters of its own.\n"
            "  to fix it: let model and optimizer travel within one object, such as the tuple (model, optimizer); for "
            "Dask, which takes tuples apart, one of a class"
        )


_NONE = HookDict()  # never filled


def _step_hooks(optimizer: Optimizer) -> tuple[HookDict, HookDict]:
    """Return the hooks of one optimizer: none if it wraps another and does not call `super().__init__()`."""
    state = optimizer.__dict__
    return state.get("_optimizer_step_pre_hooks", _NONE), state.get("_optimizer_step_post_hooks", _NONE)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a class's `step` with hooks, which are skipped if a subclass's `step` calls it."""

    @functools.wraps(step)
    def step_with_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        before, after = _step_hooks(self)
        profiled = is_observed()
        if not (before or after or global_pre_hooks or global_post_hooks or profiled):
            return step(self, *args, **kwargs)
        if type(self).step is not step_with_hooks:
            return step(self, *args, **kwargs)
        if profiled:
            from cygrad.autograd.profiler import record_function  # needed only while a profiler runs

            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return run(self, args, kwargs)
        return run(self, args, kwargs)

    def run(self: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before, after = _step_hooks(self)
        args = (self, *args)  # the form in which PyTorch's hooks receive and return them
        for hook in [*global_pre_hooks.values(), *before.values()]:
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
        loss = step(*args, **kwargs)
        for hook in [*after.values(), *global_post_hooks.values()]:
            hook(self, args, kwargs)
        return loss

    return step_with_hooks


def _split_names(params: Any) -> tuple[list[Any], list[str] | None]:
    """Return a group's parameters as a list, and their names if it holds (name, parameter) pairs."""
    if isinstance(params, Tensor):
        return [params], None
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    items = list(params)
    pairs = [item for item in items if isinstance(item, tuple)]
    if not pairs:
        return items, None
    if len(pairs) != len(items):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [parameter for _, parameter in pairs], [name for name, _ in pairs]


@contextmanager
def recording() -> Iterator[None]:
    """A block in which a step is recorded, even though it modifies parameters and state in place.

    The graph saves copies: each update would otherwise modify what the previous update or step has saved.
    """
    with cygrad.enable_grad(), saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
        yield


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """Return the value of the closure given to `step`, evaluated in grad mode."""
    if closure is None:
        return None
    with cygrad.enable_grad():
        return closure()
