"""Traces: programs recorded from one call."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.export._programs.program import Program, Ref, leaves, mapped
from cygrad.export._programs.recording import RecordingError, TracerWarning, is_recording, record
from cygrad.export._programs.sizes import Variants, alike, generalized, undone
from cygrad.export._programs.text import Graph
from cygrad.jit._script import ScriptFunction, ScriptModule
from cygrad.jit._traced import TopLevelTracedModule, TracedFunction, TracedModule, mirrored
from cygrad.nn import Module
from cygrad.utils.warning import warn

__all__ = ["TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "is_tracing", "trace"]

_CONTAINERS = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid if the "
    "container structure does not change based on the module's inputs. Consider using a constant container instead "
    "(e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and "
    "know the side effects, pass strict=False to trace() to allow this behavior."
)
_RANDOM = {
    "rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "binomial", "rand_like",
    "randn_like", "randint_like", "uniform_", "normal_", "random_", "exponential_", "bernoulli_", "rrelu",
    "gumbel_softmax",
}  # fmt: skip


class TracingCheckError(Exception):
    """A trace that differs from the program it was made from.

    >>> import cygrad
    >>> try:
    ...     raise cygrad.jit.TracingCheckError("the graphs differ", "the results differ")
    ... except cygrad.jit.TracingCheckError as error:
    ...     "the graphs differ" in str(error)
    True
    """

    def __init__(self, graph_diff_error: Any, tensor_compare_error: Any, extra_msg: Any = None) -> None:
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += f"{extra_msg}\n"
        for title, error in (
            ("Graphs differed across invocations!", graph_diff_error),
            ("Tensor-valued Constant nodes differed in value across invocations.", tensor_compare_error),
        ):
            if error is not None:
                self.message += f"ERROR: {title}\n{error}\n"
        super().__init__(self.message)


def is_tracing() -> bool:
    """Whether this call is being traced.

    >>> import cygrad
    >>> seen = []
    >>> def f(x):
    ...     seen.append(cygrad.jit.is_tracing())
    ...     return x * 2
    >>> traced = cygrad.jit.trace(f, cygrad.ones(2), check_trace=False)
    >>> seen[0], cygrad.jit.is_tracing()
    (True, False)
    """
    return is_recording()


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Return the program that a function or module runs for example inputs: the calls that it makes, in their order.

    The result is called as the original, has gradients, and can be saved by `torch.jit.save`. That of a module shares
    its parameters and buffers. Branches and loops go the way they went for the example; a value that is read as a
    Python number becomes a constant, with a `TracerWarning`. The function is run again with other lengths of each
    dimension of its inputs, to find the numbers that follow these lengths.

    `example_inputs` is a tuple of arguments, or one tensor; `example_kwarg_inputs` are arguments by name. With
    `check_trace` the program is compared with the function, for the example or for each tuple of `check_inputs`:
    results that differ by more than `check_tolerance` cause a `TracerWarning`, and another program `TracingCheckError`.
    With `strict=False` a dictionary may be returned.

    Raises RuntimeError for inputs and results that are no tensors, nor lists, tuples or dictionaries of such, and for
    functions that use tensors which require grad and are no inputs.

    >>> import cygrad
    >>> double = cygrad.jit.trace(lambda x: x.view(x.size(0), -1) * 2, cygrad.ones(2, 3))
    >>> double(cygrad.ones(1, 2, 2))
    tensor([[2., 2., 2., 2.]])
    """
    if isinstance(func, (ScriptModule, ScriptFunction)) and not isinstance(func, Module) or _is_traced(func):
        warn("The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.")
        return func
    args, kwargs = _inputs(example_inputs, example_kwarg_inputs)
    options = check_trace, check_inputs, check_tolerance, strict
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module) and func.__name__ == "forward":
        func = owner
    if isinstance(func, Module):
        made = mirrored(func, TopLevelTracedModule, TracedModule)
        made.__dict__["_programs"] = {"forward": _traced(func, func, "forward", args, kwargs, *options)}
        return made
    name = getattr(func, "__name__", type(func).__name__)
    name = "_lambda" if name == "<lambda>" else name if name.isidentifier() else "function"
    return TracedFunction(_traced(func, None, name, args, kwargs, *options))


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Return a module with the programs of several methods. `inputs` maps their names to example inputs; see `trace`.

    Raises AttributeError if `inputs` is no dictionary, and if the module lacks one of the methods.

    >>> import cygrad
    >>> class Model(cygrad.nn.Module):
    ...     def forward(self, x):
    ...         return x * 2
    ...     def loss(self, x, y):
    ...         return (self(x) - y).square().mean()
    >>> x = cygrad.ones(2)
    >>> traced = cygrad.jit.trace_module(Model(), {"forward": x, "loss": (x, x)})
    >>> traced(x), traced.loss(x, x)
    (tensor([2., 2.]), tensor(1.))
    """
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    methods = {name: mod if name == "forward" else getattr(mod, name) for name in inputs}
    made = mirrored(mod, TopLevelTracedModule, TracedModule)
    programs = {}
    for name, function in methods.items():
        given = inputs[name]
        args, kwargs = _inputs(None, given) if example_inputs_is_kwarg else _inputs(given, None)
        checks = [each[name] for each in check_inputs] if check_inputs is not None else None
        programs[name] = _traced(function, mod, name, args, kwargs, check_trace, checks, check_tolerance, strict)
    made.__dict__["_programs"] = programs
    return made


def script_if_tracing(fn: Callable[..., Any]) -> Any:
    """Mark a function to be compiled inside a trace: returns it unchanged.

    >>> import cygrad
    >>> @cygrad.jit.script_if_tracing
    ... def f(x):
    ...     return x * 2
    >>> f(cygrad.ones(2))
    tensor([2., 2.])
    """
    return fn


def _is_traced(func: Any) -> bool:
    return isinstance(func, Module) and bool(func.__dict__.get("_programs"))


def _inputs(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if args is None and kwargs is None:
        raise RuntimeError("example_inputs or example_kwarg_inputs must be given")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if isinstance(args, (Tensor, dict)):
        args = (args,)
    args = () if args is None else tuple(args)
    for value in leaves([*args, *(kwargs or {}).values()]):
        if not isinstance(value, Tensor):
            kinds = ", ".join(_title(each) for each in args)
            raise RuntimeError(
                f"Type 'Tuple[{kinds}]' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
                "of Tensors can be traced"
            )
    return args, dict(kwargs or {})


def _title(value: Any) -> str:
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def _copied(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value


def _traced(function: Any, module: Any, name: str, args: Any, kwargs: Any, check: bool, check_inputs: Any,
            tolerance: float, strict: bool) -> Program:  # fmt: skip
    """Return the program of a function, checked and generalized."""
    attributes = {} if module is None else {**dict(module.named_parameters()), **dict(module.named_buffers())}
    options: dict[str, Any] = {
        "attributes": attributes,
        "name": name,
        "constants_may_require_grad": module is not None,
        "warn_of_constants": True,
    }
    given = mapped(_copied, args), mapped(_copied, kwargs)
    try:
        base = record(function, *given, **options)
        _check_output(base.output, strict)
        variants = Variants(function, args, kwargs, _known_as(base, args, kwargs), options)
        if check:
            _check_again(base, variants.record({}), variants)
        program = generalized(function, args, kwargs, variants.base, None, False, **options)
    except RecordingError as error:
        raise RuntimeError(f"the function cannot be traced: {error}") from error
    if check:
        _warn_of_random(program)
        for inputs in [args] if check_inputs is None else check_inputs:
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
            _compare(program, function, inputs, kwargs, attributes, tolerance)
    program.forget()
    return program


def _known_as(base: Program, args: Any, kwargs: Any) -> Program:
    """Let the program know its arguments as those that the caller holds, which were not changed."""
    originals = leaves([*args, *kwargs.values()])
    for name, t in zip(
        [value.name for value in leaves([v for _, v in base.parameters]) if type(value) is Ref], originals
    ):
        base.tensors[name] = t
    return base


def _check_output(output: Any, strict: bool) -> None:
    values = list(leaves(output))
    if not values or not all(type(value) is Ref for value in values):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
        )
    if strict and isinstance(output, dict):
        raise RuntimeError(_CONTAINERS.format("dict"))
    if strict and isinstance(output, list):
        warn(_CONTAINERS.format("list"), TracerWarning)


def _check_again(base: Program, again: Program, variants: Variants) -> None:
    if alike(base, again) is not None or _numbers(base) != _numbers(again):
        lines = [str(Graph(program, None)).splitlines() for program in (base, again)]
        difference = "\n".join("\t\t" + line for line in difflib.ndiff(lines[0], lines[1]) if not line.startswith("?"))
        raise TracingCheckError(f"\tGraph diff:\n{difference}", None)
    for name, value in base.constants.items():
        other = again.constants.get(name)
        if other is None or other.shape != value.shape or not cygrad.allclose(other, value, equal_nan=True):
            site = next((call.site for call in base.calls if name in call.refs()), "the result")
            raise TracingCheckError(None, f"\tNode:\n\t\t%{name}\n\tSource Location:\n\t\t{site}")


def _numbers(program: Program) -> list[Any]:
    return [
        "nan" if isinstance(value, float) and math.isnan(value) else value
        for call in program.calls
        for value in leaves((call.args, call.kwargs))
        if type(value) in (int, float, str, bool)
    ]


def _warn_of_random(program: Program) -> None:
    nodes = [
        str(node)
        for node, call in zip(Graph(program, None).nodes(), program.calls)
        if call.target.rpartition(".")[2] in _RANDOM or ("dropout" in call.target and _is_training(call))
    ]
    if nodes:
        warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
            + "\n".join(f"\t{node}" for node in nodes[:20])
            + "\nThis may cause errors in trace checking. To disable trace checking, pass check_trace=False to "
            "torch.jit.trace()",
            TracerWarning,
        )


def _is_training(call: Any) -> bool:
    training = call.kwargs.get("training", call.args[2] if len(call.args) > 2 else True)
    return training is True and call.kwargs.get("p", call.args[1] if len(call.args) > 1 else 0.5) != 0


def _compare(program: Program, function: Any, args: Any, kwargs: Any, attributes: Any, tolerance: float) -> None:
    with undone(function, attributes):
        expected = function(*mapped(_copied, args), **mapped(_copied, kwargs))
    with undone(function, attributes):
        found = program.run(mapped(_copied, args), mapped(_copied, kwargs), lambda name: attributes[name])
    for i, (a, b) in enumerate(zip(leaves(found), leaves(expected))):
        try:
            cygrad.testing.assert_close(a.double(), b.double(), rtol=tolerance, atol=1e-5, equal_nan=True)
        except AssertionError as error:
            warn(
                f"Output nr {i + 1}. of the traced function does not match the corresponding output of the Python "
                f"function. Detailed error:\n{error}",
                TracerWarning,
            )
            return
