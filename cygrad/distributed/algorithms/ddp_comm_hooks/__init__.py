"""Hooks that decide how `DistributedDataParallel` reduces gradients: `model.register_comm_hook(state, hook)`."""

from enum import Enum

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from cygrad.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_localSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]

also_named(__name__, debugging_hooks=default_hooks)


class DDPCommHookType(Enum):
    """The hooks by name.

    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
    >>> [kind.name for kind in DDPCommHookType][:3]
    ['ALLREDUCE', 'FP16_COMPRESS', 'BF16_COMPRESS']
    """

    ALLREDUCE = (default_hooks.allreduce_hook,)
    FP16_COMPRESS = (default_hooks.fp16_compress_hook,)
    BF16_COMPRESS = (default_hooks.bf16_compress_hook,)
    POWER_SGD = (powerSGD_hook.powerSGD_hook,)
    BATCHED_POWER_SGD = (powerSGD_hook.batched_powerSGD_hook,)
    NOOP = (default_hooks.noop_hook,)


def register_ddp_comm_hook(comm_hook_type, model, state=None):
    """Register a hook by its `DDPCommHookType`.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> register_ddp_comm_hook(DDPCommHookType.ALLREDUCE, model)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """
    (hook,) = comm_hook_type.value
    model.register_comm_hook(state, hook)
