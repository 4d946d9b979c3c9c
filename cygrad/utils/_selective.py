"""Selective checkpointing: keeps the results of chosen ops so that the recomputation of a checkpoint can skip them.

Heavy ops call an interceptor if one is installed (`instead` in `_core/registry/autocast.py`). In the first run
`_First` passes
the op's output to the policy and, if it is to be kept, stores it along with a record of what the op saved: which of
its arguments, which of its results, and any other tensors. In the second run `_Second` passes these to the
saved-tensor hooks in the same order, and returns the stored results to the function without calling the op.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import identity_of
from cygrad._core.registry.autocast import keeping
from cygrad._core.saved.saved_tensor_hooks import hooks_in_use, stand_in
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.func.trees import flatten, rebuild
from cygrad.ops import OpOverload, OpOverloadPacket, aten


class CheckpointPolicy(enum.Enum):
    """A policy's decision about an op: whether its results are kept.

    MUST and PREFER are equivalent here, and nothing is offloaded: CPU_OFFLOAD is recomputed.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The first argument of a policy: `op_output` is the result of the op; `is_recompute` is False."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


# Ops that are never passed to a policy: those of PyTorch's set that are ops here.
SAC_IGNORED_OPS = {aten.detach.default, aten.numel.default}

_SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_COMPUTE_AGAIN, _USED = object(), object()
_DIFFERS = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[_First, _Second]:
    """Create the contexts, for `context_fn`, of a checkpoint that keeps the results of some ops.

    policy_fn_or_list
        a function `policy(ctx, op, *args, **kwargs)` that returns a `CheckpointPolicy`, or True for MUST_SAVE; or a
        list of the ops to keep, such as `ops.aten.mm.default`. It is consulted for expensive ops, those known to
        `autocast`: matrix products, convolutions, attention, recurrent layers, losses, linear algebra, Fourier
        transforms. All others are recomputed.
    allow_cache_entry_mutation
        do not raise RuntimeError in backward if a kept tensor was modified in place.

    Backward through a region is possible only once. Raises ValueError for a list that contains non-ops, TypeError for
    anything but a function or a list; RuntimeError, in backward, if the second run calls a different op.

    >>> import functools
    >>> import cygrad
    >>> from cygrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, [cygrad.ops.aten.mm.default])
    >>> x = cygrad.eye(2, requires_grad=True)
    >>> checkpoint(lambda t: (t @ t).sigmoid(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    >>> x.grad
    tensor([[0.3932, 0.5000],
            [0.5000, 0.3932]])
    """
    if isinstance(policy_fn_or_list, list):
        ops = policy_fn_or_list
        for op in ops:
            if not isinstance(op, OpOverload):
                raise _not_an_op(op)

        def policy(ctx, op, *args, **kwargs):
            return op in ops

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: defaultdict[OpOverload, list[Any]] = defaultdict(list)
    return _First(kept, policy), _Second(kept, not allow_cache_entry_mutation)


def _not_an_op(op):
    more = ""
    if isinstance(op, OpOverloadPacket):
        more = (
            "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, "
            "change it to `torch.ops.aten.mm.default`."
        )
    return ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {more}")


def _op_of(entry, args):
    """Return the op that PyTorch would dispatch to for a call of an entry point."""
    name = entry.__name__
    if name == "linear":
        name = "addmm" if len(args) > 2 and args[2] is not None else "mm" if args[0].ndim > 1 else "mv"
    elif name == "matmul":
        a, b = (t.ndim for t in args[:2])
        name = "bmm" if b > 2 else "mm" if b == 2 else "dot" if a == 1 else "mv"
    elif name.startswith("conv"):
        name = "convolution"
    return getattr(aten, name).default


