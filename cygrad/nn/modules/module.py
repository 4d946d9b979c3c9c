"""Module, the base class of layers and models."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Self, TypeVar

import cygrad
from cygrad import Tensor
from cygrad.nn.modules._module.conversion import convert
from cygrad.nn.modules._module.exchange import from_torch
from cygrad.nn.modules._module.hooks import (
    Hooked,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from cygrad.nn.modules._module.hooks_of_all import HooksOfAll
from cygrad.nn.modules._module.members import (
    Members,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registration_hooks,
)
from cygrad.nn.modules._module.state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401, libraries look for it here
from cygrad.nn.modules._module.state import IncompatibleKeys as _IncompatibleKeys  # noqa: F401, libraries look for it here
from cygrad.nn.modules._module.state import Stateful
from cygrad.nn.modules._use import call_as_written
from cygrad.nn.parameter import is_lazy
from cygrad.utils import typename
from cygrad.utils.gradients import clear_grad
from cygrad.utils.interop import on_writable_memory
from cygrad.utils.warning import warn

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

sys.modules[__name__].__class__ = HooksOfAll
_global_buffer_registration_hooks = registration_hooks["_buffers"]
_global_module_registration_hooks = registration_hooks["_modules"]
_global_parameter_registration_hooks = registration_hooks["_parameters"]


def _addindent(s_: str, numSpaces: int) -> str:
    return s_.replace("\n", "\n" + " " * numSpaces)


class _SignatureOfCalls:
    """What `inspect.signature` shows for a module, whose calls are compiled; for the class it shows `__init__`'s."""

    def __get__(self, module: Module | None, cls: type) -> Any:
        if module is None:
            raise AttributeError("__signature__")
        import inspect  # slow to import

        return inspect.signature(lambda *args, **kwargs: None)


