"""Plans of one op on few elements, which take longer to replay than to run as they are written."""

import pytest
from compile.replays import bits

import cygrad
from cygrad._core.replay.calls import plans

CALLS = 400  # until all trials are over


@pytest.fixture
def clock(monkeypatch):
    """Have replays, or calls as they are written, look slow; the first trial is a replay, and then they take turns."""

    def begin(replay, written):
        times, now = [replay, written], [0]

        def tick():
            now.append(0)
            if len(now) % 2:  # the end of a trial
                now[0] += times[0]
                times.reverse()
            return now[0]

        monkeypatch.setattr(plans, "perf_counter_ns", tick)

    return begin


def test_slower_plan_runs_as_written(clock):
    clock(1000, 10)
    seen = []

    def step(x, y):
        return x + y

    compiled = cygrad.compile(step)
    x, y = cygrad.randn(3), cygrad.randn(3)
    for _ in range(CALLS):
        assert bits(compiled(x, y)) == bits(x + y)
    (plan,) = compiled._cygrad_step.plans.plans
    assert plan.is_slower
    replays, calls = plan.replays, compiled._cygrad_step.calls
    for _ in range(10):
        compiled(y, x)
    assert plan.replays == replays
    assert compiled._cygrad_step.calls == calls + 10
    large, other = cygrad.randn(10_000), cygrad.randn(10_000)
    for _ in range(5):
        seen.append(bits(compiled(large, other)))
    assert set(seen) == {bits(large + other)}
    assert compiled._cygrad_step.plans.plans[0].replays > 0, "another shape has a plan of its own"


def test_faster_plan_is_replayed(clock):
    clock(10, 1000)
    compiled = cygrad.compile(lambda x, y: x + y)
    x, y = cygrad.randn(3), cygrad.randn(3)
    for _ in range(CALLS):
        assert bits(compiled(x, y)) == bits(x + y)
    (plan,) = compiled._cygrad_step.plans.plans
    before = plan.replays
    compiled(x, y)
    assert not plan.is_slower
    assert plan.replays == before + 1


def test_trials_do_the_same_in_either_way(clock):
    clock(10, 10)
    state, twin = cygrad.zeros(2), cygrad.zeros(2)

    def step(x):
        state.add_(x)
        return state + 1

    compiled = cygrad.compile(step)
    for i in range(CALLS):
        x = cygrad.full((2,), float(i))
        assert bits(compiled(x)) == bits(twin.add_(x) + 1)
        assert bits(state) == bits(twin)
        assert state._version == twin._version


@pytest.mark.parametrize(("replay", "is_slower"), [(140, False), (160, True)])
def test_results_with_a_history(clock, replay, is_slower):
    clock(replay, 100)
    compiled = cygrad.compile(lambda x: x * 2)
    weight = cygrad.randn(3)
    for _ in range(CALLS):
        x = cygrad.randn(3, requires_grad=True)
        out = compiled(x)
        out.backward(weight)
        assert bits(out) == bits(x * 2)
        assert bits(x.grad) == bits(weight * 2)
    (plan,) = compiled._cygrad_step.plans.plans
    assert plan.is_slower == is_slower
    assert (compiled(x).grad_fn.name() == "CompiledFunctionBackward") != is_slower


def test_error_in_a_call_as_written_ends_it(clock):
    clock(1000, 10)
    compiled = cygrad.compile(lambda x: x + 1)
    for _ in range(CALLS):
        compiled(cygrad.ones(2))
    with pytest.raises(TypeError):
        compiled("text")
    assert not cygrad.compiler.is_compiling()


def test_is_compiling_holds_in_calls_as_written(clock):
    clock(1000, 10)
    seen = []
    compiled = cygrad.compile(lambda x: seen.append(cygrad.compiler.is_compiling()) or x)
    for _ in range(50):
        compiled(cygrad.ones(2))
    assert all(seen)
    assert not cygrad.compiler.is_compiling()
