"""Checkpointing: discards tensors saved in part of the forward pass and recomputes them during backward.

With `use_reentrant=False` every tensor saved by the function's ops is replaced by an empty `_Slot`. When backward
unpacks the first slot, the function runs again and its ops fill the slots in the same order; each slot is emptied when
it is used. The function's inputs are saved by a separate node, `_CheckpointInputs`, under the hooks active around the
checkpoint, so that checkpoints nest.

With `use_reentrant=True` the whole function is one node, whose backward recomputes it with a graph and runs backward
on that graph.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.engine.backward import is_selective, notes_of_run
from cygrad._core.errors.sites import at, warn
from cygrad._core.runtime.interrupt_safe import Block, putting
from cygrad._core.runtime.thread_state import current_place
from cygrad.autograd.function import Function
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.utils._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from cygrad.utils._surroundings import (
    DefaultDeviceType,
    Surroundings,
    get_device_states,
    of_thread,
    set_device_states,
)
from cygrad.utils._surroundings import _get_device_module as _get_device_module
from cygrad.utils._surroundings import _infer_device_type as _infer_device_type

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_overrides: dict[str, bool | None] = {"early_stop": None, "debug": None}  # set by the two context managers below


class CheckpointError(RuntimeError):
    """Raised if the recomputation differs from the first run.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import CheckpointError, checkpoint
    >>> shapes = iter([2, 3])
    >>> x = cygrad.ones(1, requires_grad=True)
    >>> y = checkpoint(lambda x: (x.expand(next(shapes)) ** 2).sum(), x, use_reentrant=False)
    >>> try:
    ...     y.backward()  # which runs the function again
    ... except CheckpointError:
    ...     print("the second run differs from the first")
    the second run differs from the first
    """


class _override(Block, contextlib.ContextDecorator):
    def __init__(self, name, value):
        self._name, self._value = name, value

    def _plan(self):
        return putting(_overrides, self._name, self._value)


def set_checkpoint_early_stop(enable: bool) -> contextlib.AbstractContextManager[None]:
    """For checkpoints created in the block: whether recomputation stops as soon as all saved tensors are available.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(lambda x: x.exp().sum(), x, use_reentrant=False)
    >>> y.backward()
    """
    return _override("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> contextlib.AbstractContextManager[None]:
    """For checkpoints created in the block: overrides `debug=`; None leaves it to them.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(False):
    ...     checkpoint(lambda x: x.exp().sum(), x, use_reentrant=False).backward()
    """
    return _override("debug", enabled)


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing: the default `context_fn`.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import noop_context_fn
    >>> forward, recomputation = noop_context_fn()
    >>> with forward:
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detach the tensors of a tuple, keeping `requires_grad`; other values are returned unchanged.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import detach_variable
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y, n = detach_variable((x * 2, 3))
    >>> y.is_leaf, y.requires_grad, n
    (True, True, 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}\n"
            "  put the tensor into a tuple: (tensor,)"
        )
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value for value in inputs
    )


def check_backward_validity(inputs: Any) -> None:
    """Warn if none of the inputs requires grad.

    >>> import cygrad
    >>> import warnings
    >>> from cygrad.utils.checkpoint import check_backward_validity
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     check_backward_validity([cygrad.ones(2)])
    >>> str(caught[0].message)
    'None of the inputs have requires_grad=True. Gradients will be None'
    """
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Return `function(*args, **kwargs)`; tensors saved by its ops are not kept but recomputed during backward.

    use_reentrant
        should be given. False: supports any arguments and results, `grad`, `backward(inputs=)` and nesting; True:
        `function` runs unrecorded, one of `args` must require grad, and only `backward` without `inputs` works.
    preserve_rng_state
        (keyword, default True) the recomputation draws the same random numbers.
    context_fn
        returns two context managers, for the first and for the second run.
    determinism_check
        'default' compares shapes, dtypes and devices of saved tensors; 'none' does not.
    debug
        the error for a mismatch lists everything that was saved, with source lines.
    early_stop
        the second run stops as soon as all saved tensors are available.

    The last four require use_reentrant=False. Raises CheckpointError, in backward, if the second run saves something
    different from the first; ValueError for incompatible arguments.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import checkpoint
    >>> x = cygrad.tensor(2.0, requires_grad=True)
    >>> checkpoint(lambda t: (t * t).exp(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor(218.3926)
    """
    if use_reentrant is None:
        future = "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception."
        warn(f"torch.utils.checkpoint: {_ASK.format(future)}")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    debug = debug if _overrides["debug"] is None else _overrides["debug"]
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    first, second = context_fn()
    surroundings = Surroundings(preserve, (args, kwargs))

    def recompute(*inputs, **keywords):
        surroundings.run(second, function, inputs, keywords)

    record = _Record(recompute, determinism_check, debug, early_stop)
    hooks: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if record.take_inputs(args, kwargs):  # otherwise nothing is recorded, so nothing is saved
        hooks = saved_tensors_hooks(record.pack, record.unpack)
    keeper = of_thread.keeper
    try:
        with hooks, first:
            result = function(*args, **kwargs)
    finally:
        of_thread.keeper = keeper  # an interrupt may have prevented the context from restoring it
    record.complete = True
    return result


