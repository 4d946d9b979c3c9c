"""Schedules: in which order processes compute microbatches, forward and backward.

Note [Orders of pipelines]: every process plays the same game of all processes, step by step, and takes from it what
falls to itself. In a step a process computes one microbatch backward if it can, else one forward. A stage starts no
more microbatches than there are stages from it to the end before it has gone back with the first one: that bounds
memory, and is what "one forward, one backward" means. As the game comes to an end, so do the processes.
"""

import cygrad
from cygrad.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks

__all__ = [
    "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "get_schedule_class",
]  # fmt: skip


class _Schedule:
    """What all schedules share; `_order` says what this process computes, as (is backward, stage, microbatch)."""

    def __init__(
        self, stages, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None,
        output_merge_spec=None, scale_grads=True,
    ):  # fmt: skip
        self._stages = {stage.stage_index: stage for stage in stages}
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        for stage in stages:
            stage._connect(self._stages)

    def step(self, *args, target=None, losses=None, loss_kwargs=None, return_outputs=True, **kwargs):
        """Pass a batch through, and back if there is a `loss_fn`.

        args: those of the first stage, in its process. kwargs: those of the stages of this process. target: what
        `loss_fn` takes beside the output, in the process of the last stage, which returns the outputs, joined, and
        fills the list `losses`.
        """
        in_training = self._loss_fn is not None
        if in_training and not cygrad.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        return self._run(in_training, args, kwargs, target, losses, loss_kwargs, return_outputs)

    def eval(self, *args, target=None, losses=None, loss_kwargs=None, return_outputs=True, **kwargs):
        """Pass a batch through, without gradients; returns the outputs, joined."""
        with cygrad.no_grad():
            return self._run(False, args, kwargs, target, losses, loss_kwargs, return_outputs)

    def _run(self, in_training, args, kwargs, target, losses, loss_kwargs, return_outputs):
        count = self._n_microbatches
        is_last = any(stage.is_last for stage in self._stages.values())
        spec = self._args_chunk_spec
        if not any(stage.is_first for stage in self._stages.values()):
            args, spec = (), None
        args_of, kwargs_of = split_args_kwargs_into_chunks(args, kwargs, count, spec, self._kwargs_chunk_spec)
        targets, _ = split_args_kwargs_into_chunks((target if is_last else None,), {}, count)
        outputs, found, left = [None] * count, [None] * count, dict.fromkeys(self._stages, count)
        try:
            for is_backward, number, index in self._order(in_training):
                stage = self._stages[number]
                if is_backward:
                    left[number] -= 1
                    loss = found[index] / count if self.scale_grads and stage.is_last else found[index]
                    stage._go_back(index, loss, left[number] == 0)
                    continue
                output = stage._compute(index, args_of[index], kwargs_of[index], in_training)
                if stage.is_last:
                    outputs[index] = output
                    if self._loss_fn is not None and (in_training or target is not None):
                        found[index] = self._loss_fn(output, targets[index][0], **(loss_kwargs or {}))
        finally:
            for stage in self._stages.values():
                stage._finish()
        if not is_last:
            return None
        if losses is not None and found[0] is not None:
            losses[:] = [loss.detach() for loss in found]
        if in_training:
            outputs = [_detached(output) for output in outputs]
        return merge_chunks(outputs, self._output_merge_spec) if return_outputs else None

    def _order(self, in_training):
        """What this process computes in a step, in order: (is backward, stage, microbatch)."""
        numbers, microbatches = sorted(self._stages), range(self._n_microbatches)
        yield from ((False, number, index) for number in numbers for index in microbatches)
        if in_training:
            yield from ((True, number, index) for number in reversed(numbers) for index in microbatches)


def _detached(value):
    if isinstance(value, (tuple, list)):
        return type(value)(_detached(each) for each in value)
    if isinstance(value, dict):
        return {key: _detached(each) for key, each in value.items()}
    return value.detach() if isinstance(value, cygrad.Tensor) else value


class _OneForwardOneBackward(_Schedule):
    """Goes back with each microbatch as soon as possible: Note [Orders of pipelines]."""

    def _order(self, in_training):
        if not in_training:
            return super()._order(False)
        some = next(iter(self._stages.values()))
        ranks = some.stage_index_to_group_rank
        return [action for rank, *action in _game(ranks, self._n_microbatches) if rank == some.group_rank]


