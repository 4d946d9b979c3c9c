"""Local SGD after a while: gradients are then averaged within subgroups only, and models now and then."""

from cygrad.distributed._c10d.groups import GroupMember
from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged, noop_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of `post_localSGD_hook`: gradients are averaged over `process_group` for `start_localSGD_iter`
    iterations, and then over `subgroup`, if `post_local_gradient_allreduce`."""

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
    """Average the gradients over the group of `state` that its iteration asks for."""
    is_local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not is_local:
        return averaged(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(state, bucket)
    return averaged(state.subgroup if state.subgroup is not None else GroupMember.WORLD, bucket.buffer())