class Module(Hooked, Stateful, Members):
    """A layer or model: parameters, buffers, submodules, and a `forward` that computes with them.

    Subclasses call `super().__init__()`, assign parameters and submodules as attributes, and
    define `forward`. Assigned members are included in `parameters()`, `state_dict()` and the like.

    >>> import cygrad
    >>> from cygrad import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(cygrad.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale()
    >>> model(cygrad.tensor([1.0, 2.0]))
    tensor([2., 4.], grad_fn=<MulBackward0>)
    >>> [name for name, _ in model.named_parameters()]
    ['factor']
    """

    dump_patches: bool = False
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    training: bool
    __signature__ = _SignatureOfCalls()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            wrong = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else (f"takes 1 positional argument but {len(args) + 1} were given")
            )
            raise TypeError(f"{type(self).__name__}.__init__() {wrong}")
        # Written to `__dict__` directly, because `__setattr__` needs dictionaries that do not exist yet.
        self.__dict__["training"] = True
        self._init_members()
        self._init_hooks()
        self._init_state_hooks()
        if self.call_super_init:  # of the other classes that a subclass inherits from
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output. Every subclass defines this; call the module itself, not this method.

        >>> import cygrad
        >>> from cygrad import nn
        >>> class Double(nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Double()(cygrad.ones(2))
        tensor([2., 2.])
        """
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all its submodules to training mode, or with False to evaluation mode.

        `Dropout` and batch norms behave differently in the two modes. Raises `ValueError` if `mode`
        is not a bool.

        >>> from cygrad import nn
        >>> nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch to evaluation mode: `train(False)`.

        This does not switch off recording; that is what `no_grad` is for.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Dropout().eval()(cygrad.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of every parameter; False freezes the module.

        >>> import cygrad
        >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.Linear(2, 1))
        >>> frozen = model[0].requires_grad_(False)
        >>> [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        ['1.weight', '1.bias']
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None; with `set_to_none=False` fill them with zeros.

        >>> import cygrad
        >>> from cygrad import nn
        >>> model = nn.Linear(2, 1)
        >>> model(cygrad.ones(2)).backward()
        >>> model.zero_grad()
        >>> print(model.weight.grad)
        None
        """
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    # Conversion

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` on every submodule recursively, children first, then on this module.

        >>> import cygrad
        >>> def zero_bias(module):
        ...     if isinstance(module, cygrad.nn.Linear):
        ...         cygrad.nn.init.zeros_(module.bias)
        >>> cygrad.nn.Linear(2, 3).apply(zero_bias).bias
        Parameter containing:
        tensor([0., 0., 0.], requires_grad=True)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, its gradient and every buffer by the result of `fn`.

        Parameters and gradients keep their identity, so that an optimizer created earlier still
        works, unless `cygrad.__future__` asks for new ones.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        with cygrad.no_grad():
            for name, parameter in list(self._parameters.items()):
                if parameter is not None:
                    convert(self, name, parameter, fn)
            for name, buffer in self._buffers.items():
                if is_lazy(buffer):
                    buffer.data = fn(buffer.data)
                elif buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and convert in place: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`.

        Only floating-point and complex parameters and buffers are converted to `dtype`, which must
        itself be floating-point or complex (`TypeError` otherwise).

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 3).to(cygrad.float64).weight.dtype
        torch.float64
        """
        order = kwargs.pop("memory_format", None)  # applies to 4-D and 5-D weights only
        if order is not None and not isinstance(order, cygrad.memory_format):
            raise TypeError(f"to(): argument 'memory_format' must be torch.memory_format, not {typename(order)}")
        if isinstance(kwargs.get("tensor"), Tensor) and not args and "dtype" not in kwargs and "device" not in kwargs:
            args = (kwargs.pop("tensor"),)
        flags = [value for value in args if isinstance(value, bool)]
        if kwargs.get("copy") or flags[1:] == [True]:
            raise RuntimeError(".to() does not accept copy argument")
        if args or kwargs:  # raises for wrong arguments before anything is changed
            cygrad.empty(0).to(*args, **kwargs)
        dtype = next(
            (
                value if isinstance(value, cygrad.dtype) else value.dtype
                for value in (*args, *kwargs.values())
                if isinstance(value, (cygrad.dtype, Tensor))
            ),
            None,
        )
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        if dtype is not None and dtype.is_complex:
            warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers. Please file an issue "
                "at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not "
                "work as expected."
            )

        def converted(tensor: Tensor) -> Tensor:
            ordered = {} if order is None or tensor.dim() not in (4, 5) else {"memory_format": order}
            try:
                moved = tensor.to(*args, **{**kwargs, **ordered}) if args or kwargs or ordered else tensor
            except NotImplementedError as error:
                if not tensor.is_meta:
                    raise
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from error
            if dtype is None or tensor.is_floating_point() or tensor.is_complex():
                return moved
            return tensor.to(moved.device)

        return self._apply(converted)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to `device` without copying: parameters and buffers are uninitialized there.

        >>> import cygrad
        >>> model = cygrad.nn.Linear(2, 1, device="meta")
        >>> model = model.to_empty(device="cpu")
        >>> cygrad.nn.init.ones_(model.weight)
        Parameter containing:
        tensor([[1., 1.]], requires_grad=True)
        """
        return self._apply(lambda t: cygrad.empty_like(t, device=device), recurse=recurse)

    def cpu(self) -> Self:
        """Move to the CPU, in place.

        >>> import cygrad
        >>> model = cygrad.nn.Linear(2, 1)
        >>> model.cpu() is model, model.weight.device
        (True, device(type='cpu'))
        """
        return self._apply(lambda t: t.to("cpu"))

    def cuda(self, device: Any = None) -> Self:
        """Move to the GPU, in place.

        >>> import cygrad
        >>> model = cygrad.nn.Linear(2, 1)
        >>> if cygrad.cuda.is_available():
        ...     model = model.cuda()
        """
        return self._apply(lambda t: t.to("cuda" if device is None else device))

    def xpu(self, device: Any = None) -> Self:
        """Raise PyTorch's error: cygrad does not compute on Intel's GPUs.

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 1).xpu()
        Traceback (most recent call last):
            ...
        AssertionError: Torch not compiled with XPU enabled...
        """
        return self._apply(lambda t: t.to("xpu" if device is None else device))

    def mtia(self, device: Any = None) -> Self:
        """Raise PyTorch's error: cygrad does not compute on Meta's accelerators.

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 1).mtia()
        Traceback (most recent call last):
            ...
        AssertionError: Torch not compiled with MTIA enabled...
        """
        return self._apply(lambda t: t.to("mtia" if device is None else device))

    def ipu(self, device: Any = None) -> Self:
        """Raise PyTorch's error: cygrad does not compute on Graphcore's processors.

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 1).ipu()
        Traceback (most recent call last):
            ...
        RuntimeError: PyTorch is not linked with support for ipu devices...
        """
        return self._apply(lambda t: t.to("ipu" if device is None else device))

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, including integer ones, to a dtype, in place.

        >>> import cygrad
        >>> cygrad.nn.BatchNorm1d(2).type(cygrad.float64).num_batches_tracked.dtype
        torch.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32, in place.

        >>> import cygrad
        >>> model = cygrad.nn.BatchNorm1d(2).double().float()
        >>> model.weight.dtype, model.num_batches_tracked.dtype
        (torch.float32, torch.int64)
        """
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64, in place.

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 1).double().weight.dtype
        torch.float64
        """
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16, in place.

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 1).half().weight.dtype
        torch.float16
        """
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16 (needs ml_dtypes), in place.

        >>> import cygrad
        >>> cygrad.nn.Linear(2, 1).bfloat16().weight.dtype
        torch.bfloat16
        """
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self) -> Self:
        """Move parameters and buffers to memory shared by forked processes.

        >>> import cygrad
        >>> model = cygrad.nn.Linear(2, 1).share_memory()
        >>> model.weight.is_shared()
        True
        """
        for t in filter(is_lazy, [*self.parameters(), *self.buffers()]):
            t.share_memory_()  # raises
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Have the calls of this module compiled, in place: `args` and `kwargs` are those of `cygrad.compile`.

        >>> import cygrad
        >>> model = cygrad.nn.Linear(2, 1)
        >>> model.compile()
        >>> model(cygrad.ones(3, 2)).shape
        torch.Size([3, 1])
        """
        compiled = cygrad.compile(functools.partial(call_as_written, self), *args, **kwargs)
        self.__dict__["_compiled_call_impl"] = compiled

    # As a Python object

    _computed_names: tuple[str, ...] = ()  # attributes of PyTorch's class that ours computes

    def _computed_state(self) -> dict[str, Any]:
        """Return attributes that PyTorch's class has in its state and ours computes."""
        return {}

    def _own_hooks(self) -> dict[str, tuple[str, Any]]:
        """Return hooks that PyTorch's class registers itself, with the names of their handles, by dictionary."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__
        return {name: value for name, value in state.items() if name != "_compiled_call_impl"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Module.__init__(self)
        self.__dict__.update(from_torch(self, state))
        for buffer in self._buffers.values():
            if buffer is not None and not is_lazy(buffer):
                on_writable_memory(buffer)

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the repr. Meant to be overridden.

        >>> import cygrad
        >>> class Scale(cygrad.nn.Module):
        ...     def __init__(self, factor):
        ...         super().__init__()
        ...         self.factor = factor
        ...     def extra_repr(self):
        ...         return f"factor={self.factor}"
        >>> Scale(2.0)
        Scale(factor=2.0)
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = "".join(f"\n  {line}" for line in [*lines, *children])
        return f"{self._get_name()}({body}\n)"