def _game(ranks, microbatches):
    """What all processes compute, as (process, is backward, stage, microbatch)."""
    last = len(ranks) - 1
    forward, backward = [0] * (last + 1), [0] * (last + 1)  # microbatches that each stage is through with
    played = []
    while min(backward) < microbatches:
        ready_f, ready_b = [microbatches, *forward], [*backward, microbatches]  # as they are when the step begins
        before = list(forward), list(backward)
        for rank in sorted(set(ranks.values())):
            own = [stage for stage in ranks if ranks[stage] == rank]
            for stage in own:  # the earlier ones first: others wait for their gradients
                if before[1][stage] < min(before[0][stage], ready_b[stage + 1]):
                    played.append((rank, True, stage, backward[stage]))
                    backward[stage] += 1
                    break
            else:
                for stage in reversed(own):
                    is_allowed = before[0][stage] - before[1][stage] <= last - stage
                    if is_allowed and before[0][stage] < ready_f[stage]:
                        played.append((rank, False, stage, forward[stage]))
                        forward[stage] += 1
                        break
    return played


class ScheduleGPipe(_Schedule):
    """Passes `n_microbatches` equal parts of each batch through the stages, then back.

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

    def __init__(self, stage, n_microbatches, loss_fn=None, *args, **kwargs):
        super().__init__([stage], n_microbatches, loss_fn, *args, **kwargs)


class Schedule1F1B(_OneForwardOneBackward):
    """Goes back with each part of a batch as soon as it is through, which takes less memory than `ScheduleGPipe`.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, Schedule1F1B
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, cygrad.device("cpu"))
    >>> schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=cygrad.nn.functional.mse_loss)
    >>> losses = []
    >>> schedule.step(cygrad.ones(4, 2), target=cygrad.zeros(4, 1), losses=losses).shape, len(losses)
    (torch.Size([4, 1]), 2)
    """

    def __init__(self, stage, n_microbatches, loss_fn=None, *args, **kwargs):
        super().__init__([stage], n_microbatches, loss_fn, *args, **kwargs)


class ScheduleInterleaved1F1B(_OneForwardOneBackward):
    """`Schedule1F1B` for several stages in each process.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleInterleaved1F1B([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class ScheduleLoopedBFS(_Schedule):
    """`ScheduleGPipe` for several stages in each process.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleLoopedBFS
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleLoopedBFS([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class ScheduleInterleavedZeroBubble(ScheduleInterleaved1F1B):
    """`ScheduleInterleaved1F1B`, whose name in PyTorch stands for computing gradients of weights later.

    Here they are computed with those of activations.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleInterleavedZeroBubble([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class _Folded(_OneForwardOneBackward):
    """For two stages in each process: of n processes, process i has the stages i and 2 n - 1 - i."""

    def __init__(self, stages, n_microbatches, loss_fn=None, *args, **kwargs):
        for stage in stages:
            size = stage.group_size
            if stage.num_stages != (2 * size if size > 1 else len(stages)):
                raise ValueError(
                    f"{type(self).__name__} requires exactly 2 stages per rank, but got {stage.num_stages} stages "
                    f"and {size} ranks"
                )
            stage.stage_index_to_group_rank = (
                {index: index if index < size else 2 * size - 1 - index for index in range(stage.num_stages)}
                if size > 1
                else dict.fromkeys(range(stage.num_stages), 0)
            )
        super().__init__(stages, n_microbatches, loss_fn, *args, **kwargs)


class ScheduleZBVZeroBubble(_Folded):
    """A schedule for two stages in each process, the first and the last one in process 0.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleZBVZeroBubble([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


class ScheduleDualPipeV(_Folded):
    """`ScheduleZBVZeroBubble` by another name: microbatches do not overlap within a process.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import PipelineStage, ScheduleDualPipeV
    >>> stage = PipelineStage(cygrad.nn.Linear(2, 1), 0, 1, "cpu")
    >>> ScheduleDualPipeV([stage], n_microbatches=2).eval(cygrad.ones(4, 2)).shape
    torch.Size([4, 1])
    """


def get_schedule_class(schedule_name):
    """Return the schedule of a name such as "1F1B" or "GPipe", in any case of letters.

    >>> from cygrad.distributed.pipelining.schedules import get_schedule_class
    >>> get_schedule_class("gpipe").__name__
    'ScheduleGPipe'

    Raises ValueError for another name.
    """
    known = {name.removeprefix("Schedule").lower(): globals()[name] for name in __all__ if name.startswith("Sch")}
    if schedule_name.lower() not in known:
        raise ValueError(f"Unknown schedule '{schedule_name}'. The supported options are {list(known)}")
    return known[schedule_name.lower()]
