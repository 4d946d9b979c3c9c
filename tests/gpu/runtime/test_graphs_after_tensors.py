"""Graphs that are replayed after the tensors which they use have died: they keep these tensors' memory.

On the stand-in, a replay that uses memory which has gone back to a pool is an error.
"""

import gc

import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn, optim

pytestmark = [runs_kernels, pytest.mark.usefixtures("captures")]


def made(*shape, kind=torch.float32):
    torch.manual_seed(0)
    if kind is torch.int64:
        return torch.arange(shape[0], device="cuda")
    return torch.rand(*shape, device="cuda", dtype=kind) + 0.5


def image():
    return made(1, 2, 6, 6)


WORK = {
    "functions": lambda: made(4).exp() * made(4) + made(4, 1),
    "views": lambda: made(4, 5)[1:, ::2].t() @ made(3, 2),
    "in place": lambda: made(4).clone().add_(made(4)).mul_(2),
    "joined": lambda: torch.cat([made(2), made(3), torch.stack([made(2), made(2)])[0]]),
    "stacked": lambda: torch.stack([made(2), made(2)]),
    "split": lambda: sum(made(6).split(2)),
    "sums": lambda: made(3, 4).sum(0) + made(3, 4).mean() + made(3, 4).amax(1).sum() + made(4).cumsum(0),
    "sorted": lambda: made(9).sort()[0] + made(9).topk(9)[0],
    "rows": lambda: made(4, 5)[made(3, kind=torch.int64)],
    "rows put": lambda: made(4, 5).index_put((made(3, kind=torch.int64),), made(5)),
    "row set": lambda: torch.ones(3, device="cuda").index_add(0, made(3, kind=torch.int64), made(3)),
    "gathered": lambda: made(4, 5).gather(1, made(4, kind=torch.int64)[:, None]),
    "scattered": lambda: made(4, 5).scatter(1, made(4, kind=torch.int64)[:, None], made(4, 1)),
    "where": lambda: torch.where(made(4) > 1, made(4), made(4) * 2),
    "copied": lambda: torch.empty(4, device="cuda").copy_(made(4)) + made(4).clone(),
    "converted": lambda: made(4).double() + made(4).half() + made(4).bfloat16(),
    "numbers": lambda: made(4) + torch.full((), 3.0, device="cuda"),
    "linear": lambda: F.linear(made(3, 4), made(5, 4), made(5)),
    "products": lambda: made(2, 3, 4) @ made(2, 4, 3) + torch.einsum("ij,bjk->bik", made(3, 3), made(2, 3, 3)),
    "softmax": lambda: F.softmax(made(3, 4), 1) + F.log_softmax(made(3, 4), 1),
    "layer norm": lambda: F.layer_norm(made(3, 4), (4,), made(4), made(4)),
    "batch norm": lambda: F.batch_norm(image(), made(2), made(2), made(2), made(2), training=True),
    "convolution": lambda: F.conv2d(image(), made(3, 2, 3, 3), made(3)),
    "pooling": lambda: F.max_pool2d(image(), 2) + F.avg_pool2d(image(), 2),
    "resized": lambda: F.interpolate(image(), scale_factor=2, mode="bilinear"),
    "embedding": lambda: F.embedding(made(3, kind=torch.int64), made(4, 5)),
    "attention": lambda: F.scaled_dot_product_attention(made(1, 2, 4, 8), made(1, 2, 4, 8), made(1, 2, 4, 8)),
    "loss": lambda: F.cross_entropy(made(3, 4), made(3, kind=torch.int64)) + F.mse_loss(made(3), made(3) * 2),
    "spectrum": lambda: torch.fft.irfft(torch.fft.rfft(made(8))) + torch.fft.fft(made(8)).abs(),
    "complex": lambda: torch.complex(made(3), made(3)).conj() * 2,
}  # fmt: skip


class Before:
    """Stands for `made`: creates the tensors in a first call of the work, and gives them again in the capture."""

    def __init__(self, create):
        self.create, self.tensors, self.next = create, [], 0

    def __call__(self, *shape, **how):
        if self.next == len(self.tensors):
            self.tensors.append(self.create(*shape, **how))
        self.next += 1
        return self.tensors[self.next - 1]


@pytest.mark.parametrize("name", WORK)
def test_a_graph_keeps_what_its_work_uses(name, monkeypatch):
    wanted = WORK[name]().cpu()
    WORK[name]()
    given = Before(made)
    monkeypatch.setitem(globals(), "made", given)
    WORK[name]()  # creates the operands
    given.next, g = 0, torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        found = WORK[name]()
    del given
    monkeypatch.undo()
    gc.collect()
    others = [torch.full((64,), 7.0, device="cuda") for _ in range(20)]
    g.replay()
    np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), 1e-5, 1e-5)
    assert all((o == 7).all() for o in others)


OPTIMIZERS = {
    "SGD": {"momentum": 0.9},
    "Adam": {"capturable": True},
    "RMSprop": {"capturable": True},
    "Adadelta": {"capturable": True},
}


def captured_step(name):
    """A graph of a training step, whose model and data die with this call, and its loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5)).cuda()
    stepper = getattr(optim, name)(model.parameters(), lr=0.01, **OPTIMIZERS[name])
    x, y = torch.randn(4, 6).cuda(), torch.randint(0, 5, (4,)).cuda()

    def step():
        stepper.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        stepper.step()
        return loss.detach()

    for _ in range(2):
        step()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        loss = step()
    return g, loss


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_outlives_its_model(name):
    g, loss = captured_step(name)
    gc.collect()
    others = [torch.full((64,), 7.0, device="cuda") for _ in range(40)]
    losses = []
    for _ in range(5):
        g.replay()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert all((o == 7).all() for o in others)


def test_a_graph_keeps_no_more_than_its_work_uses():
    x, unused, g = torch.ones(1 << 18, device="cuda"), torch.ones(1 << 18, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
        for _ in range(20):
            y = y + 1  # its memory is reused within the graph
    assert g._pool.pool.total_bytes() < 6 << 20
    before = torch.cuda.memory_allocated()
    del unused
    assert torch.cuda.memory_allocated() <= before - (1 << 20)
    before = torch.cuda.memory_allocated()
    del x
    assert torch.cuda.memory_allocated() == before
    g.reset()
    assert torch.cuda.memory_allocated() <= before - (1 << 20)


def test_work_outside_of_the_capture_is_not_kept():
    g, x = torch.cuda.CUDAGraph(), torch.ones(1 << 18, device="cuda")
    with torch.cuda.graph(g):
        y = torch.ones(3, device="cuda") + 1
    before = torch.cuda.memory_allocated()
    z = x * 2
    del x, z
    assert torch.cuda.memory_allocated() <= before - (1 << 20)
    g.replay()
    assert y.tolist() == [2, 2, 2]
