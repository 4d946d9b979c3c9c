"""The module in which PyTorch defines process groups and collectives: libraries import from it, also private names."""

from cygrad import device
from cygrad.distributed._c10d import (
    backends,
    collectives,
    errors,
    groups,
    membership,
    objects,
    options,
    point_to_point,
    process_group,
    stores,
)
from cygrad.distributed._c10d.backends import *
from cygrad.distributed._c10d.coalescing import _coalescing_manager as _coalescing_manager
from cygrad.distributed._c10d.coalescing import _CoalescingManager as _CoalescingManager
from cygrad.distributed._c10d.collectives import *
from cygrad.distributed._c10d.collectives import _all_gather_base as _all_gather_base
from cygrad.distributed._c10d.collectives import _reduce_scatter_base as _reduce_scatter_base
from cygrad.distributed._c10d.errors import *
from cygrad.distributed._c10d.groups import *
from cygrad.distributed._c10d.groups import _set_pg_timeout as _set_pg_timeout
from cygrad.distributed._c10d.membership import *
from cygrad.distributed._c10d.membership import _get_default_group as _get_default_group
from cygrad.distributed._c10d.membership import _get_default_store as _get_default_store
from cygrad.distributed._c10d.membership import _get_process_group_name as _get_process_group_name
from cygrad.distributed._c10d.membership import _rank_not_in_group as _rank_not_in_group
from cygrad.distributed._c10d.membership import _resolve_process_group as _resolve_process_group
from cygrad.distributed._c10d.objects import *
from cygrad.distributed._c10d.options import *
from cygrad.distributed._c10d.point_to_point import *
from cygrad.distributed._c10d.process_group import *
from cygrad.distributed._c10d.reduce_ops import ReduceOp, reduce_op, supports_complex
from cygrad.distributed._c10d.stores import *
from cygrad.distributed._c10d.supervision import debug
from cygrad.distributed._c10d.supervision.debug import *
from cygrad.distributed._c10d.work import Work
from cygrad.distributed.constants import default_pg_nccl_timeout as default_pg_nccl_timeout
from cygrad.distributed.constants import default_pg_timeout as default_pg_timeout
from cygrad.distributed.rendezvous import register_rendezvous_handler, rendezvous

_PARTS = (
    backends, collectives, debug, errors, groups, membership, objects, options, point_to_point,
    process_group, stores,
)  # fmt: skip
__all__ = [
    "ReduceOp", "Work", "reduce_op", "register_rendezvous_handler", "rendezvous", "supports_complex",
    *(name for module in _PARTS for name in module.__all__),
]  # fmt: skip

STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"


def _get_default_timeout(backend):
    """How long collectives of a back end wait unless told otherwise."""
    return default_pg_nccl_timeout if backend == Backend.NCCL else default_pg_timeout


def _get_pg_default_device(group=None):
    """The device for the tensors of a group that serves one kind of device; the CPU if it serves several."""
    kinds = (group or _get_default_group())._device_types
    return kinds[0] if len(kinds) == 1 or all(each.type != "cpu" for each in kinds) else device("cpu")
