"""The memory that a replay takes, with what its program keeps, beside that of an eager step."""

import gc

import pytest

import cygrad
from cygrad import nn


def peak(step, calls):
    """The bytes that the last of some calls takes at most, beyond what is there before it."""
    for _ in range(calls):
        step()
    gc.collect()
    before = cygrad.memory_stats()["allocated_bytes.all.current"]
    cygrad.reset_peak_memory_stats()
    step()
    return cygrad.memory_stats()["allocated_bytes.all.peak"] - before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_blocks_live_only_between_the_calls_that_need_them(request):
    """Kernels that are called as a whole give memory in each run, beside which other blocks must not lie for long."""
    before = cygrad.get_num_threads()
    request.addfinalizer(lambda: cygrad.set_num_threads(before))
    cygrad.set_num_threads(1)
    net = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 10)),
    )
    optimizer = cygrad.optim.SGD(net.parameters(), lr=0.01)
    x, y = cygrad.randn(64, 1, 28, 28), cygrad.arange(64) % 10

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = cygrad.compile(step)
    eager, replayed = peak(step, 3), peak(compiled, 8)
    (plan,) = compiled._cygrad_step.plans.plans
    assert plan.replays > 0
    assert replayed + plan.program.memory < 1.2 * eager


def test_blocks_lie_in_gradients_until_these_are_computed():
    """The gradients of an eager step come when most other blocks are gone; those of a replay lie there all the time."""
    net = nn.Sequential(nn.Linear(600, 40), nn.Tanh(), nn.Linear(40, 5))
    x = cygrad.randn(500, 600)

    def step():
        net.zero_grad()
        loss = (net(x) ** 2).sum()
        loss.backward()
        return loss

    compiled = cygrad.compile(step)
    for _ in range(5):
        compiled()
    (plan,) = compiled._cygrad_step.plans.plans
    assert plan.replays > 0
    assert plan.program.memory < 500 * 40 * 4 * 2.5, "one layer lies in the gradient of the first one's weights"
    for _ in range(2):
        with cygrad.no_grad():
            net[0].weight.add_(0.01)
        compiled()
        found = [p.grad.clone() for p in net.parameters()]
        step()
        assert all(cygrad.equal(a, p.grad) for a, p in zip(found, net.parameters()))


@pytest.mark.parametrize("place", ["before the forward pass", "before the backward pass"])
def test_former_gradients_do_not_lie_beside_the_new_ones(place):
    """With kernels that are called as a whole, too: as in eager steps, the gradients take most of the memory here."""
    net = nn.Sequential(nn.Linear(300, 700), nn.LayerNorm(700), nn.Linear(700, 300))
    x = cygrad.randn(4, 300)

    def step():
        if place == "before the forward pass":
            net.zero_grad()
        loss = cygrad.cumsum(net(x), 0).sum()
        if place == "before the backward pass":
            net.zero_grad()
        loss.backward()
        return loss

    compiled = cygrad.compile(step)
    eager, replayed = peak(step, 3), peak(compiled, 8)
    (plan,) = compiled._cygrad_step.plans.plans
    assert plan.replays > 0
    assert any("cumsum" in str(line.kind) for line in plan.program.entries)
    size = max(p.numel() * 4 for p in net.parameters())
    assert replayed + plan.program.memory < eager + size / 2
    found = [p.grad.clone() for p in net.parameters()]
    step()
    assert all(cygrad.equal(a, p.grad) for a, p in zip(found, net.parameters()))


class TestLargeBlocks:
    """Without calls, too, large blocks and gradients lie where those of eager steps lie, if that takes less."""

    def step(self):
        """A step whose activations are larger than its gradients, which are no place for them; and its module."""
        net = nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Linear(400, 10))
        optimizer = cygrad.optim.SGD(net.parameters(), lr=0.01)
        x = cygrad.randn(800, 300)

        def step():
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, net

    def test_take_no_more_than_an_eager_step(self):
        step, net = self.step()
        compiled = cygrad.compile(step)
        eager, replayed = peak(step, 3), peak(compiled, 8)
        (plan,) = compiled._cygrad_step.plans.plans
        assert plan.replays > 0
        assert replayed + plan.program.memory < 1.05 * eager
        state = {name: t.clone() for name, t in net.state_dict().items()}
        found = [compiled(), *(p.grad.clone() for p in net.parameters())]
        net.load_state_dict(state)
        assert all(cygrad.equal(a, b) for a, b in zip(found, [step(), *(p.grad for p in net.parameters())]))

    def test_too_little_memory(self, request):
        """What may have been changed counts as changed, and the next call works."""
        step, net = self.step()
        compiled = cygrad.compile(step)
        for _ in range(8):
            compiled()
        versions = [p._version for p in net.parameters()]
        former = cygrad.set_memory_limit(cygrad.memory_stats()["allocated_bytes.all.current"] + (1 << 20))
        request.addfinalizer(lambda: cygrad.set_memory_limit(former))
        with pytest.raises(MemoryError):
            compiled()
        cygrad.set_memory_limit(former)
        assert [p._version for p in net.parameters()] == [v + 1 for v in versions]
        replays = compiled._cygrad_step.replays()
        assert all(p.grad is None for p in net.parameters())
        for _ in range(2):
            compiled()
        assert compiled._cygrad_step.replays() == replays + 1


class TestGradientsOfFailedReplays:
    """A replay that fails leaves the gradients that the eager step would have left."""

    def fail(self, step, net):
        """The gradient before a call that fails and after it, of an eager step and of a compiled one."""
        places, wrong = cygrad.tensor([0, 1]), cygrad.tensor([0, 7])
        left = []
        for f in (step, cygrad.compile(step)):
            net.zero_grad()
            for _ in range(7):
                f(places)
            former = net.weight.grad
            with pytest.raises(IndexError, match="out of range"):
                f(wrong)
            left.append((former, net.weight.grad))
        assert f._cygrad_step.replays() > 0
        return left

    def test_cleared_before_the_call_that_fails(self):
        net = nn.Linear(300, 400)
        table = cygrad.randn(2, 300)

        def step(places):
            net.zero_grad()
            net(nn.functional.embedding(places, table)).sum().backward()

        for _, grad in self.fail(step, net):
            assert grad is None

    def test_cleared_after_the_call_that_fails(self):
        net = nn.Linear(300, 400)
        table = cygrad.randn(2, 300)

        def step(places):
            loss = net(nn.functional.embedding(places, table)).sum()
            net.zero_grad()
            loss.backward()

        for former, grad in self.fail(step, net):
            assert grad is former
        assert cygrad.equal(grad, self.fail(step, net)[0][1])

    def test_looked_at_before_the_call_that_fails(self):
        """The step as it is written finds what it would have found."""
        net = nn.Linear(300, 400)
        table = cygrad.randn(2, 300)

        def step(places):
            has_grad = net.weight.grad is not None
            net.zero_grad()
            if not has_grad:
                raise RuntimeError("no gradient was there")
            net(nn.functional.embedding(places, table)).sum().backward()

        net.weight.grad = cygrad.zeros(400, 300)
        compiled = cygrad.compile(step)
        for _ in range(7):
            compiled(cygrad.tensor([0, 1]))
        assert compiled._cygrad_step.replays() > 0
        with pytest.raises(IndexError, match="out of range"):
            compiled(cygrad.tensor([0, 7]))
