"""Random numbers of Intel's GPUs, of which there are none: seeding does nothing."""

from cygrad.backends import _absent

_ANSWERS = {"get_rng_state_all": [], "manual_seed": None, "manual_seed_all": None, "seed": None, "seed_all": None}
_ANSWERS |= {"set_rng_state": None, "set_rng_state_all": None}
_REFUSED = ("get_rng_state", "initial_seed")

globals().update(_absent.answering(__name__, _ANSWERS))
globals().update(
    _absent.refusing(__name__, dict.fromkeys(_REFUSED, (AssertionError, "Torch not compiled with XPU enabled")))
)
__all__ = [*_ANSWERS, *_REFUSED]
