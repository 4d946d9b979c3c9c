"""What a `DistributedDataParallel` does in a process that is out of batches while others are not."""

import cygrad
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed._data_parallel.agreement import send
from cygrad.distributed.algorithms.join import Join, JoinHook

__all__ = ["DataParallelJoinHook", "agree_before_forward", "maximum"]


def maximum(group, device, *values):
    """The maxima over all processes of some integers."""
    tensor = cygrad.tensor(values, dtype=cygrad.int64, device=device)
    group.allreduce([tensor], ReduceOp.MAX).wait()
    return tensor.tolist()


def agree_before_forward(model):
    """Tell the others that this process has a batch, and whether it will reduce gradients.

    Returns the rank whose buffers all take.
    """
    active = Join.notify_join_context(model)
    if model.average == "sum" or not model._divide_by_initial_world_size:
        model._reducer.divisor = active
    group = model.process_group
    return maximum(group, model.device, int(model.require_backward_grad_sync), group.rank())[1]


class DataParallelJoinHook(JoinHook):
    """Takes part in the reductions of the others, with zeros."""

    def __init__(self, model, divide_by_initial_world_size=True, **_):
        if hasattr(model._reducer, "shards"):
            raise RuntimeError(
                "distributed.deterministic(True): processes have batches as `my_shards` says, without join"
            )
        self.model = model
        model._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self):
        """Take part in one iteration."""
        model = self.model
        will_reduce, root = maximum(model.process_group, model.device, 0, -1)
        if model.will_sync_module_buffers():
            model._sync_buffers(root)
        if will_reduce:
            model._reducer.accompany()

    def post_hook(self, is_last_joiner):
        """Take over the module of a process that has had the most batches."""
        model = self.model
        (root,) = maximum(model.process_group, model.device, model.process_group.rank() if is_last_joiner else -1)
        with cygrad.no_grad():
            send([*model.module.parameters(), *model._module_buffers()], model.process_group, root)
        model._reducer.divisor = None
