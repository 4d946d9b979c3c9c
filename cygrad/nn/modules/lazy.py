"""Base of modules that infer their parameter shapes from the first input."""

from __future__ import annotations

from typing import Any

from cygrad.nn.modules._module.hooks import ForwardHook
from cygrad.nn.modules._module.state import _PreLoadHook
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import is_lazy
from cygrad.utils.interop import as_tensor

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """Lets a module create its parameters on the first call, in `initialize_parameters`.

    Until then they are `UninitializedParameter` and `UninitializedBuffer`. `initialize_parameters` receives the
    arguments of the first call and materializes them; then the module's class becomes `cls_to_become`, if given.
    Loading a state dict materializes the entries it contains. Raises RuntimeError if parameters are left without a
    shape.

    >>> import cygrad
    >>> from cygrad import nn
    >>> class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale()
    >>> model(cygrad.zeros(2, 3)).shape, model.factor.shape
    (torch.Size([2, 3]), torch.Size([3]))
    """

    cls_to_become: Any = None
    _is_inferred = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_inferred:
            return super().__call__(*args, **kwargs)
        self._infer_parameters(self, args, kwargs)
        return self(*args, **kwargs)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize and initialize all parameters and buffers from the arguments of the first call.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.LazyLinear(2)
        >>> m.initialize_parameters(cygrad.ones(1, 3))
        >>> m.weight.shape
        torch.Size([2, 3])
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module has no shape yet.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.LazyLinear(2)
        >>> before = m.has_uninitialized_params()
        >>> m.initialize_parameters(cygrad.ones(1, 3))
        >>> before, m.has_uninitialized_params()
        (True, False)
        """
        return any(is_lazy(t) for table in (self._parameters, self._buffers) for t in table.values())

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        if module.cls_to_become is None:
            module._is_inferred = True
        else:
            module.__class__ = module.cls_to_become

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self._lazy_load_hook(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Give what a state dict contains its shape. In PyTorch this is a hook, and so in its files."""
        for name, own in self._local_state().items():
            value = state_dict.get(prefix + name)
            if value is not None and is_lazy(own) and not is_lazy(value):
                own.materialize(as_tensor(value).shape)

    # In PyTorch's files, hooks call the methods above, and the module has their handles.

    _computed_names: tuple[str, ...] = ("_initialize_hook", "_load_hook")

    def _own_hooks(self) -> dict[str, Any]:
        if self._is_inferred:
            return {}
        return {
            "_forward_pre_hooks": ("_initialize_hook", ForwardHook(self._infer_parameters, with_kwargs=True)),
            "_load_state_dict_pre_hooks": ("_load_hook", _PreLoadHook(self._lazy_load_hook, None)),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        own = ("_infer_parameters", "_lazy_load_hook")
        for hooks in (self._forward_pre_hooks, self._load_state_dict_pre_hooks):
            for number, hook in list(hooks.items()):
                if getattr(getattr(hook, "function", hook), "__name__", None) in own:
                    del hooks[number]
