"""Tangents: derivatives that are carried along while the values are computed.

Note [Forward mode]
-------------------
While a dual level is open (the mode FORWARD), a tensor may have a tangent at it: the derivative of the tensor along the
direction that the level is about. What is computed from it gets the tangent J v, where J is the op's Jacobian and v the
tangents of its inputs. No op has a rule for that: it is derived from the rule that gives J^T u for a gradient u.

* Where each element of the result depends on the elements at its place only, J is diagonal. Then J v is what the rule
  makes of v in place of u, for each input alone.
* Otherwise J^T u is computed for u = 0, recorded. It is linear in u, so that its gradient with respect to u, for the
  gradient v, is J v: the transpose of the transpose. Rules are made of recorded ops, so this works for every op, is
  exact, and can itself be differentiated, backward and forward.

The node whose rule is used (`node_of(..., dual=True)` in record.pyx) is not that of the result's history: it has edges
and saved values for all inputs that have tangents, whether they require grad or not, and is dropped afterwards. It is
evaluated when the next op comes (`flush`), since an op may save more after it was recorded (`keep`).

Levels nest (`jvp` of `jvp`). A tangent at a level may itself have tangents at the levels outside of it, so that at each
level J v is computed with only the outer ones open. A view has no tangents of its own: they are parts of its base's,
taken and put back by strides, as the gradients of views are (Note [Views and in-place]).
"""

import os
import sys
import threading
from functools import partial
from types import FrameType
from weakref import ref

from cygrad._core.engine.backward import check_before_backward, history_is_cut
from cygrad._core.errors import messages
from cygrad._core.errors.sites import is_ours
from cygrad._core.graph import internals
from cygrad._core.graph.dual import complete, kept_results, record_same, take_levels
from cygrad._core.graph.dual import leave as leave  # which is part of this module but compiled
from cygrad._core.graph.inplace import place_in_base
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import get_modes, set_forward, set_modes
from cygrad._core.tensor.tensor_hooks import check_before_requires_grad
from cygrad._core.transforms.jvp_rules import apply, derivative, zeros_like
from cygrad._core.transforms.vmap_levels import Batch, NoBatchingRule, Step

NO_GRAD = 1  # the bit of `state.pxd`
_NOTHING: dict = {}


class Level:
    """A direction in which derivatives are carried along. It is the key of the tangents."""

    def __init__(self):
        self.holders = []  # weak references to the tensors that have a tangent here
        self.has_history = False  # does a direction that was given require grad?

    def close(self):
        """Take the tangents from all tensors that are still alive."""
        for holder in self.holders:
            tensor = holder()
            if tensor is not None:
                rest = {level: t for level, t in (internals.get_tangents(tensor) or {}).items() if level is not self}
                internals.set_tangents(tensor, rest or None)


class _Thread(threading.local):
    levels: tuple = ()  # those that are open, the outermost first
    deferred: tuple | None = None  # (node, flags, inputs, results) of the last op
    step: Step | None = None  # the last op, if a batch is open
    modes = 0  # under which it was recorded
    reads: dict = {}  # in a batch: tensors whose arrays were asked for, and by whom, that were no operands since
    writing: Step | None = None  # the write that is going on, if a batch is open
    looking: Step | None = None  # a change of what a tensor shows of its memory that is going on, if it has samples
    packed: dict = (
        _NOTHING  # id of a node: (number of a result, where its tangents are to be noted), of what hooks packed
    )
    written: tuple | None = None  # (node, mask, flags, inputs, tensor) of the write that is going on
    transforms = 0  # how many are running, inside of one another


_thread = _Thread()


# -- levels --


def levels():
    """The open levels, the outermost first."""
    return _thread.levels


def dual_levels():
    """Those of them along which tangents are carried."""
    return tuple(level for level in _thread.levels if isinstance(level, Level))


