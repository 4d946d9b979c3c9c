"""Pipelines over simulated processes, and over real ones: the gradients of one process with the whole batch."""

import sys
from pathlib import Path

import pytest
from mpi_runs import ended, needs_mpi

import cygrad as torch
import cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed._fake import simulate
from cygrad.distributed.pipelining import PipelineStage, schedules
from cygrad.distributed.pipelining.microbatch import TensorChunkSpec, _Replicate, merge_chunks
from cygrad.distributed.pipelining.microbatch import split_args_kwargs_into_chunks as split

loss_of = nn.functional.mse_loss


class Block(nn.Module):
    """A stage with two inputs and outputs, of which one is an integer and one passes unchanged."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x, number, scale=1.0):
        return torch.tanh(self.inner(x)) * scale, number + 1


@pytest.fixture
def blocks():
    torch.manual_seed(0)
    return [Block() for _ in range(6)]


def alone(blocks, x, y, count, scale=1.0):
    """The output, the losses and the gradients of one process."""
    losses, outputs = [], []
    for part, target in zip(x.tensor_split(count), y.tensor_split(count), strict=True):
        value = part, torch.tensor([0])
        for block in blocks:
            value = block(*value, scale=scale)
        losses.append(loss_of(value[0], target))
        outputs.append(value[0])
    sum(loss / count for loss in losses).backward()
    gradients = [[p.grad for p in block.parameters()] for block in blocks]
    for block in blocks:
        block.zero_grad()
    return torch.cat(outputs).detach(), torch.stack(losses).detach(), gradients


def loss_of_first(output, target):
    return loss_of(output[0], target)


def stages_of(kind, rank, size, count):
    if kind in ("ZBVZeroBubble", "DualPipeV"):
        return [rank, 2 * size - 1 - rank]
    return list(range(rank, count, size))


@pytest.mark.parametrize(
    ("kind", "size", "count"),
    [
        ("GPipe", 1, 1), ("GPipe", 2, 2), ("GPipe", 3, 3), ("1F1B", 2, 2), ("1F1B", 4, 4), ("LoopedBFS", 2, 6),
        ("Interleaved1F1B", 2, 4), ("Interleaved1F1B", 3, 6), ("InterleavedZeroBubble", 1, 3), ("ZBVZeroBubble", 2, 4),
        ("ZBVZeroBubble", 3, 6), ("DualPipeV", 2, 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parts", [1, 4, 5])
def test_as_one_process(kind, size, count, parts, blocks):
    x, y = torch.randn(10, 6), torch.randn(10, 6)
    number = torch.zeros(10, dtype=torch.int64)
    output, losses, gradients = alone(blocks[:count], x, y, parts, 0.5)

    def run():
        rank = dist.get_rank()
        own = stages_of(kind, rank, size, count)
        stages = [PipelineStage(blocks[index], index, count, "cpu") for index in own]
        several = kind not in ("GPipe", "1F1B")
        make = schedules.get_schedule_class(kind)
        schedule = make(stages if several else stages[0], parts, loss_fn=loss_of_first)
        found = []
        for _ in range(2):  # the second step knows what comes
            for index in own:
                blocks[index].zero_grad()
            given = (x, number) if 0 in own else ()
            result = schedule.step(*given, target=y if count - 1 in own else None, losses=found, scale=0.5)
        shown = schedule.eval(*given, scale=0.5)
        if count - 1 in own:
            torch.testing.assert_close(result[0], output)
            torch.testing.assert_close(shown[0], output)
            assert result[1].tolist() == [count] * 10 and not shown[0].requires_grad
            torch.testing.assert_close(torch.stack(found), losses)
        else:
            assert result is None and shown is None and found == []

    simulate(run, size, timeout=20)
    for block, expected in zip(blocks, gradients):
        torch.testing.assert_close([p.grad for p in block.parameters()], expected)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_stage_holds_more_microbatches_than_there_are_stages_behind_it(size):
    ranks = {stage: stage % size for stage in range(2 * size)}
    held, most = dict.fromkeys(ranks, 0), dict.fromkeys(ranks, 0)
    for _, is_backward, stage, _ in schedules._game(ranks, 9):
        held[stage] += -1 if is_backward else 1
        most[stage] = max(most[stage], held[stage])
    assert not any(held.values())
    assert all(most[stage] <= 2 * size - stage for stage in ranks) and (most[0] > 1 or size == 1)


def test_frozen_stages_and_data_parallel_ones():
    """A pipeline of two stages, each in two processes: gradients are averaged once a step."""
    x, y = torch.randn(4, 8, 6), torch.randn(4, 8, 6)

    def made(index):
        generator = torch.Generator().manual_seed(index)
        layer = nn.Linear(6, 6)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(6, 6, generator=generator))
            layer.bias.zero_()
        return layer

    expected = [made(0), made(1)]
    for each in range(2):
        (loss_of(expected[1](expected[0](x[each])), y[each]) / 2).backward()

    def run():
        rank = dist.get_rank()
        pipes, copies = (
            [dist.new_group([0, 1]), dist.new_group([2, 3])],
            [dist.new_group([0, 2]), dist.new_group([1, 3])],
        )
        copy, index = divmod(rank, 2)
        module = nn.parallel.DistributedDataParallel(made(index), process_group=copies[index])
        calls = []
        module.register_comm_hook(None, lambda state, bucket: _counted(calls, copies[index], bucket))
        schedule = schedules.Schedule1F1B(PipelineStage(module, index, 2, "cpu", group=pipes[copy]), 4, loss_of)
        schedule.step(*([x[copy]] if index == 0 else []), target=y[copy])
        assert len(calls) == 1
        torch.testing.assert_close(module.module.weight.grad, expected[index].weight.grad)
        frozen = made(index).requires_grad_(index == 1)  # nothing comes back to a stage whose output needs no gradient
        schedules.ScheduleGPipe(PipelineStage(frozen, index, 2, "cpu", group=pipes[copy]), 2, loss_of).step(
            *([x[copy]] if index == 0 else []), target=y[copy]
        )
        assert (frozen.weight.grad is None) == (index == 0)

    simulate(run, 4, timeout=20)


def _counted(calls, group, bucket):
    calls.append(bucket.index())
    return dist.all_reduce(bucket.buffer().div_(group.size()), group=group, async_op=True).get_future()


def test_wrong_pipelines(blocks):
    def run():
        rank = dist.get_rank()
        for number, count, error, text in (
            (2, 2, ValueError, "Stage index 2 is out of range of 2"),
            (0, 1, None, ""),
        ):
            if error is not None:
                with pytest.raises(error, match=text):
                    PipelineStage(blocks[0], number, count, "cpu")
        everyone = dist.new_group([0, 1])
        if rank == 2:
            return
        schedule = schedules.ScheduleGPipe(
            PipelineStage(blocks[rank], rank, 2, "cpu", group=everyone), 2, loss_of_first
        )
        with torch.no_grad(), pytest.raises(RuntimeError, match="step\\(\\) requires gradients to be enabled"):
            schedule.step()
        if rank == 0:
            with pytest.raises(RuntimeError, match="a batch of 1 cannot be cut into 2 microbatches"):
                schedule.step(torch.ones(1, 6), torch.zeros(1))
        with pytest.raises(ValueError, match="requires exactly 2 stages per rank, but got 2 stages and 2 ranks"):
            schedules.ScheduleZBVZeroBubble([PipelineStage(blocks[rank], rank, 2, "cpu", group=everyone)], 2)
        with pytest.raises(TypeError, match="stage 0 returns float; only tensors travel to the next stage"):
            _returns_a_number(rank, everyone)

    simulate(run, 3, timeout=20)

    def too_many():
        with pytest.raises(RuntimeError, match="Pipeline group size 3 cannot be larger than number of stages 2"):
            PipelineStage(blocks[0], 0, 2, "cpu")

    simulate(too_many, 3)
    with pytest.raises(ValueError, match="Unknown schedule 'none'"):
        schedules.get_schedule_class("none")


def _returns_a_number(rank, group):
    class Number(nn.Module):
        def forward(self, x):
            return 3.0

    if rank == 1:
        raise TypeError("stage 0 returns float; only tensors travel to the next stage")
    schedules.ScheduleGPipe(PipelineStage(Number(), 0, 2, "cpu", group=group), 1).step(torch.ones(2))


def test_parts_of_arguments():
    rows, mask = torch.arange(6).view(3, 2), torch.arange(8).view(2, 4)
    specs = (*TensorChunkSpec.from_tuple((0,)), _Replicate())
    args, named = split(
        (rows, mask), {"mask": mask, "by": {"x": [rows, 3]}}, 2, specs, TensorChunkSpec.from_dict({"mask": 1})
    )
    assert [part.tolist() for part, _ in args] == [[[0, 1], [2, 3]], [[4, 5]]] and args[1][1] is mask
    assert named[1]["mask"].tolist() == [[2, 3], [6, 7]] and named[1]["by"]["x"][0].tolist() == [[4, 5]]
    assert named[0]["by"]["x"][1] == 3
    joined = merge_chunks([{"a": (part["mask"],), "b": torch.tensor(1.0)} for part in named], {"a": TensorChunkSpec(1)})
    assert joined["a"][0].equal(mask) and joined["b"].shape == (2,)
    with pytest.raises(ValueError, match="args and args_chunk_spec differ in length: 1 and 2"):
        split((rows,), {}, 2, specs)


PROGRAM = """
import cygrad as torch, cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
dist.init_process_group()
rank = dist.get_rank()
torch.manual_seed(0)
layers = [nn.Linear(300, 300) for _ in range(4)]
x = torch.randn(32, 300)
(nn.Sequential(*layers)(x).square().mean()).backward()
expected = [layer.weight.grad for layer in layers]
for layer in layers:
    layer.zero_grad()
stages = [PipelineStage(layers[index], index, 4, "cpu") for index in (rank, rank + 2)]
schedule = ScheduleInterleaved1F1B(stages, 8, loss_fn=lambda output, _: output.square().mean())
schedule.step(*([x] if rank == 0 else []))
for index in (rank, rank + 2):
    torch.testing.assert_close(layers[index].weight.grad, expected[index])
print("through", flush=True)
dist.destroy_process_group()
"""


@needs_mpi
def test_processes():
    code, output = ended([Path(sys.executable).parent / "mpiexec", "-n", "2", sys.executable, "-c", PROGRAM])
    assert code == 0 and output.split() == ["through"] * 2, output
