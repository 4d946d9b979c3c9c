"""The default random number generator: its seed and its state.

>>> import cygrad
>>> cygrad.random.manual_seed(1).initial_seed()
1
"""

from cygrad._ops.random.generator import (
    Generator,
    default_generator,
    drawing_from,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "default_generator",
    "drawing_from",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
