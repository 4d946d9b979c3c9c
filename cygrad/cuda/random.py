"""Seeds and states of the default GPU generators."""

from collections.abc import Iterable
from typing import Any

from cygrad._ops.random.generator import gpu_generator, seed_gpu
from cygrad.cuda.devices import _index, device_count, is_initialized


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; a no-op without a GPU."""
    seed_gpu(int(seed), _index(None) if is_initialized() else -1)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; a no-op without a GPU."""
    seed_gpu(int(seed))


def seed() -> None:
    """Seed the current GPU's generator unpredictably."""
    gpu_generator(_index(None)).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with the same unpredictable seed."""
    if device_count():
        seed_gpu(gpu_generator(_index(None)).seed())


def initial_seed() -> int:
    """Return the seed of the current GPU's generator."""
    return gpu_generator(_index(None)).initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of a GPU's generator, as a tensor of bytes on the CPU."""
    return gpu_generator(_index(device)).get_state()


def get_rng_state_all() -> list[Any]:
    """Return the states of all GPUs' generators."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restore a state of a GPU's generator returned by `get_rng_state`."""
    gpu_generator(_index(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Restore the states of all GPUs' generators."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
