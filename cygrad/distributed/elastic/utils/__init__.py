"""Helpers of launchers: variables, ports, and texts with the rank of a process in them."""

import os
import sys
from string import Template

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.elastic.utils.distributed import get_socket_with_port

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name):
    """The value of a variable of the environment. Raises ValueError if it is not set.

    >>> from cygrad.distributed.elastic.utils import get_env_variable_or_raise
    >>> get_env_variable_or_raise("NO_SUCH_VARIABLE")
    Traceback (most recent call last):
        ...
    ValueError: Environment variable NO_SUCH_VARIABLE expected, but not set
    """
    if env_name not in os.environ:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return os.environ[env_name]


class macros:
    """Words in arguments that stand for what differs between processes.

    >>> from cygrad.distributed.elastic.utils import macros
    >>> macros.substitute(["--rank", macros.local_rank, 3], "1")
    ['--rank', '1', 3]
    """

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args, local_rank):
        """Return the arguments with the rank in place of `macros.local_rank`."""
        return [Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg for arg in args]


also_named(__name__, api=sys.modules[__name__])
