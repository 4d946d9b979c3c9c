"""Modules whose work is divided over simulated processes compute what the whole module does, with its gradients."""

import sys
import threading
from pathlib import Path

import pytest
from mpi_runs import ended, needs_mpi

import cygrad as torch
import cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed._fake import simulate
from cygrad.distributed.device_mesh import init_device_mesh
from cygrad.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from cygrad.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

_LOCK = threading.Lock()
WIDTH, HIDDEN = 6, 13  # some processes have fewer columns than others


def seeded(make, seed=0):
    with _LOCK:  # threads share the random numbers
        torch.manual_seed(seed)
        return make()


class FeedForward(nn.Module):
    def __init__(self, width=WIDTH, hidden=HIDDEN):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(width, hidden), nn.Linear(hidden, width), nn.Linear(width, hidden)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm, self.inner = nn.Embedding(10, WIDTH, padding_idx=3), nn.LayerNorm(WIDTH), FeedForward()
        self.output = nn.Linear(WIDTH, 10, bias=False)

    def forward(self, x):
        h = self.words(x)
        return self.output(h + self.inner(self.norm(h)))


PLANS = {
    "plain": {"inner.w1": ColwiseParallel, "inner.w3": ColwiseParallel, "inner.w2": RowwiseParallel},
    "wildcard": {"inner.w[13]": ColwiseParallel, "inner.w2": RowwiseParallel},
    "words": {"words": ColwiseParallel, "norm": lambda: PrepareModuleInput(
        input_layouts=(Shard(-1),), desired_input_layouts=(Shard(-1),), use_local_output=True)},
    "sequence": {
        "words": lambda: RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel,
        "inner": lambda: PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "inner.w1": ColwiseParallel,
        "inner.w3": ColwiseParallel,
        "inner.w2": lambda: RowwiseParallel(output_layouts=Shard(1)),
        "output": lambda: ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    },
    "outputs": {
        "words": lambda: ColwiseParallel(output_layouts=Replicate()),
        "inner.w1": lambda: ColwiseParallel(use_local_output=False, output_layouts=Replicate()),
        "inner": lambda: PrepareModuleInputOutput(
            input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),), use_local_input=True,
            output_layouts=Replicate(), desired_output_layouts=Replicate(),
        ),
    },
}  # fmt: skip
del PLANS["words"], PLANS["outputs"]["inner.w1"]


