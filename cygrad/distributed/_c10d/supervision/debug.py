"""How much is checked while collectives run."""

import os
from enum import Enum

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(Enum):
    """How much is checked: nothing more, what is cheap, or everything.

    >>> import cygrad
    >>> [level.name for level in cygrad.distributed.DebugLevel]
    ['OFF', 'INFO', 'DETAIL']
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_level = DebugLevel.OFF


def get_debug_level():
    """The level that is set. With `DETAIL` the calls of all ranks are compared before data moves.

    >>> import cygrad
    >>> cygrad.distributed.get_debug_level() in list(cygrad.distributed.DebugLevel)
    True
    """
    return _level


def set_debug_level(debug_level):
    """Set the level to a `DebugLevel`.

    >>> import cygrad.distributed as dist
    >>> before = dist.get_debug_level()
    >>> dist.set_debug_level(dist.DebugLevel.DETAIL)
    >>> dist.get_debug_level().name
    'DETAIL'
    >>> dist.set_debug_level(before)
    """
    global _level
    if not isinstance(debug_level, DebugLevel):
        raise TypeError(f"set_debug_level(): incompatible function arguments: {debug_level!r} is not a DebugLevel")
    _level = debug_level


def set_debug_level_from_env():
    """Set the level that the variable `TORCH_DISTRIBUTED_DEBUG` names; without it, `OFF`.

    `CYGRAD_DISTRIBUTED_DEBUG=1` is `DETAIL` by a shorter name.

    >>> import os
    >>> import cygrad.distributed as dist
    >>> os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
    >>> dist.set_debug_level_from_env()
    >>> dist.get_debug_level().name
    'INFO'
    >>> del os.environ["TORCH_DISTRIBUTED_DEBUG"]
    >>> dist.set_debug_level_from_env()
    """
    if os.environ.get("CYGRAD_DISTRIBUTED_DEBUG", "0") not in ("", "0"):
        set_debug_level(DebugLevel.DETAIL)
        return
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.\n  it is {name!r}")
    set_debug_level(DebugLevel[name])


set_debug_level_from_env()
