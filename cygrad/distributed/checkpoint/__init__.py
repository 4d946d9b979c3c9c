"""Checkpoints as directories, which any number of processes write, and any other number can read."""

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.checkpoint import _commit, _planning, _saving, _storage
from cygrad.distributed.checkpoint import state_dict as state_dict
from cygrad.distributed.checkpoint._commit import CheckpointException
from cygrad.distributed.checkpoint._planning import *
from cygrad.distributed.checkpoint._saving import *
from cygrad.distributed.checkpoint._storage import *

__all__ = ["CheckpointException", *_planning.__all__, *_saving.__all__, *_storage.__all__]

also_named(
    __name__,
    _consolidate_hf_safetensors=_storage,
    default_planner=_planning,
    filesystem=_storage,
    format_utils=_saving,
    hf_storage=_storage,
    metadata=_planning,
    optimizer=_saving,
    planner=_planning,
    state_dict_loader=_saving,
    state_dict_saver=_saving,
    stateful=_planning,
    storage=_storage,
    api=_commit,
)
