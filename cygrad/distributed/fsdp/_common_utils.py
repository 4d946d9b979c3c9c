"""The class of states of PyTorch's first FSDP. Modules sharded here have none: `fully_shard` changes their class."""

from __future__ import annotations

from cygrad.distributed._composable_state import _State


class _FSDPState(_State):
    """A state that says that a module is sharded."""