class _Kept:
    """A kept op of the first run: its results, and the tensors it saved, in order."""

    def __init__(self, output, args, saved, state):
        leaves = flatten(output)[0]
        self.output = rebuild(output, [_detached(leaf) for leaf in leaves])
        self.grads = [isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves]
        known = {identity_of(t): ("result", i) for i, t in enumerate(leaves) if isinstance(t, Tensor)}
        known |= {identity_of(t): ("argument", i) for i, t in enumerate(args) if isinstance(t, Tensor)}
        self.saved = [known.get(identity_of(t)) or ("value", t.detach()) for t in saved]
        values = [value for where, value in self.saved if where == "value"]
        held = [t for t in (*flatten(self.output)[0], *values) if isinstance(t, Tensor)]
        self.versions = [(t, t._version) for t in held]
        self.state = state  # of the generator, if the op drew random numbers

    def check_unchanged(self):
        if any(t._version != version for t, version in self.versions):
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")

    def results(self):
        """Return the results, detached from the graph; they are not leaves, so that they may be modified in place."""
        leaves = map(_detached, flatten(self.output)[0])
        return [stand_in(leaf) if grad else leaf for leaf, grad in zip(leaves, self.grads, strict=True)]

    def use(self, args):
        """Replay the op in the second run: repeat its saves and return its results."""
        if self.state is not None:
            cygrad.random.set_rng_state(self.state)
        leaves = self.results()
        hooks = hooks_in_use()
        for where, value in self.saved if hooks else ():
            hooks[0](value if where == "value" else leaves[value] if where == "result" else args[value])
        return rebuild(self.output, leaves)


def _detached(value):
    return value.detach() if isinstance(value, Tensor) else value


class _Context:
    """The interceptor of heavy ops during one of the runs; subclasses define `call`."""

    call: Callable[..., Any]

    def __init__(self, kept: defaultdict[OpOverload, list[Any]]) -> None:
        self.kept = kept
        self._block: Any = None

    def __enter__(self) -> None:
        self._block = keeping(self._ask)
        self._block.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self._block.__exit__(*exc_info)

    def _ask(self, entry, args, kwargs):
        if kwargs.get("out") is not None:  # results written into other tensors are not kept
            return entry(*args, **kwargs)
        if args[-1] is None:  # an omitted bias
            args = args[:-1]
        return self.call(_op_of(entry, args), entry, args, kwargs)


class _First(_Context):
    """The context of the first run."""

    def __init__(self, kept: defaultdict[OpOverload, list[Any]], policy: Callable[..., Any]) -> None:
        super().__init__(kept)
        self.policy = policy

    def call(self, op, entry, args, kwargs):
        """Run the op, and keep its result if the policy decides so."""
        saved: list[Tensor] = []
        before = cygrad.random.get_rng_state()
        output = _watched(entry, args, kwargs, saved)
        after = cygrad.random.get_rng_state()
        with cygrad.no_grad():
            choice = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=output), op, *args, **kwargs)
        found: Any = _COMPUTE_AGAIN
        if choice is True or choice in _SAVE:
            found = _Kept(output, (*args, *kwargs.values()), saved, None if after.equal(before) else after)
        self.kept[op].append(found)
        return output


def _watched(entry, args, kwargs, saved):
    """Run the op, recording the tensors it passes to the saved-tensor hooks."""
    hooks = hooks_in_use()
    if hooks is None:
        return entry(*args, **kwargs)

    def pack(tensor):
        saved.append(tensor)
        return hooks[0](tensor)

    with saved_tensors_hooks(pack, hooks[1]):
        return entry(*args, **kwargs)


class _Second(_Context):
    """The context of the second run."""

    def __init__(self, kept: defaultdict[OpOverload, list[Any]], checks: bool) -> None:
        super().__init__(kept)
        self.checks = checks
        self.calls: Counter[OpOverload] = Counter()

    def __enter__(self) -> None:
        self.calls.clear()  # a region may be recomputed more than once
        super().__enter__()

    def call(self, op, entry, args, kwargs):
        """Return the op's result from the first run, or compute it now."""
        number = self.calls[op]
        self.calls[op] += 1
        if op not in self.kept:
            raise RuntimeError(f"{op} encountered during backward but not found in storage. {_DIFFERS}")
        entries = self.kept[op]
        if number >= len(entries):
            raise RuntimeError(
                f"{op} invocation index {number} encountered during backward but not found in storage. {_DIFFERS}"
            )
        found = entries[number]
        if found is _COMPUTE_AGAIN:
            return entry(*args, **kwargs)
        if found is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        entries[number] = _USED
        if self.checks:
            found.check_unchanged()
        return found.use((*args, *kwargs.values()))
