"""`custom_op`: makes an op of a Python function."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad.library._operator import Operator
from cygrad.library._registry import define_operator, parse_name
from cygrad.library._schema import infer_schema
from cygrad.ops._schema import FunctionSchema, parse_schema

__all__ = ["CustomOpDef", "custom_op"]


class CustomOpDef:
    """An op made by `custom_op`. Call it like the function; its methods register kernels and rules.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_custom_op_def::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> isinstance(twice, cygrad.library.CustomOpDef)
    True
    >>> @twice.register_kernel("cpu")
    ... def on_cpu(x):
    ...     return x + x
    >>> @twice.register_fake
    ... def on_meta(x):
    ...     return cygrad.empty_like(x)
    >>> twice.register_autograd(lambda ctx, grad: grad * 2)
    >>> result = twice.register_vmap(lambda info, in_dims, x: (twice(x), in_dims[0]))
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> twice(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    >>> with twice.set_kernel_enabled("cpu", False):  # the function itself runs
    ...     twice(cygrad.ones(2))
    tensor([2., 2.])
    >>> twice.register_autocast("cpu", cygrad.float16)
    """

    def __init__(self, operator: Operator, function: Callable[..., Any]) -> None:
        self._opoverload = operator
        self._init_fn = function
        self._qualname = operator.overloadpacket._qualified_op_name
        self._namespace, self._name = operator.namespace, operator._opname
        self.__name__ = self._name
        self.__doc__ = function.__doc__
        self.__signature__ = inspect.signature(function)
        operator.definition = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    @property
    def _schema(self) -> str:
        return self._opoverload.schema.text

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register the function that runs for tensors on a type of device, or on several; None stands for all."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            names = [device_types] if device_types is None or isinstance(device_types, str) else device_types
            for name in names:
                self._opoverload.kernels[name or "default"] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register the function that makes the results for tensors on the device "meta", which have no elements."""
        self._opoverload.fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the gradient: `backward(ctx, *grads)` returns a gradient, or None, for each input.

        `setup_context(ctx, inputs, output)` keeps what it needs. Raises RuntimeError for an op that writes into its
        inputs.
        """
        if self._opoverload.schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._opoverload.schema}. Please create a functional operator and register an autograd formula for "
                "that."
            )
        self._opoverload.backward, self._opoverload.setup_context = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register `func(info, in_dims, *args)`, which handles all samples at once and returns `(result, out_dims)`."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._opoverload.vmap = function
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Have inputs cast to a dtype in an autocast block for this type of device."""
        if device_type not in ("cpu", "cuda"):
            raise ValueError(f"Unknown device type: {device_type}")
        self._opoverload.autocast[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register `fn(mode or class, func, types, args, kwargs)` for a mode or class with `__torch_dispatch__`.

        >>> import cygrad
        >>> from cygrad.utils._python_dispatch import TorchDispatchMode
        >>> @cygrad.library.custom_op("docs_method_dispatch::twice", mutates_args=())
        ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
        ...     return x * 2
        >>> class Mode(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         return func(*args, **(kwargs or {}))
        >>> @twice.register_torch_dispatch(Mode)
        ... def in_mode(mode, func, types, args, kwargs):
        ...     return "seen"
        >>> with Mode():
        ...     twice(cygrad.ones(2))
        'seen'
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._opoverload.dispatch[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """In the block, use the kernel for a type of device, or the function itself in its place."""
        disabled = self._opoverload.disabled
        before = device_type in disabled
        (disabled.discard if enabled else disabled.add)(device_type)
        try:
            yield
        finally:
            (disabled.add if before else disabled.discard)(device_type)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Decorator that makes an op of a function: one node of the graph, called `torch.ops.<namespace>.<name>` as well.

    `name` is of the form "namespace::name". The schema comes from the annotations of the function unless `schema` gives
    it. `mutates_args` are the names of the tensors that the function writes into. It runs for tensors on
    `device_types`, by default on all. Its results must not share memory with its inputs.

    >>> import cygrad
    >>> from cygrad import Tensor
    >>> @cygrad.library.custom_op("docs::cube", mutates_args=())
    ... def cube(x: Tensor) -> Tensor:
    ...     return x**3
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def gradient(ctx, grad):
    ...     (x,) = ctx.saved_tensors
    ...     return grad * 3 * x**2
    >>> cube.register_autograd(gradient, setup_context=keep)
    >>> x = cygrad.tensor(2.0, requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def inner(function: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, own = parse_name(name)
        _check_schema(parse_schema(f"{own}{text}"), text, mutates_args)
        operator = define_operator(namespace, f"{own}{text}", replace=True)
        operator.checks_aliases = True
        found = CustomOpDef(operator, function)
        operator.kernels["default"] = function
        if device_types is not None:
            del operator.kernels["default"]
            found.register_kernel(device_types, function)
        given = [] if tags is None else list(tags) if isinstance(tags, (list, tuple)) else [tags]
        tag: Any = cygrad._C.Tag  # an enumeration, which its declaration hides
        operator.tags = sorted({*given, tag.pt2_compliant_tag})
        return found

    return inner if fn is None else inner(fn)


def _check_schema(schema: FunctionSchema, text: str, mutates_args: str | Iterable[str]) -> None:
    """Raise ValueError or NotImplementedError for a schema that does not fit `mutates_args`, or has named tensors."""
    written = {argument.name for argument in schema.arguments if argument.is_write}
    named = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    if named not in (written, {"unknown"}):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={text}. The schema "
            f"suggests that the op mutates {written}which is different from what was provided to us in `mutates_args`. "
            "Please make these consistent."
        )
    if schema.has_named_tensors:
        raise NotImplementedError(
            f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {schema}"
        )
