"""Autocast around captured steps: the settings that a step runs with, and the casts of parameters that it leaves.

Note [Casts]
------------
Within a block of autocast, the first use of a parameter casts it, and later ones use the same cast, until the block
ends. A step that is called in such a block therefore leaves casts in the thread's cache. To its program these are
further results. A replay puts them there, so that what follows in the block uses them, and gradients are summed as in
eager steps. A step whose parameters have been cast before in the block runs as it is written: it would use these casts.
"""

from contextlib import contextmanager

from cygrad._core.registry.autocast import Cast, note_user, state


def situation():
    """Return what this thread's ops are cast by, or None if it is in no block of autocast."""
    if not (state.cpu[0] or state.cuda[0] or state.nesting or state.keeper is not None or state.is_casting):
        return None
    return state.cpu, state.cuda, state.cache_enabled, state.nesting > 0, state.keeper, state.is_casting


def may_be_noted():
    """Whether steps can be captured as ops are cast now."""
    return state.keeper is None and not state.is_casting and not state.cuda[0]


def casts_now():
    """Whether this thread's ops may be cast or kept."""
    return bool(state.cpu[0] or state.cuda[0] or state.keeper is not None)


def situation_of_pass():
    """Return the same for a backward pass, which enters no blocks of its own."""
    return situation() if casts_now() else None


def known():
    """Return the addresses of the parameters whose casts are in the cache. Forget those that are not used any more."""
    for address, cast in list(state.cache.items()):
        if not cast.holds(cast.value, cast.dtype):
            del state.cache[address]
    return set(state.cache)


def added(before):
    """Return the casts in the cache that were not there `before`, in order."""
    now = known()
    return [cast for address, cast in state.cache.items() if address in now and address not in before]


def are_cold(values):
    """Whether no casts of these parameters are in the cache."""
    cache = state.cache
    if not cache:
        return True
    for value in values:
        cast = cache.get(id(value))
        if cast is not None and cast.value is value and cast.holds(value, cast.dtype):
            return False
    return True


def put(casts, tensors):
    """Have `tensors` used for the parameters in `casts` until the block of autocast ends."""
    for cast, tensor in zip(casts, tensors):
        new = Cast(cast.value, cast.dtype)
        new.tensor, new.is_noted = tensor, True
        state.cache.pop(id(cast.value), None)
        state.cache[id(cast.value)] = new


@contextmanager
def within(found):
    """A block that casts as `situation` said once, with a cache of its own; None: that casts nothing."""
    place = state.__dict__
    names = "cpu", "cuda", "cache_enabled", "nesting", "keeper", "is_casting", "cache", "order"
    former = {name: place[name] for name in names}
    note_user(True)
    try:
        if found is None:
            found = (False, state.cpu[1]), (False, state.cuda[1]), state.cache_enabled, False, None, False
        cpu, cuda, cache_enabled, is_nested, keeper, is_casting = found
        place.update(cpu=cpu, cuda=cuda, cache_enabled=cache_enabled, nesting=int(is_nested))
        place.update(keeper=keeper, is_casting=is_casting)
        place.update(cache={}, order=[])
        yield
    finally:
        place.update(former)
        note_user()
