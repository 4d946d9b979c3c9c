"""Random numbers inside `vmap`.

An op that draws random numbers does so for the first sample, like all ops (Note [Batches] in vmap_levels.py). With
`randomness="different"` it then passes a function that draws for all samples (`draw_for_samples`), or its batching rule
does so: from the numbers that the first sample has got (`take_back`), as PyTorch does not draw for it alone. Batches
count the draws that were made for one sample only: if there are any, `vmap` falls back to processing one sample after
the other.
"""

from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.transforms.forward_mode import flush, levels
from cygrad._core.transforms.vmap_levels import Batch


def note_draw(generator):
    """Note that numbers are about to be drawn, so far for one sample only: from this generator, None for a GPU's."""
    flush()  # what ops before this one draw for all samples comes first
    for batch in _batches():
        batch.draws_for_one += 1
        if batch.randomness == "different":
            batch.before_draw = None if generator is None else (generator, generator.draws, generator.get_state())


def take_back(batch):
    """Set the generator back to where it was before the last draw, unless another thread has drawn from it since."""
    if batch.before_draw is not None:
        generator, draws, state = batch.before_draw
        batch.before_draw = None
        if generator.draws - draws <= 1:  # a generator that was named does not count
            generator.set_state(state)


def _batches():
    return [level for level in levels() if isinstance(level, Batch)]


def draw_for_samples(t, draw):
    """Give each sample of the open batches its own random numbers in `t`, whose own were just drawn.

    `draw(shape)` draws an array with the leading dimensions of the batches. Returns `t`.
    """
    flush()
    batches = _batches()
    different = [batch for batch in batches if batch.randomness == "different"]
    if not all(batch.size for batch in different):
        return t
    counts = [batch.draws_for_one for batch in batches]
    if different:
        take_back(different[-1])
        held = tensor_of(draw((*[batch.size for batch in different], *memory_of(t).shape)))
        for batch in different:
            inner = t if batch is different[-1] else tensor_of(memory_of(held)[0].copy())
            batch.set_samples(inner, held)
            held = inner
    for batch, count in zip(batches, counts, strict=True):
        batch.draws_for_one = count - 1
    return t
