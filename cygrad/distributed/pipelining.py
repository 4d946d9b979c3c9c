"""Pipelines: a model as stages, through which parts of each batch pass. One process has one stage."""

import sys
from enum import Enum

import cygrad
from cygrad import Tensor
from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed._c10d.module_names import also_named

__all__ = [
    "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage", "pipe_split", "pipeline",
]  # fmt: skip


class SplitPoint(Enum):
    """Whether a model is cut before or after a module.

    >>> from cygrad.distributed.pipelining import SplitPoint
    >>> [point.name for point in SplitPoint]
    ['BEGINNING', 'END']
    """

    BEGINNING = 1
    END = 2


def pipe_split():
    """Mark where a model is cut into stages. Has no effect when it is called.

    >>> from cygrad.distributed.pipelining import pipe_split
    >>> pipe_split()
    """


def pipeline(module, mb_args, mb_kwargs=None, split_spec=None, split_policy=None):
    """Cut a model into stages automatically. Raises RuntimeError: that is for several processes.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import pipeline
    >>> pipeline(cygrad.nn.Linear(2, 1), mb_args=(cygrad.ones(3, 2),))
    Traceback (most recent call last):
        ...
    RuntimeError: pipeline(), which cuts a model into stages: this works in one process for now...
    """
    raise one_process("pipeline(), which cuts a model into stages")


class PipelineStage:
    """A part of a model, the stage `stage_index` of `num_stages`.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), stage_index=0, num_stages=1, device=cygrad.device("cpu"))
    >>> ScheduleGPipe(stage, n_microbatches=2).step(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """

    def __init__(
        self, submodule, stage_index, num_stages, device, input_args=None, output_args=None, group=None, dw_builder=None
    ):
        if num_stages != 1:
            raise one_process(f"PipelineStage {stage_index} of {num_stages}")
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        self.is_first = self.is_last = True


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


class ScheduleGPipe:
    """Passes `n_microbatches` equal parts of each batch through a stage, and back.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> layer = cygrad.nn.Linear(2, 1)
    >>> schedule = ScheduleGPipe(PipelineStage(layer, 0, 1, "cpu"), 2, loss_fn=cygrad.nn.functional.mse_loss)
    >>> losses = []
    >>> schedule.step(cygrad.ones(4, 2), target=cygrad.zeros(4, 1), losses=losses).shape, len(losses)
    (torch.Size([4, 1]), 2)
    >>> schedule.eval(cygrad.ones(4, 2)).requires_grad
    False
    """

    def __init__(
        self, stage, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None,
        scale_grads=True,
    ):  # fmt: skip
        self._stage, self._n_microbatches = stage, n_microbatches
        self._loss_fn, self.scale_grads = loss_fn, scale_grads

    def step(self, *args, target=None, losses=None, return_outputs=True, **kwargs):
        """Pass a batch through, and back if there is a `loss_fn`; returns the outputs, joined."""
        outputs = []
        count = self._n_microbatches
        parts = [self._parts(each) for each in args]
        named = {key: self._parts(each) for key, each in kwargs.items()}
        targets = self._parts(target)
        for index in range(count):
            output = self._stage.submod(
                *(part[index] for part in parts), **{key: part[index] for key, part in named.items()}
            )
            outputs.append(output.detach() if self._loss_fn is not None else output)
            if self._loss_fn is not None:
                loss = self._loss_fn(output, targets[index])
                (loss / count if self.scale_grads else loss).backward()
                if losses is not None:
                    losses.append(loss.detach())
        return cygrad.cat(outputs) if return_outputs else None

    def eval(self, *args, target=None, losses=None, **kwargs):
        """Pass a batch through, without gradients; returns the outputs, joined."""
        with cygrad.no_grad():
            loss_fn, self._loss_fn = self._loss_fn, None
            try:
                return self.step(*args, **kwargs)
            finally:
                self._loss_fn = loss_fn

    def _parts(self, value):
        """A list of the parts of a tensor; another value is in each part."""
        count = self._n_microbatches
        if not isinstance(value, Tensor):
            return [value] * count
        if value.shape[0] < count:
            raise RuntimeError(f"a batch of {value.shape[0]} cannot be cut into {count} microbatches")
        return list(value.tensor_split(count))


class Schedule1F1B(ScheduleGPipe):
    """Goes back with each part of a batch as soon as it is through; with one stage `ScheduleGPipe` does too.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, Schedule1F1B
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, cygrad.device("cpu"))
    >>> schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=cygrad.nn.functional.mse_loss)
    >>> losses = []
    >>> schedule.step(cygrad.ones(4, 2), target=cygrad.zeros(4, 1), losses=losses).shape, len(losses)
    (torch.Size([4, 1]), 2)
    """


class _ScheduleOfSeveral(ScheduleGPipe):
    """The base of schedules for several stages in each process."""

    def __init__(self, stages, n_microbatches, loss_fn=None, **kwargs):
        if len(stages) != 1:
            raise one_process(f"{type(self).__name__} of {len(stages)} stages")
        super().__init__(stages[0], n_microbatches, loss_fn, **kwargs)


class ScheduleInterleaved1F1B(_ScheduleOfSeveral):
    """`Schedule1F1B` for several stages in each process.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleInterleaved1F1B([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class ScheduleLoopedBFS(_ScheduleOfSeveral):
    """`ScheduleGPipe` for several stages in each process.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleLoopedBFS
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleLoopedBFS([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class ScheduleInterleavedZeroBubble(_ScheduleOfSeveral):
    """`ScheduleInterleaved1F1B` that computes gradients of weights later.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleInterleavedZeroBubble([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class ScheduleZBVZeroBubble(_ScheduleOfSeveral):
    """A schedule for two stages in each process that computes gradients of weights later.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleZBVZeroBubble([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


also_named(__name__, schedules=sys.modules[__name__], stage=sys.modules[__name__], microbatch=sys.modules[__name__])