_ASK = (
    "the use_reentrant parameter should be passed explicitly. {} use_reentrant=False is recommended, but if you need "
    "to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a chain of functions, or an `nn.Sequential`, in segments; all but the last segment are checkpoints.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import checkpoint_sequential
    >>> x = cygrad.ones(3, requires_grad=True)
    >>> checkpoint_sequential([cygrad.exp, cygrad.sin, cygrad.cos], 2, x, use_reentrant=False).sum().backward()
    """
    if use_reentrant is None:
        future = "In version 2.9 we will raise an exception if use_reentrant is not passed."
        warn(f"torch.utils.checkpoint.checkpoint_sequential: {_ASK.format(future)}")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, cygrad.nn.Sequential):
        functions = list(functions.children())

    def chain(links):
        def run(value):
            for link in links:
                value = link(value)
            return value

        return run

    size = len(functions) // segments
    cuts = range(0, size * (segments - 1), size)
    for start in cuts:
        part = chain(functions[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return chain(functions[len(cuts) * size :])(input)


# -- use_reentrant=False --


_MORE = "trying to save more tensors during recomputation than during the original forward pass."


class _Enough(Exception):
    """Ends the second run once everything that was saved is available."""


class _Slot:
    """Placeholder that a node stores instead of a saved tensor."""

    __slots__ = ("__weakref__", "dtype")

    def __init__(self, dtype):
        self.dtype = dtype


class _CheckpointInputs(Function):
    """Saves the tensors among the arguments of a checkpoint, which keeps their history and version."""

    @staticmethod
    def forward(ctx, anchor, *tensors):
        ctx.save_for_backward(*tensors)
        return cygrad.empty(0)

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("Did not expect to backward on this graph")

    @staticmethod
    def jvp(ctx, *tangents):
        return None


class GraphExecGroup(Block):
    """Backward passes inside this block share recomputation: it runs once for all of them.

    Each saved value can be used by only one of these passes.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y, z = checkpoint(lambda x: (x.exp().sum(), x.sin().sum()), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     y.backward(retain_graph=True)
    ...     z.backward()
    >>> x.grad.shape
    torch.Size([2])
    """

    _innermost: dict[str, Any] = {"notes": None}

    def _plan(self):
        if GraphExecGroup._innermost["notes"] is not None:
            raise RuntimeError("GraphExecGroup does not support nested usage.")
        return putting(GraphExecGroup._innermost, "notes", {})


def _notes():
    """Return the store for recomputed values, which lasts for the current backward pass, or else for one use."""
    shared = GraphExecGroup._innermost["notes"]
    if shared is not None:
        return shared
    return notes_of_run() if is_selective() is not None else {}


class _Record:
    """One call of a checkpointed function: the slots for its saved tensors, and the means to fill them."""

    def __init__(self, recompute, determinism_check, debug, early_stop):
        self.recompute = recompute
        self.compare = determinism_check != "none"
        self.debug = debug
        self.early_stop = early_stop if _overrides["early_stop"] is None else _overrides["early_stop"]
        self.slots = []  # weak references to the slots, in saving order
        self.saved = []  # for each: shape, dtype and device, and the site
        self.complete = False  # whether the first run has ended

    def take_inputs(self, args, kwargs):
        """Store the arguments; return False if no graph is recorded."""
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        node = _CheckpointInputs.apply(cygrad.empty(0, requires_grad=True), *tensors).grad_fn
        blank = [None if isinstance(value, Tensor) else value for value in args]
        blanks = {name: None if isinstance(value, Tensor) else value for name, value in kwargs.items()}
        places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        places += [name for name, value in kwargs.items() if isinstance(value, Tensor)]
        self.inputs = node, blank, blanks, places
        return node is not None

    def arguments(self):
        """Return the arguments of the call. Raises RuntimeError if a tensor among them was modified in place."""
        node, blank, blanks, places = self.inputs
        args, kwargs = list(blank), dict(blanks)
        for place, tensor in zip(places, node.saved_tensors, strict=True):
            (args if isinstance(place, int) else kwargs)[place] = tensor
        return args, kwargs

    def pack(self, tensor):
        """Pack hook of the first run."""
        slot = _Slot(tensor.dtype)
        self.slots.append(weakref.ref(slot))
        self.saved.append((_metadata(tensor), current_place()))
        return slot

    def unpack(self, slot):
        """Unpack hook, called by backward or by the user."""
        notes = _notes()
        if self not in notes:
            notes[self] = self.values()
        if slot not in notes[self]:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you "
                "are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an "
                "issue with details on your use case."
            )
        return notes[self].pop(slot)

    def values(self):
        """Run the function again and return the values of all slots that are still alive."""
        second: list[Any] = []  # what this run saves, in the form of `saved`
        values: weakref.WeakKeyDictionary[_Slot, Tensor] = weakref.WeakKeyDictionary()

        def pack(tensor):
            position = len(second)
            second.append((_metadata(tensor), current_place()))
            tensor = tensor.detach() if tensor.requires_grad else tensor
            if position >= len(self.slots):
                if self.complete:
                    raise _mismatch(self, second, _MORE)
                return tensor  # saved for a backward pass that the function itself runs
            slot = self.slots[position]()
            if slot is not None:
                values[slot] = tensor.to(slot.dtype)  # differs only with determinism_check="none"
            if self.early_stop and len(second) == len(self.slots):
                raise _Enough
            return tensor

        args, kwargs = self.arguments()
        with contextlib.suppress(_Enough), saved_tensors_hooks(pack, lambda tensor: tensor), cygrad.enable_grad():
            self.recompute(*args, **kwargs)
        self.check(second)
        return values

    def check(self, second):
        """Raise CheckpointError if the second run saved different tensors than the first."""
        if self.complete and len(second) != len(self.saved):
            raise _mismatch(
                self,
                second,
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.saved)}\n"
                f"Number of tensors saved during recomputation: {len(second)}.",
            )
        if not self.compare:
            return
        differing = [
            f"tensor at position {i}:\nsaved metadata: {first[0]}\nrecomputed metadata: {again[0]}\n"
            for i, (first, again) in enumerate(zip(self.saved, second, strict=False))
            if first[0] != again[0] and self.slots[i]() is not None
        ]
        if differing:
            raise _mismatch(
                self,
                second,
                "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                + "".join(differing),
            )


def _metadata(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_DEBUG_HEAD = (
    " An error happened while unpacking tensors; dumping logs of latest computation\n"
    "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`."
)


def _mismatch(record, second, text):
    """Return the error for a mismatch, with the source lines where the two runs first differ."""
    first = record.saved
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    lines = [f"torch.utils.checkpoint: {text}", f"  the first difference is saved tensor {same}"]
    for when, run in (("in forward", first), ("computed again", second)):
        lines.append(f"    {when}: {_description(run[same]) if same < len(run) else 'none'}")
    if record.debug:
        lines = [_DEBUG_HEAD, *lines]
        for when, run in (("in forward", first), ("when computed again", second)):
            lines.append(f"  saved {when}:")
            lines += [f"    {i}: {_description(saved)}" for i, saved in enumerate(run)]
        lines.append(
            "You are seeing this error because you passed `debug=True` to checkpoint, and the two lists differ."
        )
    else:
        lines.append("  debug=True lists everything that was saved, with its lines")
    lines.append("  does the function depend on something that has changed, or on random numbers of another library?")
    return CheckpointError("\n".join(lines))


def _description(saved):
    metadata, site = saved
    return f"{metadata['dtype']} {tuple(metadata['shape'])} at {at(*site)}"


# -- use_reentrant=True --


class CheckpointFunction(Function):
    """A function as one node, whose backward runs it again: `checkpoint(..., use_reentrant=True)`.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import CheckpointFunction
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = CheckpointFunction.apply(cygrad.exp, True, x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183])
    """

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Run the function unrecorded and store its arguments."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state, args)
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Run the function again with recording, and backward through it."""
        if is_selective():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        with cygrad.enable_grad():
            arguments = detach_variable(tuple(inputs))
            results = ctx.surroundings.run(contextlib.nullcontext(), ctx.run_function, arguments, {})
        both = zip(results if isinstance(results, tuple) else (results,), grads, strict=True)
        pairs = [(value, grad) for value, grad in both if isinstance(value, Tensor) and value.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        values, given = zip(*pairs, strict=True)
        cygrad.autograd.backward(values, given)
        return (None, None, *[value.grad if isinstance(value, Tensor) else None for value in arguments])
