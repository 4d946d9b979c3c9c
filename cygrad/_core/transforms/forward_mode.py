"""Forward-mode differentiation: tangents that are propagated while the values are computed.

Note [Forward mode]
-------------------
While a dual level is open (the mode FORWARD), a tensor may have a tangent at it: the derivative of the tensor along the
level's direction. Results computed from it get the tangent J v, where J is the op's Jacobian and v the tangents of its
inputs. Ops have no forward rules: J v is derived from the backward rule, which computes J^T u for a gradient u.

* If each element of the result depends only on the input elements at the same position, J is diagonal. Then J v is the
  rule applied to v in place of u, for each input separately.
* Otherwise J^T u is computed for u = 0 and recorded. It is linear in u, so its gradient with respect to u, for the
  incoming gradient v, is J v: the transpose of the transpose. Rules consist of recorded ops, so this works for every
  op, is exact, and can itself be differentiated, backward and forward.

The node whose rule is used (`node_of(..., dual=True)` in record.pyx) is not the one of the result's history: it has
edges and saved values for all inputs that have tangents, whether or not they require grad, and is dropped afterwards.
It is evaluated when the next op is recorded (`flush`), since an op may save more after it was recorded (`keep`).

Levels nest (`jvp` of `jvp`). A tangent at a level may itself have tangents at the levels outside it, so J v at each
level is computed with only the outer levels open. A view has no tangents of its own: they are parts of its base's
tangents, extracted and inserted by strides like the gradients of views (Note [Views and in-place]).
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
from cygrad._core.graph.dual import leave as leave  # compiled, but part of this module's interface
from cygrad._core.graph.inplace import place_in_base
from cygrad._core.graph.observers import Recorded
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes, set_forward, set_modes
from cygrad._core.tensor.tensor_hooks import check_before_requires_grad
from cygrad._core.transforms.jvp_rules import apply, derivative, zeros_like
from cygrad._core.transforms.vmap_levels import Batch, NoBatchingRule

_NOTHING: dict = {}


class Level:
    """A direction along which derivatives are propagated. It is the key of the tangents."""

    def __init__(self):
        self.holders = []  # weak references to the tensors with a tangent at this level
        self.has_history = False  # whether a given direction requires grad

    def close(self):
        """Remove this level's tangents from all tensors that are still alive."""
        for holder in self.holders:
            tensor = holder()
            if tensor is not None:
                rest = {level: t for level, t in (internals.get_tangents(tensor) or {}).items() if level is not self}
                internals.set_tangents(tensor, rest or None)


class _Thread(threading.local):
    levels: tuple = ()  # the open levels, outermost first
    paused: tuple | None = None  # while no tangents are propagated: the levels that were open at its beginning
    deferred: tuple | None = None  # (node, flags, inputs, results) of the last op
    step: Recorded | None = None  # the last op, if a batch is open
    modes = 0  # the modes under which it was recorded
    reads: dict = {}  # in a batch: {id: (tensor, reader)} of arrays read by an op that was not recorded since
    writing: Recorded | None = None  # the write in progress, if a batch is open
    looking: Recorded | None = None  # the in-place change of a tensor's geometry in progress, if it has samples
    packed: dict = (
        _NOTHING  # {id of a node: [(result number, dictionary to fill with its tangents)]}, for values packed by hooks
    )
    written: tuple | None = None  # (node, mask, flags, inputs, tensor) of the write in progress
    transforms = 0  # number of nested transforms that are running


_thread = _Thread()


# -- levels --


def levels():
    """Return the open levels, outermost first."""
    return _thread.levels


def dual_levels():
    """Return the open levels that propagate tangents."""
    return tuple(level for level in _thread.levels if isinstance(level, Level))


def open_dual_levels():
    """Return the same with those along which nothing is propagated at the moment."""
    found = dual_levels()
    return found if _thread.paused is None else (*(each for each in _thread.paused if isinstance(each, Level)), *found)


def is_enabled():
    """Whether tangents are propagated, as far as there are dual levels."""
    return _thread.paused is None


