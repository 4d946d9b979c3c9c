"""Eight threads run every kind of work at once and get the results of a serial run. Most useful without the GIL."""

import pytest

import cygrad as torch
from cygrad import func, nn
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.autograd.profiler import profile
from cygrad.utils.checkpoint import checkpoint
from helpers import in_threads

THREADS = 8
ROUNDS = 15


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


def training(i, shared):
    """Run steps of SGD on a separate net."""
    x = torch.arange(24.0).reshape(8, 3) / 24
    first = torch.full((3, 4), 0.1 * (i + 1), requires_grad=True)
    second = torch.full((4, 1), 0.2, requires_grad=True)
    optimizer = torch.optim.SGD([first, second], lr=0.05, momentum=0.9)
    for _ in range(ROUNDS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss((x @ first).tanh() @ second, x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    return loss.item()


def views_in_place(i, shared):
    """Write into views and use the resulting history."""
    total = 0.0
    for _ in range(ROUNDS):
        x = torch.full((4, 4), i + 1.0, requires_grad=True)
        y = x * 1
        y[1:3].mul_(2)
        y.t()[0].add_(x[0])
        y.square().sum().backward()
        total += x.grad.sum().item()
    return total


def modes_and_hooks(i, shared):
    """Thread-local state: modes, saved tensor hooks, the profiler, checkpoints."""
    seen = []
    for _ in range(ROUNDS):
        x = torch.full((5,), 0.1 * i, requires_grad=True)
        with profile() as prof, saved_tensors_hooks(lambda t: t.numpy(force=True) + 0, torch.from_numpy):
            y = Cube.apply(checkpoint(lambda t: (t * t).sin(), x, use_reentrant=False, preserve_rng_state=False))
            with torch.no_grad():
                assert not (x * 2).requires_grad
            y.sum().backward()
        seen.append((x.grad[0].item(), [event.name for event in prof.function_events].count("Cube")))
    assert len(set(seen)) == 1
    return seen[0]


def shared_leaf(i, shared):
    """All threads accumulate into the gradient of one leaf."""
    for _ in range(ROUNDS):
        (shared * (i + 1)).sum().backward()
    return i


def errors(i, shared):
    """Errors leave no state behind."""
    for _ in range(ROUNDS):
        x = torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError):
            x.add_(1)
        y = x.exp()
        y.mul_(2)
        with pytest.raises(RuntimeError):
            y.sum().backward()
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)
    return torch.is_grad_enabled()


def levels(i, shared):
    """Nested tangents and batches: the open levels are thread-local."""
    x = torch.arange(6.0).reshape(2, 3) / (i + 1)
    for _ in range(ROUNDS // 3):
        gradients = torch.vmap(func.grad(lambda row: (row**3).sum()))(x)
        hessians = torch.vmap(func.hessian(lambda row: row.exp().prod()))(x)
        value, tangent = func.jvp(torch.vmap(lambda row: row.sin().sum()), (x,), (x,))
    return [t.tolist() for t in (gradients, hessians, value, tangent)]


WORK = [training, views_in_place, modes_and_hooks, shared_leaf, errors, levels]


@pytest.mark.parametrize("rotation", range(len(WORK)))
def test_everything_at_once(rotation):
    """Each thread does all kinds of work, in a different order."""

    def work(i, shared):
        order = WORK[(i + rotation) % len(WORK) :] + WORK[: (i + rotation) % len(WORK)]
        results = {function.__name__: function(i, shared) for function in order}
        return [results[function.__name__] for function in WORK]

    shared, alone = torch.zeros(7, requires_grad=True), torch.zeros(7, requires_grad=True)
    together = in_threads([lambda i=i: work(i, shared) for i in range(THREADS)])
    assert together == [work(i, alone) for i in range(THREADS)]
    assert shared.grad.tolist() == alone.grad.tolist() == [ROUNDS * sum(range(1, THREADS + 1))] * 7


def test_one_graph_is_freed_once():
    for _ in range(ROUNDS):
        x = torch.ones(4, requires_grad=True)
        y = x.exp().sin().exp().sum()

        def work(y=y):
            try:
                y.backward()
            except RuntimeError as error:
                return str(error).split(" (", 1)[0]
            return "done"

        outcomes = in_threads([work] * THREADS)
        assert set(outcomes) <= {"done", "Trying to backward through the graph a second time"}
        assert "done" in outcomes or x.grad is None
