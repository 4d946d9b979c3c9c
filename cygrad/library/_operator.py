"""`Operator`: a custom op with its kernels for devices, its gradient, and its rules for transforms."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad import autograd
from cygrad._core.registry import dispatch
from cygrad.ops import OpOverload, OpOverloadPacket
from cygrad.ops._schema import FunctionSchema
from cygrad.overrides import handle_torch_function, has_torch_function

operators: dict[str, "Operator"] = {}  # by qualified name
listeners: list[Callable[[Any], None]] = []  # called with (packet, args, kwargs, result) after each call


class Operator(OpOverload):
    """An op that a program defined: `torch.ops.<namespace>.<name>.default`."""

    def __init__(self, packet: "Packet", schema: FunctionSchema, overload: str = "default") -> None:
        super().__init__(packet, overload)
        self.schema = schema
        self.kernels: dict[str, Callable[..., Any]] = {}  # by type of device; "default" for all others
        self.disabled: set[str] = set()  # types of devices whose kernels are not used for now
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.autograd_kernel: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.autocast: dict[str, Any] = {}  # {type of device: dtype}
        self.dispatch: dict[type, Callable[..., Any]] = {}  # for modes and classes with `__torch_dispatch__`
        self.checks_aliases = False
        self.tags = []
        self.definition: Any = None  # the CustomOpDef
        self._function: type[autograd.Function] | None = None

    def _key(self) -> tuple[str, str]:
        return self.overloadpacket._qualified_op_name, self._overloadname

    @property
    def _schema(self) -> Any:
        return self.schema

    @property
    def op(self) -> Callable[..., Any]:
        return self.__call__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = dispatch.taken_up(self, args, kwargs)
        if found is not None:
            return found[0]
        given = [*_flat(args), *_flat(kwargs.values())]
        if has_torch_function(given):
            return handle_torch_function(self, given, *args, **kwargs)
        values = self.schema.bind(args, kwargs)
        tensors = list(_tensors(values.values()))
        device = tensors[0].device.type if tensors else self._device_of_argument(values)
        if device in self.autocast and cygrad.is_autocast_enabled(device):
            values = {name: _cast(value, self.autocast[device]) for name, value in values.items()}
            with cygrad.autocast(device, enabled=False):
                return self._recorded(values, device)
        return self._recorded(values, device)

    def _recorded(self, values: dict[str, Any], device: str) -> Any:
        """Run the kernel, as one node of the graph if a gradient is wanted."""
        if self.autograd_kernel is not None:
            kernel, self.autograd_kernel = self.autograd_kernel, None
            try:
                return kernel(*self._positional(values), **self._named(values))
            finally:
                self.autograd_kernel = kernel
        tensors = list(_tensors(values.values()))
        is_batched = self.vmap is not None and any(map(cygrad._C._functorch.is_batchedtensor, tensors))
        wanted = cygrad.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if self.definition is None and self.backward is None and not is_batched:
            return self.run(values, device)  # what its kernel does is recorded
        if self.schema.is_mutable or not (wanted or is_batched):
            with cygrad.no_grad(), self._counted_changes(values):
                return self.run(values, device)
        call = _Call(self, values, device)
        return call.nested_result(self.function.apply(call, *tensors))

    @contextmanager
    def _counted_changes(self, values: dict[str, Any]) -> Iterator[None]:
        """In the block, count a change of each tensor that the op writes into where autograd does not see it."""
        written = [values[argument.name] for argument in self.schema.arguments if argument.is_write]
        before = [(tensor, tensor._version) for tensor in _tensors(written) if not tensor.is_inference()]
        yield
        autograd.graph.increment_version([tensor for tensor, version in before if tensor._version == version])

    def _device_of_argument(self, values: dict[str, Any]) -> str:
        """Return the type of the device whose kernel a call without tensors runs: the one given to `custom_op`'s op."""
        given = [values[argument.name] for argument in self.schema.arguments if argument.kind == "Device"]
        if self.definition is None or not given:
            return "cpu"
        if given[0].type in self.kernels:
            return given[0].type
        if "default" not in self.kernels:
            raise RuntimeError(
                f"{self._opname} does not have a kernel registered for {given[0].type}. Please use register_kernel "
                "to do so."
            )
        return "default"

    def require_positional_tensors(self, rule: str) -> None:
        """Raise NotImplementedError if tensors are passed by keyword only, which a rule for gradients cannot tell."""
        if self.schema.has_named_tensors:
            raise NotImplementedError(
                f"{rule} with kwarg-only Tensor args. In the original definition of the op, please make your tensors "
                f"not kwarg-only. Got: {self.schema}"
            )

    @property
    def function(self) -> type[autograd.Function]:
        """The `autograd.Function` that records calls."""
        if self._function is None:
            name = f"GeneratedBackwardFor_{self.namespace}_{self._opname}_{self._overloadname}"
            self._function = type(name, (_Recorded,), {"operator": self})
        return self._function

    def run(self, values: dict[str, Any], device: str) -> Any:
        """Run the kernel for a type of device, unless a mode or a class of `__torch_dispatch__` answers."""
        args, kwargs = tuple(self._positional(values)), self._named(values)
        if dispatch.is_asked(args, kwargs):
            return dispatch.ask(self, args, kwargs, lambda: self._run(values, device))
        return self._run(values, device)

    def _run(self, values: dict[str, Any], device: str) -> Any:
        result = self.kernel_for(device)(*self._positional(values), **self._named(values))
        if not self.schema.returns and result is not None:
            raise RuntimeError(
                f"Expected PythonKernelHolder for {self.overloadpacket._qualified_op_name} to return None but it "
                "returned something else instead.\n  its schema says that it returns nothing"
            )
        if self.checks_aliases and device != "meta":
            self._check_aliases(values, result)
        for listener in tuple(listeners):
            listener((self.overloadpacket, tuple(self._positional(values)), self._named(values), result))
        return result

    def _positional(self, values: dict[str, Any]) -> list[Any]:
        return [values[argument.name] for argument in self.schema.arguments if not argument.kwarg_only]

    def _named(self, values: dict[str, Any]) -> dict[str, Any]:
        return {argument.name: values[argument.name] for argument in self.schema.arguments if argument.kwarg_only}

    def kernel_for(self, device: str) -> Callable[..., Any]:
        """Return the kernel for a type of device. Raises NotImplementedError, or RuntimeError on "meta"."""
        if device == "meta" and self.fake is not None:
            return self.fake
        if device in self.kernels and device not in self.disabled:
            return self.kernels[device]
        if device == "meta" and self.definition is not None:
            raise RuntimeError(
                f"There was no fake impl registered for {self.definition}. This is necessary for "
                f"torch.compile/export/fx tracing to work. Please use `{self._opname}.register_fake` to add an "
                "fake impl."
            )
        if "default" in self.kernels:
            return self.kernels["default"]
        known = ", ".join(sorted(self.kernels)) or "none"
        raise NotImplementedError(
            f"Could not run '{self.name()}' with arguments from the '{device.upper()}' backend. This could be because "
            f"the operator doesn't exist for this backend. It has kernels for: {known}\n"
            f'  to fix it: register one, `torch.library.impl("{self.name()}", "{device}", function)`'
        )

    def _check_aliases(self, values: dict[str, Any], result: Any) -> None:
        """Raise RuntimeError if a result is an input, or shares memory with an input or another result."""
        seen = {_memory(tensor) for tensor in _tensors(values.values())}
        for tensor in _tensors([result]):
            memory = _memory(tensor)
            if memory in seen and tensor.numel():
                raise RuntimeError(
                    f"{self._opname} (with implementation in {self.kernel_for('cpu').__module__}): The output of this "
                    "custom operator (1) must not also be an input to this custom operator and (2) may not alias any "
                    "inputs to this custom operator or other returns. The most common way to trigger this error is if "
                    "we have y = custom_op(x) and y and x are the same Tensor. Please instead return a clone of the "
                    "offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return "
                    "y."
                )
            seen.add(memory)


