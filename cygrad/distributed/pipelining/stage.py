"""`PipelineStage`: a part of a model, and its neighbours in other processes."""

from contextlib import nullcontext
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.distributed._c10d.membership import _get_default_group, is_initialized
from cygrad.distributed.pipelining._channel import Channel, LocalChannel

__all__ = ["PipelineStage", "build_stage"]


class PipelineStage:
    """A part of a model, the stage `stage_index` of `num_stages`, in this process.

    Stages are spread over the processes of `group` in turn: process i has the stages i, i + group size and so on. A
    stage other than the first one takes as arguments what the one before it has returned, a tensor or a tuple of
    tensors. `input_args`, `output_args` and `dw_builder` are accepted and not needed.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), stage_index=0, num_stages=1, device=cygrad.device("cpu"))
    >>> ScheduleGPipe(stage, n_microbatches=2).step(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """

    def __init__(
        self, submodule, stage_index, num_stages, device, input_args=None, output_args=None, group=None, dw_builder=None
    ):
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        alone = num_stages == 1 and not is_initialized()
        self.group: Any = group if group is not None or alone else _get_default_group()
        self.group_rank, self.group_size = 0, 1
        if self.group is not None and num_stages > 1:
            self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}\n"
                "  to fix it: make a group of as many processes, or more stages"
            )
        self.stage_index_to_group_rank = {index: index % self.group_size for index in range(num_stages)}
        self._channels: dict = {}
        self._under_way: dict = {}  # microbatch: the inputs that require grad, and the outputs

    @property
    def is_first(self):
        """Whether this stage takes the arguments of the step."""
        return self.stage_index == 0

    @property
    def is_last(self):
        """Whether this stage returns the result of the step."""
        return self.stage_index == self.num_stages - 1

    def _connect(self, own):
        """Open the channels to the neighbours; `own` has the stages of this process by index."""
        if self._channels:
            return
        for neighbour in (self.stage_index - 1, self.stage_index + 1):
            if not 0 <= neighbour < self.num_stages:
                continue
            # activations go up, gradients down
            for goes_up in (True, False):
                is_outgoing = goes_up == (neighbour > self.stage_index)
                key = "up" if goes_up else "down", "out" if is_outgoing else "in"
                self._channels[key] = self._channel(own.get(neighbour), neighbour, goes_up)

    def _channel(self, local, neighbour, goes_up):
        other_end = ("up" if goes_up else "down", "in" if goes_up == (neighbour > self.stage_index) else "out")
        if local is not None:
            return local._channels.get(other_end) or LocalChannel()
        tag = 2 * min(self.stage_index, neighbour) + goes_up
        return Channel(self.group, self.stage_index_to_group_rank[neighbour], tag, self.device)

    def _compute(self, index, arguments, named, in_training):
        """Compute a microbatch, from arguments or from what the stage before has sent; returns the output."""
        if not self.is_first:
            arguments = self._channels["up", "in"].receive()
        output = self.submod(*arguments, **named)
        outputs = list(output) if isinstance(output, (tuple, list)) else [output]
        if not self.is_last:
            if not all(isinstance(each, Tensor) for each in outputs):
                kinds = ", ".join(type(each).__name__ for each in outputs)
                raise TypeError(
                    f"stage {self.stage_index} returns {kinds}; only tensors travel to the next stage\n"
                    "  to fix it: return a tensor or a tuple of tensors"
                )
            self._channels["up", "out"].send(outputs)
        if in_training:
            needed = [] if self.is_first else [each for each in arguments if each.requires_grad]
            self._under_way[index] = needed, [] if self.is_last else [each for each in outputs if each.requires_grad]
        return output

    def _go_back(self, index, loss: Any, is_last_of_step):
        """Go back through a microbatch: from its loss, or with the gradients that the next stage has sent."""
        inputs, outputs = self._under_way.pop(index)
        with self._synchronized(is_last_of_step):
            if self.is_last:
                if loss.requires_grad:
                    loss.backward()
            elif outputs:
                cygrad.autograd.backward(outputs, self._channels["down", "in"].receive())
        if inputs:
            gradients = [each.new_zeros(each.shape) if each.grad is None else each.grad for each in inputs]
            self._channels["down", "out"].send(gradients)

    def _synchronized(self, is_last_of_step):
        """A context in which wrappers for data parallelism exchange gradients only if no further microbatch follows."""
        if hasattr(self.submod, "set_requires_gradient_sync"):  # of `fully_shard`
            self.submod.set_requires_gradient_sync(is_last_of_step)
        elif not is_last_of_step and hasattr(self.submod, "no_sync"):
            return self.submod.no_sync()
        return nullcontext()

    def _finish(self):
        """End a step."""
        self._under_way.clear()
        for channel in self._channels.values():
            channel.finish()


def build_stage(stage_module, stage_index, pipe_info, device, group=None):
    """Return the `PipelineStage` of a module.

    >>> import cygrad
    >>> from types import SimpleNamespace
    >>> from cygrad.distributed.pipelining import build_stage
    >>> stage = build_stage(cygrad.nn.Linear(2, 1), 0, SimpleNamespace(num_stages=1), cygrad.device("cpu"))
    >>> stage.is_first, stage.is_last
    (True, True)
    """
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
