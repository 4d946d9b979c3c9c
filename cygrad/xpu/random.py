"""Random numbers of Intel's GPUs, which cygrad does not use: seeding does nothing."""

from typing import Any

from cygrad.backends import _absent

_SEEDING = ("manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all")
_ANSWERS: dict[str, Any] = {"get_rng_state_all": [], **dict.fromkeys(_SEEDING)}
_REFUSED = ("get_rng_state", "initial_seed")

globals().update(_absent.answering(__name__, _ANSWERS))
globals().update(
    _absent.refusing(__name__, dict.fromkeys(_REFUSED, (AssertionError, "Torch not compiled with XPU enabled")))
)
__all__ = [*_ANSWERS, *_REFUSED]
