"""`DistributedDataParallel` in a group of one process, with and without communication hooks."""

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, register_ddp_comm_hook
from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from cygrad.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.usefixtures("group")


def trained(wrap, steps=5):
    """The losses and the model of a few steps, wrapped in some way."""
    torch.manual_seed(0)
    model = wrap(nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(8, 12), torch.randn(8, 12)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def with_hook(hook, state=None):
    def wrap(module):
        model = DistributedDataParallel(module)
        model.register_comm_hook(state, hook)
        return model

    return wrap


def test_it_trains_as_the_module_itself():
    plain, wrapped = trained(lambda module: module), trained(DistributedDataParallel)
    assert wrapped[0] == plain[0]
    assert list(wrapped[1].state_dict()) == [f"module.{name}" for name in plain[1].state_dict()]
    assert trained(with_hook(default_hooks.allreduce_hook))[0] == plain[0]
    assert trained(with_hook(default_hooks.noop_hook))[0] == plain[0]


@pytest.mark.parametrize(
    "hook",
    [
        default_hooks.fp16_compress_hook,
        default_hooks.bf16_compress_hook,
        default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
        default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
    ],
)
def test_hooks_that_compress(hook):
    plain, compressed = trained(lambda module: module)[0], trained(with_hook(hook))[0]
    assert compressed != plain and compressed == pytest.approx(plain, rel=1e-2)


def test_power_sgd_reduces_the_rank_of_the_gradient():
    state = PowerSGDState(matrix_approximation_rank=2, start_powerSGD_iter=2)
    losses, model = trained(with_hook(powerSGD_hook, state))
    assert losses[-1] < losses[0] and state.compression_stats()[0] > 1
    weight = model.module[0].weight
    assert torch.linalg.matrix_rank(weight.grad, rtol=1e-4) == 2
    with pytest.raises(ValueError, match="^Expect `start_powerSGD_iter` > 1"):
        PowerSGDState(start_powerSGD_iter=1)


def test_hooks_see_buckets_once_a_backward_pass():
    seen = []

    def hook(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), len(bucket.parameters()), bucket.buffer().numel()))
        assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        return default_hooks.noop_hook(state, bucket)

    model = with_hook(hook, "state")(nn.Linear(3, 2))
    with model.no_sync():
        model(torch.ones(1, 3)).sum().backward()
    assert seen == []
    model(torch.ones(1, 3)).sum().backward()
    assert seen == [("state", 0, True, 2, 8)] and model.module.bias.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, hook)


def test_hooks_by_name():
    model = DistributedDataParallel(nn.Linear(3, 2))
    register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)
    model(torch.full((1, 3), 1.0001)).sum().backward()
    assert model.module.weight.grad.tolist() == [[1.0] * 3] * 2


def test_what_cannot_be_wrapped():
    with pytest.raises(RuntimeError, match="not needed when a module doesn't have any parameter that requires"):
        DistributedDataParallel(nn.ReLU())
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        DistributedDataParallel(nn.Linear(1, 1)).register_comm_hook(None, 3)


def test_checkpointed_modules_have_their_names():
    from cygrad.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper

    inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    for impl in CheckpointImpl:
        model = checkpoint_wrapper(inner, impl)
        assert [name for name, _ in model.named_parameters()] == list(model.state_dict()) == ["0.weight", "0.bias"]
        model.load_state_dict(inner.state_dict())
        inner.zero_grad()
        x = torch.ones(1, 3, requires_grad=True)
        inner(x).sum().backward()
        expected, inner[0].weight.grad = inner[0].weight.grad, None
        model(x).sum().backward()
        assert model[0].weight.grad.equal(expected)


def test_averagers():
    from cygrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

    model = nn.Linear(2, 1)
    before = model.weight.tolist()
    model(torch.ones(1, 2)).sum().backward()
    averager = PeriodicModelAverager(period=2, warmup_steps=1)
    for _ in range(4):
        averager.average_parameters(model.parameters())
    assert averager.step == 4 and model.weight.tolist() == before


def test_a_step_on_gradients_that_were_not_averaged_warns_once(group, recwarn):
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def backward():
        model(torch.ones(1, 2)).sum().backward()

    with model.no_sync():
        backward()
    backward()
    optimizer.step()
    with model.no_sync():
        backward()
        backward()
    assert not recwarn
    optimizer.step()
    for _ in range(2):
        with model.no_sync():
            backward()
        optimizer.step()
    (warning,) = recwarn
    assert "outside of `no_sync()`" in str(warning.message) and warning.filename == __file__
