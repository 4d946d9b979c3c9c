"""Settings of all pipes that a pipe is made from: shuffling, seeds, and the part that each worker reads.

They reach the pipes that have methods for them: `set_shuffle`, `set_seed`, `apply_sharding`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cygrad
from cygrad.utils.data.datapipes import IterDataPipe, MapDataPipe

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: Any) -> list[Any]:
    """Return a pipe and all that it is made from: the pipes among its attributes, theirs, and so on.

    >>> from cygrad.utils.data import IterDataPipe, graph_settings
    >>> class Pipe(IterDataPipe):
    ...     def __init__(self, *sources):
    ...         self.sources = sources
    >>> len(graph_settings.get_all_graph_pipes(Pipe(Pipe(), Pipe())))
    3
    """
    found: dict[int, Any] = {}
    waiting = [graph]
    while waiting:
        pipe = waiting.pop()
        if id(pipe) not in found:
            found[id(pipe)] = pipe
            waiting += [value for value in vars(pipe).values() for value in _pipes(value)]
    return list(found.values())


def _pipes(value: Any) -> Iterator[Any]:
    """Yield the pipes in the value of an attribute."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _pipes(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _pipes(item)


def _each(pipe: Any, method: str) -> list[Any]:
    return [getattr(each, method) for each in get_all_graph_pipes(pipe) if callable(getattr(each, method, None))]


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, *group: Any) -> Any:
    """Have pipes give only one part of `num_of_instances`; returns the pipe.

    >>> from cygrad.utils.data import IterDataPipe
    >>> from cygrad.utils.data.graph_settings import apply_sharding
    >>> class Numbers(IterDataPipe):
    ...     instances, instance = 1, 0
    ...     def is_shardable(self):
    ...         return True
    ...     def apply_sharding(self, instances, instance):
    ...         self.instances, self.instance = instances, instance
    ...     def __iter__(self):
    ...         return iter(range(self.instance, 6, self.instances))
    >>> list(apply_sharding(Numbers(), 2, 1))
    [1, 3, 5]
    """
    for apply in _each(datapipe, "apply_sharding"):
        apply(num_of_instances, instance_id, *group)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn shuffling of pipes on or off; None changes nothing. Returns the pipe.

    >>> from cygrad.utils.data import IterDataPipe
    >>> from cygrad.utils.data.graph_settings import apply_shuffle_settings
    >>> pipe = IterDataPipe()
    >>> apply_shuffle_settings(pipe, shuffle=False) is pipe
    True
    """
    for set_shuffle in _each(datapipe, "set_shuffle") if shuffle is not None else ():
        set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """Deprecated name of `apply_random_seed`.

    >>> import cygrad
    >>> import warnings
    >>> from cygrad.utils.data import IterDataPipe
    >>> from cygrad.utils.data.graph_settings import apply_shuffle_seed
    >>> pipe = IterDataPipe()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     apply_shuffle_seed(pipe, cygrad.Generator()) is pipe
    True
    """
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Seed each pipe with its own number, drawn from `rng`; returns the pipe.

    >>> import cygrad
    >>> from cygrad.utils.data import IterDataPipe
    >>> from cygrad.utils.data.graph_settings import apply_random_seed
    >>> pipe = IterDataPipe()
    >>> apply_random_seed(pipe, cygrad.Generator()) is pipe
    True
    """
    for set_seed in _each(datapipe, "set_seed"):
        set_seed(int(cygrad.empty((), dtype=cygrad.int64).random_(generator=rng).item()))
    return datapipe
