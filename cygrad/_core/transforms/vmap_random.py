"""Random numbers inside of `vmap`.

An op that draws numbers does so for the first sample, as all ops do (Note [Batches] in batches.py). With
`randomness="different"` it tells then how to draw for all (`draw_for_samples`), or its batching rule does it. Batches
count what was drawn and not drawn for all: if anything was, `vmap` takes one sample after the other.
"""

from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.transforms.forward_mode import flush, levels
from cygrad._core.transforms.vmap_levels import Batch


def note_draw():
    """Note that numbers are about to be drawn, for one sample so far."""
    for batch in _batches():
        batch.draws_for_one += 1


def _batches():
    return [level for level in levels() if isinstance(level, Batch)]


def draw_for_samples(t, draw):
    """Give each sample of the open batches numbers of its own in `t`, whose own were drawn just now.

    `draw(shape)` draws an array for them, which has the dimensions of the batches in front. Returns `t`.
    """
    flush()
    batches = _batches()
    different = [batch for batch in batches if batch.randomness == "different"]
    if not all(batch.size for batch in different):
        return t
    counts = [batch.draws_for_one for batch in batches]
    if different:
        held = tensor_of(draw((*[batch.size for batch in different], *memory_of(t).shape)))
        for batch in different:
            inner = t if batch is different[-1] else tensor_of(memory_of(held)[0].copy())
            batch.set_samples(inner, held)
            held = inner
    for batch, count in zip(batches, counts, strict=True):
        batch.draws_for_one = count - 1
    return t
