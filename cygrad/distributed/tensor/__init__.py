"""Tensors spread over a device mesh. In a mesh of one process each is whole, whatever its placements say."""

from importlib import import_module as _import_module

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.device_mesh import DeviceMesh as DeviceMesh
from cygrad.distributed.device_mesh import init_device_mesh as init_device_mesh
from cygrad.distributed.tensor import _dtensor, placement_types
from cygrad.distributed.tensor._dtensor import (
    DTensor,
    distribute_module,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from cygrad.distributed.tensor.placement_types import DTensorSpec as _DTensorSpec
from cygrad.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from cygrad.serialization._safe_globals import add_own_globals as _add_own_globals

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip

also_named(
    __name__,
    _api=_dtensor,
    _dtensor_spec=placement_types,
    _utils=_dtensor,
    device_mesh=_import_module("cygrad.distributed.device_mesh"),
)

_add_own_globals(DTensor, DeviceMesh, Partial, Replicate, Shard, _DTensorSpec)  # so that files can have DTensors


def __getattr__(name):
    if name not in ("debug", "experimental", "parallel"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")
