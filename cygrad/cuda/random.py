"""Seeds and states of the default generators of GPUs."""

from collections.abc import Iterable
from typing import Any

from cygrad._ops.random.generator import gpu_generator, seed_gpu
from cygrad.cuda.devices import _index, device_count, is_initialized


def manual_seed(seed: int) -> None:
    """Start the stream of the current GPU's generator that belongs to `seed`; without a GPU nothing happens."""
    seed_gpu(int(seed), _index(None) if is_initialized() else -1)


def manual_seed_all(seed: int) -> None:
    """Start the streams of the generators of all GPUs that belong to `seed`; without a GPU nothing happens."""
    seed_gpu(int(seed))


def seed() -> None:
    """Start the current GPU's generator on a stream that nobody can foresee."""
    gpu_generator(_index(None)).seed()


def seed_all() -> None:
    """Start the generators of all GPUs on one stream that nobody can foresee."""
    if device_count():
        seed_gpu(gpu_generator(_index(None)).seed())


def initial_seed() -> int:
    """The seed that the current GPU's stream was started with."""
    return gpu_generator(_index(None)).initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Where in its stream a GPU's generator is, as a tensor of bytes on the CPU."""
    return gpu_generator(_index(device)).get_state()


def get_rng_state_all() -> list[Any]:
    """The same of all GPUs."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Take a GPU's generator to a place that `get_rng_state` gave."""
    gpu_generator(_index(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """The same of all GPUs."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
