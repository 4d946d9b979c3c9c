"""Functions that change modules in place: `fully_shard`, `replicate` and `checkpoint`."""

import sys

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed._composable._functions import _get_registry as _get_registry
from cygrad.distributed._composable._functions import checkpoint, contract, replicate
from cygrad.distributed.fsdp import fully_shard as fully_shard

__all__ = ["checkpoint", "contract", "replicate"]

also_named(
    __name__,
    fsdp=sys.modules["cygrad.distributed.fsdp"],
    checkpoint_activation=sys.modules[f"{__name__}._functions"],
)
sys.modules[f"{__name__}.contract"] = sys.modules[f"{__name__}.replicate"] = sys.modules[f"{__name__}._functions"]