def set_enabled(enabled):
    """Begin or stop to propagate tangents along the open dual levels."""
    if enabled == is_enabled():
        return
    flush()
    if enabled:
        before, now = _thread.paused or (), _thread.levels
        _thread.paused = None
        still = tuple(each for each in before if isinstance(each, Level) or each in now)
        open_only((*still, *(each for each in now if each not in still)))
    else:
        _thread.paused = _thread.levels
        open_only(tuple(each for each in _thread.levels if not isinstance(each, Level)))


def enter(level=None):
    """Open a level inside the others. Create it beforehand, to be able to `leave` it even after a KeyboardInterrupt."""
    flush()
    level = level or Level()
    _thread.levels += (level,)
    set_forward(True)
    return level


def open_only(levels):
    """Make these the only open levels. Callers must `flush` before, and restore the others afterwards."""
    _thread.levels = levels
    set_forward(bool(levels))


# -- the tangents of a tensor --


def tangent_of(t, level):
    """Return the tangent of a tensor at a level, or None."""
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
    flush()  # gives the part its samples now, while their batch is open
    return part


def directions_have_history():
    """Whether a tangent may have a history although its tensor has none: if a given direction has one."""
    return any(level.has_history for level in dual_levels())


def all_of(t):
    """Return {level: tangent} for the open levels, or None."""
    found = {level: _tangent(t, level) for level in dual_levels()}
    return {level: tangent for level, tangent in found.items() if tangent is not None} or None


def set_tangent(t, level, tangent):
    """Set a tensor's tangent at a level; that of a view is written into its base's."""
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
    registry["as_strided"]  # imports the family that has the private op `name`
    return apply(name, *args)


def _part(whole, base, view, splits_base, splits_view, flips):
    """Return the part of a tensor shaped like the base that the view covers."""
    part = _strided("strided_gather", apply("view_as_real", whole) if splits_base else whole, view, base)
    part = apply("view_as_complex", part) if splits_view else part
    return _flipped(part) if flips else part


def _flipped(t):
    return apply("conj_physical" if t.is_complex() else "neg", t)


def _with_part(whole, part, base, view, splits_base, splits_view, flips):
    """Return a tensor shaped like the base in which the view's part is replaced by `part`."""
    if flips:
        part = _flipped(part)
    if splits_base:
        whole = apply("view_as_real", whole)
    whole = _strided("strided_scatter", whole, apply("view_as_real", part) if splits_view else part, view, base)
    return apply("view_as_complex", whole) if splits_base else whole


def dual(t, tangent, level):
    """Return a tensor on the same memory with a tangent at a level, in addition to those of `t` at other levels."""
    out = _other(t, level)
    level.has_history |= tangent.requires_grad
    set_tangent(out, level, tangent)
    return out


def unpacked(t, level):
    """Return (a tensor on the same memory without its tangent at a level, that tangent or None)."""
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
    """Return the same values and tangents without history, except tangents for which `keeps(tangent)` is true."""
    flush()
    bare = internals.same_array(t)
    for level, tangent in (all_of(t) or {}).items():
        set_tangent(bare, level, tangent if keeps and keeps(tangent) else without_history(tangent, keeps))
    return bare


def _without_own_history(t):
    """Return the tensor without history, but keep the history that its tangents have from given directions."""
    return without_history(t, lambda _: directions_have_history())


Batch.without_history = staticmethod(_without_own_history)


def detach_samples(t, out):
    """In a batch, give `out`, which is `t.detach()`, the samples of `t` without their tangents at outer levels."""
    flush()
    levels = _thread.levels
    for i, level in enumerate(levels):
        if isinstance(level, Batch) and level.has(t):
            open_only(levels[:i])
            try:
                level.set_samples(out, level.samples(t).detach())
            finally:
                open_only(levels)


# -- tangents of values that hooks have packed --


def of_packed(t):
    """Return {level: tangent} of a tensor; None marks a batch in which it has samples."""
    batches = [level for level in _thread.levels if isinstance(level, Batch) and level.has(t)]
    packed = _taken()
    former = set_forward(True)  # it is off while the enclosing op is recorded
    try:
        tangents = all_of(t) or {}
        flush()
    finally:
        set_forward(former)
        _thread.packed = packed
    return tangents | dict.fromkeys(batches)