def enter(level=None):
    """Open a level inside of the others. To `leave` it even if Ctrl-C comes at once, make it before."""
    flush()
    level = level or Level()
    _thread.levels += (level,)
    set_forward(True)
    return level


def open_only(levels):
    """Let only these levels be open. Those who call it `flush` before, and open the others again."""
    _thread.levels = levels
    set_forward(bool(levels))


# -- the tangents of a tensor --


def tangent_of(t, level):
    """The tangent of a tensor at a level, or None."""
    flush()
    return _tangent(t, level)


def _tangent(t, level):
    place = place_in_base(t)
    if place is None:
        return (internals.get_tangents(t) or {}).get(level)
    whole = _tangent(place[0], level)
    if whole is None:
        return None
    part = _part(whole, *place[1:])
    flush()  # it gets samples now, while their batch is open
    return part


def directions_have_history():
    """Whether a tangent may have a history although its tensor has none: where a direction that was given has one."""
    return any(level.has_history for level in dual_levels())


def all_of(t):
    """{level: tangent} of the open levels, or None."""
    found = {level: _tangent(t, level) for level in dual_levels()}
    return {level: tangent for level, tangent in found.items() if tangent is not None} or None


def set_tangent(t, level, tangent):
    """Give a tensor a tangent at a level; that of a view becomes part of its base's."""
    place = place_in_base(t)
    if place is not None:
        base = place[0]
        whole = _tangent(base, level)
        t, tangent = base, _with_part(zeros_like(base) if whole is None else whole, tangent, *place[1:])
    internals.set_tangents(t, {**(internals.get_tangents(t) or {}), level: tangent})
    level.holders.append(ref(t))


