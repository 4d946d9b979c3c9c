"""Seeds and states of the default GPU generators."""

from collections.abc import Iterable
from typing import Any

from cygrad._ops.random.generator import gpu_generator, seed_gpu
from cygrad.cuda.devices import _index, device_count, is_initialized

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; a no-op without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.manual_seed(7)
    >>> x = cygrad.rand(2, device="cuda")
    >>> cygrad.cuda.manual_seed(7)
    >>> cygrad.equal(x, cygrad.rand(2, device="cuda"))
    True
    """
    seed_gpu(int(seed), _index(None) if is_initialized() else -1)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; a no-op without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.manual_seed_all(7)
    >>> cygrad.cuda.initial_seed()
    7
    """
    seed_gpu(int(seed))


def seed() -> None:
    """Seed the current GPU's generator unpredictably.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.seed()
    """
    gpu_generator(_index(None)).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with the same unpredictable seed.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.seed_all()
    """
    if device_count():
        seed_gpu(gpu_generator(_index(None)).seed())


def initial_seed() -> int:
    """Return the seed of the current GPU's generator.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.manual_seed(7)
    >>> cygrad.cuda.initial_seed()
    7
    """
    return gpu_generator(_index(None)).initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of a GPU's generator, as a tensor of bytes on the CPU.

    >>> import cygrad  # on a machine with a GPU
    >>> state = cygrad.cuda.get_rng_state()
    >>> x = cygrad.rand(2, device="cuda")
    >>> cygrad.cuda.set_rng_state(state)
    >>> cygrad.equal(x, cygrad.rand(2, device="cuda"))
    True
    """
    return gpu_generator(_index(device)).get_state()


def get_rng_state_all() -> list[Any]:
    """Return the states of all GPUs' generators.

    >>> import cygrad  # on a machine with a GPU
    >>> len(cygrad.cuda.get_rng_state_all()) == cygrad.cuda.device_count()
    True
    """
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restore a state of a GPU's generator returned by `get_rng_state`.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.set_rng_state(cygrad.cuda.get_rng_state(), "cuda:0")
    """
    gpu_generator(_index(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Restore the states of all GPUs' generators.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.set_rng_state_all(cygrad.cuda.get_rng_state_all())
    """
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
