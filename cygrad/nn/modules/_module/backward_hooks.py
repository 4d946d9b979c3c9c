"""Runs the backward hooks of a single module call.

Note [Watching a module's gradients]
------------------------------------
A module's inputs may also be used elsewhere (as in `x + block(x)`). The gradient through this module
alone is therefore known only at a node that the module's graph passes through and nothing else does:

    x ---- BackwardHookFunction ---- [the module's operations] ---- out
     \\___________________________________________________________________ other uses of x

`BackwardHookFunction` is the identity. Its post-hook receives all input gradients together, which is
what a hook needs in order to replace them. Nothing outside the module reads its output before it is
returned, so on the output side a tensor hook suffices, and the caller remains free to modify the tensor
in place. Only multiple outputs, or hooks that replace output gradients, need a second
`BackwardHookFunction` there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cygrad import Tensor
from cygrad.autograd import Function
from cygrad.utils.warning import warn

Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity on all its tensors, as one node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Alias every tensor."""
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Gradients:
        """Pass the gradients on."""
        return grads


class BackwardHooks:
    """Collects the output and input gradients of one call and runs the hooks on them."""

    def __init__(self, module: Any, pre_hooks: list[Callable[..., Any]], hooks: list[Callable[..., Any]]) -> None:
        self.module = module
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.aliases: list[Tensor] = []
        self.places: list[int] = []  # indices of the arguments that require grad
        self.n_inputs = 0
        self.grad_output: Gradients | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments for `forward`, with those that require grad replaced by aliases."""
        self.n_inputs = len(args)
        self.places = _places(args)
        if not self.places:
            return args
        aliases = BackwardHookFunction.apply(*(args[i] for i in self.places))
        if self.hooks:
            aliases[0].grad_fn.register_hook(self._inputs_done)
        self.aliases = list(aliases)
        return _replaced(args, self.places, aliases)

    def watch_outputs(self, output: Any) -> Any:
        """Return the output for the caller, arranged so that its gradients trigger the hooks."""
        outputs = output if isinstance(output, tuple) else (output,)
        if not all(isinstance(item, Tensor) for item in outputs):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(output)}"
            )
            return output
        places = _places(outputs)
        if not places:
            return output
        if len(places) == 1 and not self.pre_hooks and self._is_own(outputs[places[0]]):

            def done(grad: Tensor) -> None:
                self._outputs_done(_padded((grad,), places, len(outputs)))

            outputs[places[0]].register_hook(done)
            return output
        watched = BackwardHookFunction.apply(*(outputs[i] for i in places))
        watched[0].grad_fn.register_prehook(lambda grads: self._outputs_done_at_node(grads, places, len(outputs)))
        outputs = _replaced(outputs, places, watched)
        return _like(output, outputs) if isinstance(output, tuple) else outputs[0]

    def _is_own(self, output: Tensor) -> bool:
        """Whether this call created the tensor, so that a hook on it belongs to the call."""
        return not output.is_leaf and all(output is not alias for alias in self.aliases)

    def _outputs_done_at_node(self, grads: Gradients, places: list[int], count: int) -> Gradients:
        replaced = self._outputs_done(_padded(grads, places, count))
        return tuple(replaced[i] for i in places)

    def _outputs_done(self, grad_output: Gradients) -> Gradients:
        for hook in self.pre_hooks:
            result = _as_tuple(hook(self.module, grad_output))
            if result is None:
                continue
            _check_count(result, grad_output, "Backward pre hook", "grad_output")
            grad_output = result
        self.grad_output = grad_output
        if not self.places:
            self._run_without_inputs(grad_output)
        return grad_output

    def _run_without_inputs(self, grad_output: Gradients) -> None:
        warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
            "register_full_backward_hook for more details."
        )
        nothing: Gradients = (None,) * self.n_inputs
        for hook in self.hooks:
            result = hook(self.module, nothing, grad_output)
            if result is not None and any(item is not None for item in _as_tuple(result) or ()):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_output = None

    def _inputs_done(self, grads: Gradients, _: Gradients) -> Gradients | None:
        if self.grad_output is None:  # the gradient did not come through the output, as in a second derivative
            return None
        grad_input = _padded(grads, self.places, self.n_inputs)
        for hook in self.hooks:
            result = _as_tuple(hook(self.module, grad_input, self.grad_output))
            if result is None:
                continue
            _check_count(result, grad_input, "Backward hook", "grad_input")
            grad_input = result
        self.grad_output = None
        return tuple(grad_input[i] for i in self.places)


def register_regular_hooks(module: Any, hooks: list[Callable[..., Any]], args: Any, output: Any) -> None:
    """Register hooks of the old kind on the node of the last operation."""
    first = output
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next((item for item in first.values() if isinstance(item, Tensor)), None)
        elif isinstance(first, (tuple, list)) and first:
            first = first[0]
        else:
            return
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grad_input, grad_output, hook=hook: hook(module, grad_input, grad_output))
    _warn_of_missing(args, output if isinstance(output, tuple) else (output,), node)


def _warn_of_missing(args: tuple[Any, ...], outputs: tuple[Any, ...], node: Any) -> None:
    """Warn if a hook on the node of the last operation does not see all gradients of the module."""
    full = "Please use register_full_backward_hook to get the documented behavior."
    deprecated = "is deprecated and will be removed in future versions. This hook will be missing"
    on_module, when = "Using non-full backward hooks on a Module that does not", "Using a non-full backward hook when"
    nodes = {item.grad_fn for item in outputs if isinstance(item, Tensor)} - {None}
    if not all(isinstance(item, Tensor) for item in outputs):
        kind = f"{on_module} return a single Tensor or a tuple of Tensors {deprecated} some of the grad_output."
    elif not all(isinstance(item, Tensor) for item in args):
        kind = f"{on_module} take as input a single Tensor or a tuple of Tensors {deprecated} some of the grad_input."
    elif len(nodes) > 1:
        kind = f"{when} outputs are generated by different autograd Nodes {deprecated} some grad_output."
    elif {item.grad_fn for item in args} - {None} != {following for following, _ in node.next_functions}:
        kind = f"{when} the forward contains multiple autograd Nodes {deprecated} some grad_input."
    else:
        return
    warn(f"{kind} {full}", FutureWarning)


def _places(values: Sequence[Any]) -> list[int]:
    return [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]


def _replaced(values: tuple[Any, ...], places: list[int], tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    new = list(values)
    for place, tensor in zip(places, tensors, strict=True):
        new[place] = tensor
    return tuple(new)


def _like(values: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `new` as the named tuple that the program's `values` are, or else as a tuple."""
    return type(values)(*new) if hasattr(values, "_fields") else new


def _padded(grads: Sequence[Tensor | None], places: list[int], count: int) -> Gradients:
    all_grads: list[Tensor | None] = [None] * count
    for place, grad in zip(places, grads, strict=True):
        all_grads[place] = grad
    return tuple(all_grads)


def _as_tuple(result: Any) -> tuple[Any, ...] | None:
    return result if result is None or isinstance(result, tuple) else (result,)


def _check_count(result: tuple[Any, ...], expected: tuple[Any, ...], hook: str, of_what: str) -> None:
    if len(result) != len(expected):
        raise RuntimeError(
            f"{hook} returned an invalid number of {of_what}, got {len(result)}, but expected {len(expected)}"
        )