def check_size(t, tangent):
    """Raise unless a tangent has the shape of its tensor."""
    if tangent.shape != t.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(t.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def _strided(name, *args):
    registry["as_strided"]  # brings the family of which `name` is a private op
    return apply(name, *args)


def _part(whole, base, view, splits_base, splits_view):
    """What a view shows of something like its base."""
    part = _strided("strided_gather", apply("view_as_real", whole) if splits_base else whole, view, base)
    return apply("view_as_complex", part) if splits_view else part


def _with_part(whole, part, base, view, splits_base, splits_view):
    """Something like the base, of which the view shows `part`."""
    if splits_base:
        whole = apply("view_as_real", whole)
    whole = _strided("strided_scatter", whole, apply("view_as_real", part) if splits_view else part, view, base)
    return apply("view_as_complex", whole) if splits_base else whole


def dual(t, tangent, level):
    """The same memory with a tangent at a level, besides those that `t` has at others."""
    out = _other(t, level)
    level.has_history |= tangent.requires_grad
    set_tangent(out, level, tangent)
    return out


def unpacked(t, level):
    """(the same memory without its tangent at a level, that tangent or None)."""
    return _other(t, level), tangent_of(t, level)


def _other(t, level):
    flush()
    out = record_same(registry["view"], t, (tuple(t.shape),))
    leave_to_base(out)
    for each, tangent in (all_of(t) or {}).items():
        if each is not level:
            set_tangent(out, each, tangent)
    return out


def without_history(t, keeps=None):
    """The same values and tangents, without history, but for the tangents for which `keeps(tangent)` is true."""
    flush()
    bare = internals.same_array(t)
    for level, tangent in (all_of(t) or {}).items():
        set_tangent(bare, level, tangent if keeps and keeps(tangent) else without_history(tangent, keeps))
    return bare


def _without_own_history(t):
    """Without history, but with that which its tangents have of directions that were given."""
    return without_history(t, lambda _: directions_have_history())


Batch.without_history = staticmethod(_without_own_history)


def detach_samples(t, out):
    """In a batch: `out`, which is `t.detach()`, has the samples of `t` without the tangents that these have outside."""
    flush()
    levels = _thread.levels
    for i, level in enumerate(levels):
        if isinstance(level, Batch) and level.has(t):
            open_only(levels[:i])
            try:
                level.set_samples(out, level.samples(t).detach())
            finally:
                open_only(levels)


# -- what hooks keep in place of a saved tensor --


def of_packed(t):
    """{level: tangent} of a tensor; None is that of a batch of which it has samples."""
    batches = [level for level in _thread.levels if isinstance(level, Batch) and level.has(t)]
    packed = _taken()
    former = set_forward(True)  # it is off while the op of which this is a part is recorded
    try:
        tangents = all_of(t) or {}
        flush()
    finally:
        set_forward(former)
        _thread.packed = packed
    return tangents | dict.fromkeys(batches)


def of_packed_result(node, number):
    """The same of a result of the op that is just being recorded, when it will have any."""
    found: dict = {}
    _thread.packed = {**_thread.packed, id(node): [*_thread.packed.get(id(node), ()), (number, found)]}
    return found


def _taken():
    """What has been noted of the op that has ended, which is forgotten."""
    packed = _thread.packed
    if packed:
        _thread.packed = _NOTHING
    return packed


def join_tangents(t, found):
    """Give an unpacked tensor those of these tangents whose levels are open. Raises NoBatchingRule for lost samples."""
    flush()
    for level, tangent in found.items():
        if isinstance(level, Batch):
            if level in _thread.levels and not level.has(t):
                raise NoBatchingRule("? (what a hook made of a saved tensor)")
        elif level in _thread.levels:
            set_tangent(t, level, tangent)


# -- after an op --


def defer(node, flags, inputs, results):
    """Note an op whose results will get tangents when the next op comes. What was deferred before has been done."""
    _thread.deferred = node, flags, inputs, results


def deferred_node(result):
    """The node by which this result will get its tangent, or None."""
    if _thread.deferred is not None and any(result is each for each in _thread.deferred[3]):
        return _thread.deferred[0]
    return None


def leave_to_base(result):
    """The result has become a view."""
    if deferred_node(result) is not None:
        _thread.deferred = None


def flush():
    """Give the results of the last op their samples and tangents."""
    step, deferred, packed = _thread.step, _thread.deferred, _taken()
    if step is None and deferred is None:
        return
    _thread.step = _thread.deferred = None
    modes = get_modes()
    try:
        if _thread.modes != modes:  # `no_grad` began or ended since
            set_modes(_thread.modes)
        if step is not None:
            _follow(step, packed)
        if deferred is not None:
            node, flags, inputs, results = deferred
            _carry(node, flags, inputs, results, packed=packed)
    finally:
        set_modes(modes)


def before_write(op, out, inputs, args):
    """Give the last results their tangents before `out` is changed; forget a write that failed."""
    flush()
    _thread.written = _thread.writing = None
    if _has_batch():
        _thread.writing = Step(op, (out,), inputs, args, True)
        _check_write(_thread.writing)


def begin_write(node, mask, flags, inputs, t):
    """Note an op that is about to change `t`; `inputs` have its old value."""
    _thread.written = node, mask, flags, inputs, t


def written_node():
    """The node of the write that is going on, or None."""
    return None if _thread.written is None else _thread.written[0]


def end_write(t, recorded):
    """Give `t` its new samples and tangents, now that it was changed. `recorded` is its node in the history."""
    writing, _thread.writing = _thread.writing, None
    looking, _thread.looking = _thread.looking, None
    written, _thread.written = _thread.written, None  # before the same write into samples
    packed = _taken()
    if writing is not None and writing.outs[0] is t:
        _follow(writing, packed)
    if looking is not None and looking.outs[0] is t:
        _follow(looking)
    if written is not None and written[-1] is t:
        node, mask, flags, inputs, _ = written
        complete(node, t, mask)
        _carry(node, flags, inputs, (t,), recorded, packed)


def _carry(node, flags, inputs, results, recorded=None, packed=_NOTHING):
    """Give the results of an op their tangents at each open level."""
    levels = _thread.levels
    nodes = node, results[0].grad_fn if recorded is None else recorded
    for depth, level in enumerate(levels):
        tangents = [_tangent(x, level) if isinstance(x, Tensor) else None for x in inputs]
        if all(tangent is None for tangent in tangents):
            continue
        wanted = any(t.requires_grad for t in (*tangents, *inputs) if isinstance(t, Tensor))
        try:
            open_only(levels[:depth])
            recorded_too = (wanted or directions_have_history()) and not get_modes() & NO_GRAD
            found, has_history = derivative(node, flags, inputs, tangents, results, recorded_too, bool(_thread.levels))
            for result, tangent in zip(results, found, strict=True):
                is_cut = has_history or (recorded_too and not wanted)
                set_tangent(result, level, _without_own_history(tangent) if is_cut else tangent)
            flush()
        finally:
            open_only(levels)
        for kept, result in _kept(nodes, results):
            internals.set_tangents(kept, all_of(result))
    for each in nodes if packed else ():
        for number, found in packed.get(id(each), ()):
            found.update(all_of(results[number]) or {})


def _kept(nodes, results):
    """The tensors by which these nodes keep the results, and the results. They have no tangents of their own."""
    for node in nodes:
        for kept in () if node is None else kept_results(node):
            for result in results:
                if kept is not result and internals.memory_of(kept) is internals.memory_of(result):
                    yield kept, result


# -- samples of a batch (Note [Batches] in batches.py) --


def _has_batch():
    for level in _thread.levels:  # quicker than `any`; this is asked at each op
        if isinstance(level, Batch):
            return True
    return False


take_levels(_thread, flush, _has_batch)


def note_step(op, outs, inputs, args):
    """Note an op whose results get samples, or tangents, when the next op comes."""
    _thread.modes = get_modes()
    if _has_batch():
        _thread.step = Step(op, outs, inputs, args)


def before_look(op, t, args):
    """What `t` shows of its memory is about to change, and so is what it shows of that of its samples."""
    flush()
    _thread.looking = None
    if batch_of((t,))[0] is not None:
        _thread.looking = Step(op, (t,), (internals.same_array(t),), args)


def note_kept(result, slot, value):
    """Note what an op has saved beside its inputs."""
    if _thread.step is not None and any(result is out for out in _thread.step.outs):
        _thread.step.kept[slot] = value


def note_kept_write(value):
    """Note what the write that is going on will save in the third place."""
    if _thread.writing is not None:
        _thread.writing.kept[2] = value
        _check_write(_thread.writing)


def batch_of(tensors):
    """(the innermost batch of which one of `tensors` has samples, the levels outside of it), or (None, ())."""
    levels = _thread.levels
    depth = len(levels)
    for level in reversed(levels):
        depth -= 1
        if isinstance(level, Batch) and level.has_any(tensors):
            return level, levels[:depth]
    return None, ()


def _check_write(step):
    batch, outside = batch_of(step.operands())
    if batch is not None:
        batch.check_write(step, len(outside) + 1)


def on_levels(outside, run):
    """What `run()` gives, which only the levels outside of a batch are to follow."""
    levels, modes = _thread.levels, get_modes()
    try:
        open_only(outside)
        set_modes(modes | NO_GRAD if history_is_cut() else modes)
        found = run()
        flush()
        return found
    finally:
        set_modes(modes)
        open_only(levels)


def _follow(step, packed=_NOTHING):
    """Do with the samples what an op has done."""
    operands, reads = step.operands(), _thread.reads
    for t in operands if reads else ():
        reads.pop(internals.identity_of(t), None)
    batch, outside = batch_of(operands)
    if batch is None:
        return
    give = batch.overwrite if step.writes else batch.give
    on_levels(outside, lambda: give(step, batch.results(step)))
    for out in step.outs if packed else ():
        for _, found in packed.get(id(out.grad_fn), ()):
            found[batch] = None


def _give_samples(t, new, made_of):
    """Let `new` have what `made_of` makes of the samples of `t`, if there are any."""
    flush()
    batch, outside = batch_of((t,))
    if batch is None:
        return
    on_levels(outside, lambda: batch.set_samples(new, made_of(batch.samples(t))))


def keep_samples(t, copy):
    """Let a copy of `t`, which is about to be changed in place, have the samples of now."""
    _give_samples(t, copy, partial(apply, "clone"))


def values_of(t):
    """The array that holds the samples of `t` in all open batches, or its own."""
    flush()
    batch, _ = batch_of((t,))
    while batch is not None:
        t = batch.held(t)
        batch, _ = batch_of((t,))
    return internals.memory_of(t)


def spread(t, blank):
    """Let a new tensor have samples if `t` has, like which it was made, so that it can be changed in place."""

    def copies(samples):
        return samples.new_empty((samples.shape[0], *blank.shape), dtype=blank.dtype).copy_(blank.detach())

    _give_samples(t, blank, copies)


def open_batch(batch):
    """Open a batch inside of the other levels."""
    if not _has_batch():
        _thread.reads = {}
    enter(batch)


def close_batch(batch, results):
    """Close the innermost level, a batch, and give the samples of the results: for each a tensor, or None.

    Raises NoBatchingRule if the values of a tensor were read by an op that was not recorded.
    """
    flush()
    found = [batch.samples(t) if isinstance(t, Tensor) else None for t in results]
    known = {internals.identity_of(t) for t in results if isinstance(t, Tensor)}
    for number, (t, name) in _thread.reads.items():
        if number not in known and batch.has(t):
            raise NoBatchingRule(f"{name}\n  it read a tensor of shape {tuple(t.shape)}, and is not recorded")
    return found


def note_read(t):
    """Note that somebody asks for the array of a tensor."""
    if _has_batch():
        _thread.reads[internals.identity_of(t)] = t, _running_op()


def _running_op():
    """The name of the function of ours that the user's program, or a module, has called; '?' if it is compiled."""
    name = outermost = "?"
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_ours(frame.f_code):
        code = frame.f_code
        outermost = code.co_name
        if f"{os.sep}_ops{os.sep}" in code.co_filename and "<locals>" not in code.co_qualname:  # no decorator's
            name = code.co_name.removesuffix("_of_package")
        frame = frame.f_back
    return outermost if name == "?" else name


def has_samples(t):
    """Whether a tensor is another one for each sample of an open batch."""
    flush()
    return batch_of((t,))[0] is not None


def refuse_samples(name, tensors):
    """Raise NoBatchingRule if one of these is another tensor for each sample."""
    flush()
    if batch_of(tensors)[0] is not None:
        raise NoBatchingRule(name)


def check_read(t, in_condition):
    """Raise if a value is read that is another one for each sample."""
    flush()
    batch, _ = batch_of((t,))
    if batch is not None:
        raise batch.read_error(in_condition)


# -- what a function that is transformed may not do --


def call_inside(func, *args, **kwargs):
    """What a function gives inside of a transform, where gradients are the transform's own affair."""
    check_before_backward(_check_backward)
    check_before_requires_grad(_check_requires_grad)
    depth = _thread.transforms
    try:
        _thread.transforms = depth + 1
        return func(*args, **kwargs)
    finally:
        _thread.transforms = depth


def _check_backward():
    if _thread.transforms or _has_batch():
        raise RuntimeError(messages.BACKWARD_IN_TRANSFORM)


def _check_requires_grad():
    if _thread.transforms and not is_ours(sys._getframe(1).f_code):
        check_no_transform()


def check_no_transform():
    """Raise where tensors are about to require grad inside of a transform, to which these gradients are nothing."""
    if _thread.transforms:
        raise RuntimeError(messages.REQUIRES_GRAD_IN_TRANSFORM)