class Packet(OpOverloadPacket):
    """The overloads of a custom op, as attributes."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"

    def overloads(self) -> list[str]:
        return [name for name, value in vars(self).items() if isinstance(value, Operator)]

    @property
    def op(self) -> Callable[..., Any]:
        return self.__call__

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):  # asked before there is a name, and of no op
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{overload}'")
        raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        names = self.overloads()
        given = [*_flat(args), *_flat(kwargs.values())]
        if len(names) == 1 and has_torch_function(given):
            return handle_torch_function(self, given, *args, **kwargs)
        for name in names[:-1]:
            try:
                getattr(self, name).schema.bind(args, kwargs)
            except RuntimeError:
                continue
            return getattr(self, name)(*args, **kwargs)
        return getattr(self, names[-1])(*args, **kwargs)


class _Call:
    """A call of an op: its values, and how its results are nested."""

    def __init__(self, operator: Operator, values: dict[str, Any], device: str) -> None:
        self.operator, self.values, self.device = operator, values, device
        self.result: Any = None

    def flat_result(self, result: Any) -> Any:
        """Return the tensors of the result, and remember how they were nested."""
        self.result = result
        return result if isinstance(result, cygrad.Tensor) else tuple(_tensors([result]))

    def nested_result(self, flat: Any) -> Any:
        return _nested(self.result, iter((flat,) if isinstance(flat, cygrad.Tensor) else flat))

    def nested_gradients(self, grads: tuple[Any, ...]) -> list[Any]:
        """Return a gradient for each result: a list for a result that is a list, None for one that is no tensor."""
        results = self.result if isinstance(self.result, tuple) else (self.result,)
        given = iter(grads)

        def gradient(one: Any) -> Any:
            if isinstance(one, list):
                return [gradient(item) for item in one]
            return next(given) if isinstance(one, cygrad.Tensor) else None

        return [gradient(one) for one in results]

    def flat_gradients(self, found: Any) -> list[Any]:
        """Return a gradient for each tensor among the values."""
        found = found if isinstance(found, tuple) else (found,)
        values = self.operator._positional(self.values)
        if len(found) > len(values):
            raise RuntimeError(
                f"{self.operator._opname}'s backward returned an incorrect number of gradients (expected "
                f"{len(values)}, got {len(found)})"
            )
        flat: list[Any] = []
        for place, value in enumerate(values):
            grad = found[place] if place < len(found) else None
            if isinstance(value, cygrad.Tensor):
                flat.append(grad)
            elif isinstance(value, (list, tuple)):
                n = sum(isinstance(item, cygrad.Tensor) for item in value)
                flat.extend(
                    [None] * n
                    if grad is None
                    else [one for one, item in zip(grad, value, strict=True) if isinstance(item, cygrad.Tensor)]
                )
        missing = len(list(_tensors(self.values.values()))) - len(flat)
        return flat + [None] * missing  # tensors that are passed by keyword have no gradient


class _Recorded(autograd.Function):
    """The node of a custom op."""

    operator: Operator

    @staticmethod
    def forward(call: _Call, *tensors: Any) -> Any:
        return call.flat_result(call.operator.run(call.values, call.device))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        call = ctx.call = inputs[0]
        operator = call.operator
        if operator.setup_context is not None:
            named = operator._named(call.values)
            more = {"keyword_only_inputs": named} if named else {}
            result = call.nested_result(output)
            operator.setup_context(ctx=ctx, inputs=tuple(operator._positional(call.values)), output=result, **more)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        operator = ctx.call.operator
        if operator.backward is None:
            raise RuntimeError(
                f"Trying to backward through {operator} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        found = operator.backward(ctx, *ctx.call.nested_gradients(grads))
        return (None, *ctx.call.flat_gradients(found))

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: _Call, *tensors: Any) -> Any:
        given = iter(tensors)
        dims = iter(in_dims[1:])
        values = {name: _nested(value, given) for name, value in call.values.items()}
        places = {name: _nested(value, dims, keep=False) for name, value in call.values.items()}
        operator = call.operator
        result, out_dims = operator.vmap(  # type: ignore[misc]
            info, tuple(operator._positional(places)), *operator._positional(values), **operator._named(values)
        )
        flat = call.flat_result(result)
        if isinstance(flat, tuple):
            spread = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(flat)
            return flat, spread
        return flat, out_dims


def _flat(values: Any) -> Iterator[Any]:
    """Yield values, and the items of lists and tuples among them in their place."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _tensors(values: Any) -> Iterator[Any]:
    """Yield the tensors among values, and in lists and tuples."""
    return (value for value in _flat(values) if isinstance(value, cygrad.Tensor))


def _nested(like: Any, tensors: Iterator[Any], keep: bool = True) -> Any:
    """Return values nested like `like`, with other tensors in place of its own; other values stay, or become None."""
    if isinstance(like, cygrad.Tensor):
        return next(tensors)
    if isinstance(like, (list, tuple)):
        return type(like)(_nested(item, tensors, keep) for item in like)
    return like if keep else None


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, cygrad.Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype is not cygrad.float64 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, dtype) for item in value)
    return value


def _memory(tensor: Any) -> Any:
    return tensor.untyped_storage().data_ptr() if tensor.device.type != "meta" else id(tensor)
