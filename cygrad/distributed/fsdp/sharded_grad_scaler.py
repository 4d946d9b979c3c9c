"""`ShardedGradScaler`, which looks for overflows in the gradients of all processes."""

import cygrad
from cygrad.amp import GradScaler
from cygrad.distributed._c10d.membership import group, is_initialized
from cygrad.distributed._c10d.reduce_ops import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """`amp.GradScaler` for parameters spread over processes: a step is left out by all if one has an overflow.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> scaler = ShardedGradScaler(device="cpu", init_scale=1024.0)
    >>> scaler.scale(model(cygrad.ones(3, 2)).sum()).backward()
    >>> scaler.unscale_(optimizer)
    >>> model.weight.grad
    tensor([[3., 3.]])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        backoff_factor=0.5,
        growth_factor=2.0,
        growth_interval=2000,
        enabled=True,
        process_group=None,
    ):
        super().__init__(
            device=device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = process_group

    def unscale_(self, optimizer):
        """Divide the gradients by the scale. All processes call this, and learn of infinite or NaN ones in any."""
        super().unscale_(optimizer)
        processes = self.process_group or (group.WORLD if is_initialized() else None)
        if not self._enabled or processes is None or processes.size() == 1:
            return
        state = self._per_optimizer_states[id(optimizer)]
        own = -1 if state["nonfinite"] is None else int(bool(state["nonfinite"]))
        found = cygrad.tensor([own], device=optimizer.param_groups[0]["params"][0].device)
        processes.allreduce([found], ReduceOp.MAX).wait()
        state["nonfinite"] = None if found.item() < 0 else int(found.item())
