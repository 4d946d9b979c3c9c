"""The options by which launchers tie a process to the processors next to its GPU.

A launcher of cygrad starts one process and leaves its place to the operating system: it takes options, and raises if
they ask for more. `numactl` ties a process from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["AffinityMode", "NumaOptions"]


class AffinityMode(str, Enum):  # noqa: UP042, its text is PyTorch's
    """Which processors a process is tied to: those of a node, of a socket, a share of a node's, or a group's.

    >>> from cygrad.numa.binding import AffinityMode
    >>> [mode.name for mode in AffinityMode]
    ['NODE', 'SOCKET', 'EXCLUSIVE', 'CORE_COMPLEX']
    """

    NODE = "node"
    SOCKET = "socket"
    EXCLUSIVE = "exclusive"
    CORE_COMPLEX = "core-complex"


@dataclass(frozen=True)
class NumaOptions:
    """How to tie a process, and whether to go on without where it fails.

    >>> from cygrad.numa.binding import AffinityMode, NumaOptions
    >>> NumaOptions(AffinityMode.NODE).should_fall_back_if_binding_fails
    False
    """

    affinity_mode: AffinityMode
    should_fall_back_if_binding_fails: bool = False


def _refuse(options: NumaOptions | None) -> None:
    """Raise NotImplementedError if a process is to be tied."""
    if options is not None and not options.should_fall_back_if_binding_fails:
        raise NotImplementedError(
            "torch.numa.binding: cygrad ties no processes to processors\n"
            "  start the program by `numactl --cpunodebind=0 --membind=0 python ...`"
        )


def _maybe_wrap_command_args_with_numa_binding(
    command_args: tuple[str, ...], *, gpu_index: int, numa_options: NumaOptions | None
) -> tuple[str, ...]:
    """Return the command as it is. Raises NotImplementedError for options that do not allow that."""
    _refuse(numa_options)
    return command_args


def _maybe_wrap_with_numa_binding(
    func: Callable[..., Any], *, gpu_index: int, numa_options: NumaOptions | None
) -> Callable[..., Any]:
    """Return the function as it is. Raises NotImplementedError for options that do not allow that."""
    _refuse(numa_options)
    return func


def _maybe_apply_numa_binding_to_current_process(*, gpu_index: int, numa_options: NumaOptions | None) -> None:
    """Do nothing. Raises NotImplementedError for options that do not allow that."""
    _refuse(numa_options)
