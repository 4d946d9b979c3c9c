"""Checkpoints as directories, which any number of processes can read. For now one process writes them."""

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.checkpoint import _storage
from cygrad.distributed.checkpoint import state_dict as state_dict
from cygrad.distributed.checkpoint._storage import *

__all__ = _storage.__all__

also_named(
    __name__,
    _consolidate_hf_safetensors=_storage,
    api=_storage,
    default_planner=_storage,
    filesystem=_storage,
    format_utils=_storage,
    hf_storage=_storage,
    metadata=_storage,
    optimizer=_storage,
    planner=_storage,
    state_dict_loader=_storage,
    state_dict_saver=_storage,
    stateful=_storage,
    storage=_storage,
)