def trained(model, steps=3):
    """The output and all gradients of the last step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.tensor([[1, 2, 3, 4, 0, 0], [5, 6, 3, step, 8, 9]])
        optimizer.zero_grad()
        output = model(x)
        nn.functional.cross_entropy(output.reshape(-1, 10), (x.reshape(-1) * 3) % 10).backward()
        if step < steps - 1:
            optimizer.step()
    return output.detach()


def whole(parameter, value):
    if not hasattr(parameter, "placements"):
        return value
    return DTensor.from_local(
        value, parameter.device_mesh, parameter.placements, shape=parameter._spec.shape
    ).full_tensor()


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("plan", PLANS)
def test_as_the_whole_module(plan, size):
    expected = seeded(Block)
    output = trained(expected)

    def run():
        mesh = init_device_mesh("cpu", (size,))
        model = seeded(Block, seed=dist.get_rank())  # all take the values of process 0
        plans = {name: style() for name, style in PLANS[plan].items()}
        if size > 1 and "words" not in plans:
            for name, parameter in model.named_parameters():
                if not name.startswith("inner"):
                    dist.broadcast(parameter.detach(), 0)
        parallelize_module(model, mesh, plans)
        if plan == "outputs" and size > 1:
            for name, parameter in model.named_parameters():
                if not name.startswith("words"):
                    dist.broadcast(parameter.detach(), 0)
        torch.testing.assert_close(trained(model), output)
        for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(whole(ours, ours.detach()), theirs.detach())
            torch.testing.assert_close(whole(ours, ours.grad), theirs.grad)

    simulate(run, size, timeout=20)


def test_states():
    """A state has DTensors; it can be loaded from whole tensors, and by another number of processes."""
    expected = seeded(FeedForward, 5)

    def run():
        mesh = init_device_mesh("cpu", (2,))
        model = seeded(FeedForward)
        parallelize_module(model, mesh, {"w[13]": ColwiseParallel(), "w2": RowwiseParallel()})
        assert model.w1.weight.shape == (7 - dist.get_rank(), WIDTH) and model.w2.weight.placements == (Shard(1),)
        model.load_state_dict(expected.state_dict())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model(torch.ones(2, WIDTH)).sum().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state, steps = model.state_dict(), optimizer.state_dict()["state"]
        moments = steps[list(dict(model.named_parameters())).index("w2.weight")]
        return {name: _whole(value) for name, value in state.items()}, _whole(moments["exp_avg"]), norm

    optimizer = torch.optim.Adam(expected.parameters(), lr=0.1)
    before = {name: value.clone() for name, value in expected.state_dict().items()}
    for state, moment, norm in simulate(run, 2, timeout=20):
        expected.load_state_dict(before)
        optimizer = torch.optim.Adam(expected.parameters(), lr=0.1)
        optimizer.zero_grad()
        expected(torch.ones(2, WIDTH)).sum().backward()
        torch.testing.assert_close(norm, nn.utils.clip_grad_norm_(expected.parameters(), 1.0))
        optimizer.step()
        torch.testing.assert_close(state, dict(expected.state_dict()))
        torch.testing.assert_close(moment, optimizer.state[expected.w2.weight]["exp_avg"])


def _whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value.clone()


def test_divided_data_and_layers():
    """Two copies of a module, each divided over two processes: the gradients of one module with all data."""
    expected, x = seeded(FeedForward), torch.randn(2, 3, WIDTH)
    for each in x:
        (expected(each).square().mean() / 2).backward()

    def run():
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "layers"))
        model = parallelize_module(
            seeded(FeedForward), mesh["layers"], {"w[13]": ColwiseParallel(), "w2": RowwiseParallel()}
        )
        wrapped = nn.parallel.DistributedDataParallel(model, process_group=mesh["data"].get_group())
        wrapped(x[mesh.get_local_rank("data")]).square().mean().backward()
        for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(whole(ours, ours.grad), theirs.grad)

    simulate(run, 4, timeout=20)


@pytest.mark.parametrize("size", [2, 3])
def test_placements_change_with_gradients(size):
    def run():
        mesh, rank = init_device_mesh("cpu", (size,)), dist.get_rank()
        x = torch.arange(20.0).view(4, 5)
        weights = torch.arange(20.0).view(4, 5).flip(0)
        for source in (Shard(0), Shard(1), Shard(-1), Replicate(), Partial()):
            if isinstance(source, Partial):
                local = x / size
            elif isinstance(source, Replicate):
                local = x
            else:
                local = distribute_tensor(x, mesh, [Shard(source.dim % 2)]).to_local()
            for target in (Shard(0), Shard(1), Replicate()):
                leaf = local.clone().requires_grad_()
                spread = DTensor.from_local(leaf, mesh, [source], shape=x.shape)
                moved = spread.redistribute(placements=[target])
                assert moved.placements == (target,)
                torch.testing.assert_close(moved.full_tensor(), x)
                part = distribute_tensor(weights, mesh, [target]).to_local()
                (moved.to_local() * part).sum().backward()
                if isinstance(source, Shard):
                    expected = distribute_tensor(weights, mesh, [Shard(source.dim % 2)]).to_local()
                else:
                    expected = weights
                torch.testing.assert_close(leaf.grad, expected)
        mean = DTensor.from_local(torch.full((2,), float(rank)), mesh, [Partial("avg")])
        assert mean.full_tensor().tolist() == [(size - 1) / 2] * 2
        with pytest.raises(RuntimeError, match="redistribute from Replicate\\(\\) to Partial\\(sum\\) not supported"):
            DTensor.from_local(x, mesh, [Replicate()]).redistribute(placements=[Partial()])
        assert distribute_tensor(torch.full((2,), float(rank)), mesh, [Replicate()]).to_local().tolist() == [0, 0]
        own = distribute_tensor(torch.full((2,), float(rank)), mesh, [Replicate()], src_data_rank=None)
        assert own.to_local().tolist() == [rank, rank]

    simulate(run, size, timeout=20)


def test_wrong_plans():
    def run():
        mesh = init_device_mesh("cpu", (2,))
        with pytest.raises(
            NotImplementedError, match="ColwiseParallel currently only support nn.Linear and nn.Embedding!"
        ):
            parallelize_module(nn.LayerNorm(3), mesh, ColwiseParallel())
        with pytest.raises(NotImplementedError, match="RowwiseParallel currently only supports nn.Linear"):
            parallelize_module(nn.ReLU(), mesh, RowwiseParallel())
        with pytest.raises(TypeError, match="Expect Union"):
            parallelize_module(nn.ReLU(), mesh, [ColwiseParallel()])
        with pytest.raises(ValueError, match="Tensor Parallel only accepts a 1D DeviceMesh, but found 2D"):
            parallelize_module(nn.ReLU(), init_device_mesh("cpu", (1, 2)), {})
        layer = parallelize_module(nn.Linear(4, 4), mesh, ColwiseParallel())
        with pytest.raises(ValueError, match="Linear.weight is divided already"):
            parallelize_module(layer, mesh, ColwiseParallel())
        with pytest.raises(NotImplementedError, match="weight is divided by parallelize_module"):
            dist.fsdp.fully_shard(layer)
        for style in (
            lambda: PrepareModuleInput(input_layouts=(Replicate(),)),
            lambda: PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(None, None)),
            lambda: PrepareModuleOutput(output_layouts=(Replicate(), None), desired_output_layouts=Shard(0)),
        ):
            with pytest.raises(AssertionError, match="should"):
                style()

    simulate(run, 2, timeout=20)


@pytest.mark.filterwarnings("error")
def test_a_plan_that_names_nothing():
    with pytest.warns(UserWarning, match="Parallelize plan key 'w9' could not be resolved"):
        parallelize_module(FeedForward(), init_device_mesh("cpu", (1,)), {"w9": ColwiseParallel()})
    dist.destroy_process_group()


PROGRAM = """
import cygrad as torch, cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
mesh = dist.init_device_mesh("cpu", (2,))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
x = torch.randn(5, 8)
expected = model(x).detach()
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
assert model[0].weight.shape == (16, 8)
torch.testing.assert_close(model(x).detach(), expected)
print("through", flush=True)
dist.destroy_process_group()
"""


@needs_mpi
def test_processes():
    code, output = ended([Path(sys.executable).parent / "mpiexec", "-n", "2", sys.executable, "-c", PROGRAM])
    assert code == 0 and output.split() == ["through"] * 2, output