def of_packed_result(node, number):
    """Return the same for a result of the op being recorded, as a dictionary filled in later."""
    found: dict = {}
    _thread.packed = {**_thread.packed, id(node): [*_thread.packed.get(id(node), ()), (number, found)]}
    return found


def _taken():
    """Return and clear the notes about packed results of the op that has ended."""
    packed = _thread.packed
    if packed:
        _thread.packed = _NOTHING
    return packed


def join_tangents(t, found):
    """Set an unpacked tensor's tangents at open levels. Raises NoBatchingRule if its samples were lost."""
    flush()
    for level, tangent in found.items():
        if isinstance(level, Batch):
            if level in _thread.levels and not level.has(t):
                raise NoBatchingRule("? (a hook replaced a saved tensor)")
        elif level in _thread.levels:
            set_tangent(t, level, tangent)


# -- after an op --


def defer(node, flags, inputs, results):
    """Defer the tangents of an op's results until the next op. Earlier deferrals have been flushed."""
    _thread.deferred = node, flags, inputs, results


def deferred_node(result):
    """Return the node that will compute the tangent of this result, or None."""
    if _thread.deferred is not None and any(result is each for each in _thread.deferred[3]):
        return _thread.deferred[0]
    return None


def leave_to_base(result):
    """Cancel the deferred tangent of a result that has become a view."""
    if deferred_node(result) is not None:
        _thread.deferred = None


def flush():
    """Compute the samples and tangents of the last op's results."""
    step, deferred, packed = _thread.step, _thread.deferred, _taken()
    if step is None and deferred is None:
        return
    _thread.step = _thread.deferred = None
    modes = get_modes()
    try:
        if _thread.modes != modes:  # `no_grad` was entered or left since
            set_modes(_thread.modes)
        if step is not None:
            _follow(step, packed)
        if deferred is not None:
            node, flags, inputs, results = deferred
            _carry(node, flags, inputs, results, packed=packed)
    finally:
        set_modes(modes)


def before_write(step):
    """Flush before a tensor is changed, and forget a write that failed."""
    flush()
    _thread.written = _thread.writing = None
    if _has_batch():
        _thread.writing = step
        _check_write(step)


def begin_write(node, mask, flags, inputs, t):
    """Note an op that is about to change `t`; `inputs` contain its old value."""
    _thread.written = node, mask, flags, inputs, t


def written_node():
    """Return the node of the write in progress, or None."""
    return None if _thread.written is None else _thread.written[0]


def end_write(t, recorded):
    """Update the samples and tangents of `t` after a change. `recorded` is its node in the history."""
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
    """Compute the tangents of an op's results at each open level."""
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
    """Yield the tensors in which these nodes save results, with the results. They have no tangents of their own."""
    for node in nodes:
        for kept in () if node is None else kept_results(node):
            for result in results:
                if kept is not result and internals.own_array(kept) is internals.own_array(result):
                    yield kept, result


# -- samples of a batch (Note [Batches] in vmap_levels.py) --


def _has_batch():
    for level in _thread.levels:  # quicker than `any`; this runs for each op
        if isinstance(level, Batch):
            return True
    return False


take_levels(_thread, flush, _has_batch)


def note_step(step):
    """Note an op whose results get samples or tangents when the next op is recorded."""
    _thread.modes = get_modes()
    if _has_batch():
        _thread.step = step


def before_look(step):
    """Prepare an in-place change of a tensor's geometry, which its samples must follow."""
    flush()
    _thread.looking = None
    (t,) = step.outs
    if batch_of((t,))[0] is not None:
        _thread.looking = step.with_inputs((internals.same_array(t),))


def note_kept(result, slot, value):
    """Note a value that an op saves in addition to its inputs."""
    if _thread.step is not None and any(result is out for out in _thread.step.outs):
        _thread.step.kept[slot] = value


def note_kept_write(value):
    """Note a value that the write in progress will save in the third slot."""
    if _thread.writing is not None:
        _thread.writing.kept[2] = value
        _check_write(_thread.writing)


