"""Local SGD after a while: gradients are then averaged within subgroups only, and models now and then."""

from cygrad.distributed._c10d.membership import GroupMember
from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged, noop_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of `post_localSGD_hook`: gradients are averaged over `process_group` for `start_localSGD_iter`
    iterations, and then over `subgroup`, if `post_local_gradient_allreduce`.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> state = local.PostLocalSGDState(dist.group.WORLD, dist.new_group([0]), start_localSGD_iter=100)
    >>> model.register_comm_hook(state, local.post_localSGD_hook)  # which calls state.maybe_increase_iter(bucket)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> state.iter
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket):
        """Count the iteration when its last bucket has arrived."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state, bucket):
    """Average the gradients over the group of `state` that its iteration asks for.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> state = local.PostLocalSGDState(dist.group.WORLD, dist.new_group([0]), start_localSGD_iter=1)
    >>> model.register_comm_hook(state, local.post_localSGD_hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """
    is_local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not is_local:
        return averaged(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(state, bucket)
    return averaged(state.subgroup if state.subgroup is not None else GroupMember.WORLD, bucket.buffer())
