"""Custom differentiable functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from cygrad._core.errors.messages import type_name
from cygrad._core.errors.sites import warn
from cygrad._core.graph.function import PyNode, apply_function
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import is_forward
from cygrad.autograd.grad_mode import is_grad_enabled, no_grad

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

FunctionCtx = PyNode


_OF_NODES = {"_materialize_non_diff_grads": True}  # attributes that `forward` may set on its `ctx`


def _transforms():
    from cygrad._core.transforms import vmap_custom_function  # needed only inside transforms

    return vmap_custom_function


def _nested_map(condition, fn, condition_msg=None):
    """Return a function that applies `fn` to all values in nested lists, tuples and dictionaries that meet a condition.

    None stays None; the function raises ValueError for any other value. `condition_msg` says which ones are accepted.
    """

    def mapped(value):
        if condition(value):
            return fn(value)
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            values = map(mapped, value)
            return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
        if isinstance(value, dict):
            return {key: mapped(each) for key, each in value.items()}
        accepted = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {type_name(value)}{accepted}"
        )

    return mapped


class Function(PyNode):
    """Base class of functions with custom gradients.

    Derive a class with the static methods `forward(ctx, *args)`, which computes on tensors whose operations are not
    recorded, and `backward(ctx, *grad_outputs)`, which returns a gradient (or None) for each argument of forward.
    Alternatively define `forward(*args)` and `setup_context(ctx, inputs, output)`. Call it as
    `MyFunction.apply(*args)`.

    With `boxed_grads_call = True`, backward receives a single list of the gradients. With
    `clear_saved_tensors_on_access = True`, the node frees its saved tensors as soon as they have been read, which is
    then possible only once. With `generate_vmap_rule = True`, `cygrad.func.vmap` calls `forward` and `setup_context`
    once for all samples; otherwise it calls the method `vmap`, or processes samples one by one.

    Instance methods `forward(self, *args)` and `backward(self, *grad_outputs)`, called as `MyFunction(...)(*args)`,
    are the old, deprecated style.

    >>> import cygrad
    >>> class Cube(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x ** 2 * grad
    >>> x = cygrad.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    _backward_cls: type[PyNode]
    boxed_grads_call = clear_saved_tensors_on_access = generate_vmap_rule = _has_vmap = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        once = {"saved_tensors": property(_saved_once)} if cls.clear_saved_tensors_on_access else {}
        cls._has_vmap = cls.vmap is not Function.vmap
        cls._backward_cls = type(cls.__name__ + "Backward", (PyNode,), {**_OF_NODES, "_forward_cls": cls, **once})

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be overridden.

        It takes `ctx` and the arguments of `apply`, or, with `setup_context`, the arguments alone. Nothing in it is
        recorded.

        >>> import cygrad
        >>> class Double(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        >>> Double.apply(cygrad.tensor(3.0))
        tensor(6.)
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the values that backward needs, if `forward` does not take `ctx`.

        >>> import cygrad
        >>> class Square(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return 2 * ctx.saved_tensors[0] * g
        >>> x = cygrad.tensor(3.0, requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor(6.)
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs; to be overridden.

        There is one gradient for each output, and one result for each argument of `forward`: None for those without
        gradient. Raises NotImplementedError if it is not overridden.

        >>> import cygrad
        >>> class Double(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return 2 * g
        >>> x = cygrad.tensor(3.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the tangents of the outputs from those of the arguments (None where missing), for forward mode.

        >>> import cygrad
        >>> from cygrad.autograd import forward_ad
        >>> class Double(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def jvp(ctx, tangent):
        ...         return 2 * tangent
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(cygrad.tensor(3.0), cygrad.tensor(1.0))
        ...     forward_ad.unpack_dual(Double.apply(x)).tangent
        tensor(2.)
        """
        from cygrad._core.diagnostics.custom_functions import no_jvp  # needed only for errors

        raise no_jvp(ctx)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Return the outputs for all samples of a batch, and their batch dimensions (None: the same for all samples).

        Called by `vmap` for a class with `setup_context`. `args` are those of `apply`, where tensors have the batch
        dimension given by `in_dims`, None for unbatched arguments; `info` has `batch_size` and `randomness`.

        >>> import cygrad
        >>> class Double(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...     @staticmethod
        ...     def vmap(info, in_dims, x):
        ...         return Double.apply(x), in_dims[0]
        >>> cygrad.func.vmap(Double.apply)(cygrad.tensor([1.0, 2.0]))
        tensor([2., 4.])
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs and record this function as one node.

        >>> import cygrad
        >>> class Square(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return 2 * ctx.saved_tensors[0] * g
        >>> Square.apply(cygrad.tensor(3.0, requires_grad=True))
        tensor(9., grad_fn=<SquareBackward>)
        """
        ctx = cls._backward_cls.__new__(cls._backward_cls)
        if cls.setup_context is Function.setup_context:
            if kwargs:
                args = _in_order(cls.forward, args, kwargs)
            if is_forward():
                _transforms().check_containers(cls, args)
            return apply_function(ctx, functools.partial(cls.forward, ctx), args)
        if kwargs or getattr(cls.forward, "__defaults__", True) or getattr(cls.forward, "__kwdefaults__", True):
            args = _with_defaults(cls.forward, args, kwargs)
        if is_forward():
            if cls._has_vmap or cls.generate_vmap_rule:
                return _transforms().apply_to_samples(cls, ctx, args)
            _transforms().check_containers(cls, args)
        return apply_function(ctx, cls.forward, args, cls.setup_context)

    @classmethod
    def _backward_of(cls):
        if cls.vjp is Function.vjp:
            found = cls.backward
        elif cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        else:
            found = cls.vjp
        return _boxed(found) if cls.boxed_grads_call else found

    # -- the old style -------------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        if isinstance(inspect.getattr_static(type(self), "forward"), staticmethod):
            raise RuntimeError(
                "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
                "autograd function with static forward method. (Example: "
                "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)\n"
                f"  this function has a static forward: call it as {type(self).__name__}.apply(...)"
            )
        warn(
            f"{type(self).__name__} has instance methods; make forward and backward static methods with a ctx "
            "argument and call apply()",
            DeprecationWarning,
        )
        node = type(self).__new__(type(self))  # each call needs its own node
        node.__dict__.update(self.__dict__)
        return apply_function(node, node.forward, args)

    def _call_backward(self, grads):
        return self.backward(*grads)


def _boxed(backward):
    return lambda ctx, *grads: backward(ctx, list(grads))


def _saved_once(ctx):
    if getattr(ctx, "_is_cleared", False):
        raise RuntimeError(
            "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
            "autograd.Function. Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
        )
    found = PyNode.saved_tensors.__get__(ctx)
    ctx._is_cleared = ctx._let_go()
    return found


def _in_order(forward, args, kwargs):
    """Return the arguments of `forward(ctx, ...)` by position, which aligns them with the gradients."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    names = [parameter.name for parameter in parameters if parameter.kind == parameter.POSITIONAL_OR_KEYWORD]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if name in names[: len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    values = list(args)
    for position in range(len(args), 1 + max(names.index(name) for name in kwargs)):
        if names[position] not in kwargs:
            raise TypeError(f"forward() missing required argument: '{names[position]}' (position {position})")
        values.append(kwargs[names[position]])
    return tuple(values)


def _with_defaults(forward, args, kwargs):
    """Return all arguments of a `forward` without ctx by position, as `setup_context` receives them."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    for name in bound.kwargs:
        raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    return bound.args


class InplaceFunction(Function):
    """An old-style function that may change its input in place if `inplace` is set.

    >>> import cygrad
    >>> from cygrad.autograd.function import InplaceFunction
    >>> issubclass(InplaceFunction, cygrad.autograd.Function)
    True
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


Function._backward_cls = type("FunctionBackward", (PyNode,), {**_OF_NODES, "_forward_cls": Function})


class _DelayedError(Function):
    """Passes tensors through, and raises when differentiated."""

    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Any) -> Any:
        ctx.message = message
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


def _name_of_error(node: PyNode) -> str:
    return "torch::autograd::Error"


_DelayedError._backward_cls.__name__ = "Error"
_DelayedError._backward_cls.name = _name_of_error  # type: ignore[assignment, method-assign]


_NOTHING = Tensor([])  # stands for an output that is None


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a `backward` that is not differentiable itself: attempts to differentiate it raise an error.

    >>> import cygrad
    >>> from cygrad.autograd.function import once_differentiable
    >>> class Double(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> (grad,) = cygrad.autograd.grad(Double.apply(x), x, create_graph=True)
    >>> grad.backward()
    Traceback (most recent call last):
        ...
    cygrad.errors.NoGradientError: element 0 of tensors does not require grad and does not have a grad_fn...
    """

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with no_grad():
            outputs = fn(ctx, *args)
        if not is_grad_enabled() or not any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            return outputs
        single = not isinstance(outputs, tuple)
        outputs = (outputs,) if single else outputs
        tensors = [_NOTHING if value is None else value.detach().requires_grad_() for value in outputs]
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        refused = _DelayedError.apply(message, *tensors)
        outputs = tuple(None if value is None else new for value, new in zip(outputs, refused))
        return outputs[0] if single else outputs

    return wrapper
