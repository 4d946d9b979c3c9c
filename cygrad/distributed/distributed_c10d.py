"""The module in which PyTorch defines process groups and collectives: libraries import from it, also private names."""

from cygrad import device
from cygrad.distributed._c10d import collectives, debug, errors, groups, objects, process_group, stores
from cygrad.distributed._c10d.collectives import *
from cygrad.distributed._c10d.collectives import _all_gather_base as _all_gather_base
from cygrad.distributed._c10d.collectives import _coalescing_manager as _coalescing_manager
from cygrad.distributed._c10d.collectives import _CoalescingManager as _CoalescingManager
from cygrad.distributed._c10d.collectives import _reduce_scatter_base as _reduce_scatter_base
from cygrad.distributed._c10d.debug import *
from cygrad.distributed._c10d.errors import *
from cygrad.distributed._c10d.groups import *
from cygrad.distributed._c10d.groups import _get_default_group as _get_default_group
from cygrad.distributed._c10d.groups import _get_default_store as _get_default_store
from cygrad.distributed._c10d.groups import _get_process_group_name as _get_process_group_name
from cygrad.distributed._c10d.groups import _rank_not_in_group as _rank_not_in_group
from cygrad.distributed._c10d.groups import _resolve_process_group as _resolve_process_group
from cygrad.distributed._c10d.objects import *
from cygrad.distributed._c10d.process_group import *
from cygrad.distributed._c10d.reduce_ops import ReduceOp, reduce_op, supports_complex
from cygrad.distributed._c10d.stores import *
from cygrad.distributed._c10d.work import Work
from cygrad.distributed.constants import default_pg_nccl_timeout as default_pg_nccl_timeout
from cygrad.distributed.constants import default_pg_timeout as default_pg_timeout
from cygrad.distributed.rendezvous import register_rendezvous_handler, rendezvous

__all__ = [
    "ReduceOp", "Work", "reduce_op", "register_rendezvous_handler", "rendezvous", "supports_complex",
    *(name for module in (collectives, debug, errors, groups, objects, process_group, stores)
      for name in module.__all__),
]  # fmt: skip

STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"


def _get_default_timeout(backend):
    """How long collectives of a back end wait unless told otherwise."""
    return default_pg_nccl_timeout if backend == process_group.Backend.NCCL else default_pg_timeout


def _get_pg_default_device(group=None):
    """The device for the tensors of a group that serves one kind of device; the CPU if it serves several."""
    kinds = (group or _get_default_group())._device_types
    return kinds[0] if len(kinds) == 1 or all(each.type != "cpu" for each in kinds) else device("cpu")