def batch_of(tensors):
    """Return (the innermost batch in which one of `tensors` has samples, the levels outside it), or (None, ())."""
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
    """Return `run()`, evaluated with only the levels outside a batch open."""
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
    """Apply to the samples what an op has done."""
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
    """Give `new` samples made by `made_of` from the samples of `t`, if there are any."""
    flush()
    batch, outside = batch_of((t,))
    if batch is None:
        return
    on_levels(outside, lambda: batch.set_samples(new, made_of(batch.samples(t))))


def keep_samples(t, copy):
    """Give a copy of `t`, which is about to be changed in place, the current samples of `t`."""
    _give_samples(t, copy, partial(apply, "clone"))


def view_samples(t, out, dtype):
    """In a batch, give `out`, which is `t.view(dtype)`, the samples of `t` as that dtype."""
    _give_samples(t, out, lambda samples: samples.view(dtype))


def values_of(t):
    """Return the array that holds the samples of `t` in all open batches, or its own array."""
    flush()
    batch, _ = batch_of((t,))
    while batch is not None:
        t = batch.held(t)
        batch, _ = batch_of((t,))
    return internals.memory_of(t)


def spread(t, blank):
    """Give `blank`, which was made like `t`, samples if `t` has them, so that it can be changed in place."""

    def copies(samples):
        return samples.new_empty((samples.shape[0], *blank.shape), dtype=blank.dtype).copy_(blank.detach())

    _give_samples(t, blank, copies)


def open_batch(batch):
    """Open a batch inside the other levels."""
    if not _has_batch():
        _thread.reads = {}
    enter(batch)


def close_batch(batch, results):
    """Close the innermost level, a batch, and return the samples of each result: a tensor, or None.

    Raises NoBatchingRule if an unrecorded op has read the values of a tensor with samples.
    """
    flush()
    found = [batch.samples(t) if isinstance(t, Tensor) else None for t in results]
    known = {internals.identity_of(t) for t in results if isinstance(t, Tensor)}
    for number, (t, name) in _thread.reads.items():
        if number not in known and batch.has(t):
            raise NoBatchingRule(f"{name}\n  it read a tensor of shape {tuple(t.shape)} and is not recorded")
    return found


def note_read(t):
    """Note that the array of a tensor is being accessed."""
    if _has_batch():
        _thread.reads[internals.identity_of(t)] = t, _running_op()


def _running_op():
    """Return the name of our function that the user's program or a module called; '?' if it is compiled."""
    name = outermost = "?"
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_ours(frame.f_code):
        code = frame.f_code
        outermost = code.co_name
        if f"{os.sep}_ops{os.sep}" in code.co_filename and "<locals>" not in code.co_qualname:  # not a decorator's
            name = code.co_name.removesuffix("_of_package")
        frame = frame.f_back
    return outermost if name == "?" else name


def has_samples(t):
    """Whether a tensor differs between the samples of an open batch."""
    flush()
    return batch_of((t,))[0] is not None


def refuse_samples(name, tensors):
    """Raise NoBatchingRule if one of these tensors differs between samples."""
    flush()
    if batch_of(tensors)[0] is not None:
        raise NoBatchingRule(name)


def check_read(t, in_condition):
    """Raise if the value to be read differs between samples."""
    flush()
    batch, _ = batch_of((t,))
    if batch is not None:
        raise batch.read_error(in_condition)


# -- restrictions on transformed functions --


def call_inside(func, *args, **kwargs):
    """Call a function inside a transform, which manages gradients itself."""
    check_before_backward(_check_backward)
    check_before_requires_grad(_check_requires_grad)
    depth = _thread.transforms
    try:
        _thread.transforms = depth + 1
        return func(*args, **kwargs)
    finally:
        _thread.transforms = depth


def in_transform():
    """Whether a transform of functions is running, `vmap` included."""
    return bool(_thread.transforms) or _has_batch()


def _check_backward():
    if in_transform():
        raise RuntimeError(messages.BACKWARD_IN_TRANSFORM)


def _check_requires_grad():
    if _thread.transforms and not is_ours(sys._getframe(1).f_code):
        check_no_transform()


def check_no_transform():
    """Raise if tensors are about to require grad inside a transform, which ignores such gradients."""
    if _thread.transforms:
        raise RuntimeError(messages.REQUIRES_GRAD_IN_TRANSFORM)
