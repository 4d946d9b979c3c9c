"""`opcheck`: whether a custom op keeps what its schema and its registrations promise."""

from collections.abc import Callable, Sequence
from typing import Any

import cygrad
from cygrad.library._operator import Operator, _memory, _tensors
from cygrad.library._registry import operator_of

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(Exception):
    """Raised by `opcheck`.

    >>> import cygrad
    >>> issubclass(cygrad.library.OpCheckError, Exception)
    True
    """


def _copied(values: Any) -> Any:
    if isinstance(values, cygrad.Tensor):
        return values.detach().clone().requires_grad_(values.requires_grad)
    if isinstance(values, (list, tuple)):
        return type(values)(_copied(value) for value in values)
    return {key: _copied(value) for key, value in values.items()} if isinstance(values, dict) else values


def _test_schema(op: Operator, args: Any, kwargs: Any) -> None:
    """Only the arguments that the schema says so are written to, and results are new memory."""
    values = op.schema.bind(_copied(args), _copied(kwargs))
    before = {name: _copied(value) for name, value in values.items()}
    with cygrad.no_grad():
        result = op(*op._positional(values), **op._named(values))
    for argument in op.schema.arguments:
        pairs = zip(_tensors([before[argument.name]]), _tensors([values[argument.name]]), strict=True)
        if not argument.is_write and not all(cygrad.allclose(old, new, equal_nan=True) for old, new in pairs):
            raise OpCheckError(f"Argument {argument.name} is not defined as mutable but was mutated\n  op: {op.schema}")
    inputs = {_memory(tensor) for tensor in _tensors(values.values())}
    if not op.schema.is_mutable and any(_memory(tensor) in inputs for tensor in _tensors([result]) if tensor.numel()):
        raise OpCheckError(f"A result is not defined to alias an input but shares its memory\n  op: {op.schema}")


def _test_autograd_registration(op: Operator, args: Any, kwargs: Any) -> None:
    """A kernel does not record anything itself: gradients come from `register_autograd`."""
    values = op.schema.bind(_copied(args), _copied(kwargs))
    for tensor in _tensors([op(*op._positional(values), **op._named(values))]):
        node = tensor.grad_fn
        if (
            node is not None
            and not type(node).__name__.startswith("GeneratedBackwardFor_")
            and op.autograd_kernel is None
        ):
            raise OpCheckError(f"The result was recorded as {type(node).__name__}: register the gradient of {op}")


def _test_faketensor(op: Operator, args: Any, kwargs: Any) -> None:
    """The fake kernel makes results of the same shapes, strides and dtypes."""
    if op.fake is None and op.definition is None:
        raise OpCheckError(f"{op} has no fake kernel: use torch.library.register_fake")
    values = op.schema.bind(_copied(args), _copied(kwargs))
    with cygrad.no_grad():
        real = list(_tensors([op(*op._positional(values), **op._named(values))]))
        there = {name: _to_meta(value) for name, value in values.items()}
        fake = list(_tensors([op.run(there, "meta")]))
    for one, other in zip(real, fake, strict=True):
        for what in ("shape", "dtype"):
            if getattr(one, what) != getattr(other, what):
                raise OpCheckError(
                    f"The fake kernel of {op} gives the {what} {getattr(other, what)}, the kernel {getattr(one, what)}"
                )
        if one.stride() != other.stride():
            raise OpCheckError(f"The fake kernel of {op} gives the strides {other.stride()}, the kernel {one.stride()}")


def _to_meta(value: Any) -> Any:
    if isinstance(value, cygrad.Tensor):
        return value.detach().to("meta")
    return type(value)(_to_meta(item) for item in value) if isinstance(value, (list, tuple)) else value


def _test_gradients(op: Operator, args: Any, kwargs: Any) -> None:
    """The backward gives gradients of the shapes of the inputs, the same each time."""
    found = []
    for _ in range(2):
        values = op.schema.bind(_copied(args), _copied(kwargs))
        results = [t for t in _tensors([op(*op._positional(values), **op._named(values))]) if t.requires_grad]
        inputs = [tensor for tensor in _tensors(values.values()) if tensor.requires_grad]
        if not results or not inputs:
            return
        ones = [cygrad.ones_like(tensor) for tensor in results]
        found.append(cygrad.autograd.grad(results, inputs, ones, allow_unused=True))
    for first, second in zip(*found, strict=True):
        if (first is None) is not (second is None) or (first is not None and not cygrad.allclose(first, second)):
            raise OpCheckError(f"The gradients of {op} differ between two passes")


_TESTS: dict[str, Callable[[Operator, Any, Any], None]] = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor,
    "test_aot_dispatch_dynamic": _test_gradients,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_TESTS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check a custom op with these arguments, and return {check: 'SUCCESS' or the exception}.

    The checks: it writes only into the arguments that its schema says so; nothing but its registered gradient is
    recorded; its fake kernel agrees with its kernel; its gradients are reproducible. Raises OpCheckError unless
    `raise_exception` is False.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_opcheck::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> result = twice.register_fake(lambda x: cygrad.empty_like(x))
    >>> cygrad.library.opcheck(twice, (cygrad.ones(2),))["test_schema"]
    'SUCCESS'
    """
    operator = operator_of(op)
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = [name for name in names if name not in _TESTS]
    if unknown:
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}): expected test_utils to be subset of {list(_TESTS)}"
        )
    found: dict[str, Any] = {}
    for name in names:
        try:
            _TESTS[name](operator, args, kwargs or {})
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            found[name] = error
    return found
