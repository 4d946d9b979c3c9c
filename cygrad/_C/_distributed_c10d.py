"""Process groups, stores and reductions by the name of PyTorch's compiled module; they are those of `distributed`."""

from datetime import timedelta
from typing import Any

from cygrad.distributed import distributed_c10d
from cygrad.distributed.distributed_c10d import *  # noqa: F403
from cygrad.distributed.distributed_c10d import _resolve_process_group as _resolve_process_group

__all__ = [name for name in distributed_c10d.__all__ if name[0].isupper()]

_DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024
_DEFAULT_NO_TIMEOUT = timedelta(milliseconds=-1)


def __getattr__(name: str) -> Any:
    return getattr(distributed_c10d, name)
