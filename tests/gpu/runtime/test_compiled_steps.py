"""Compiled steps on a GPU: graphs leave what eager steps leave, and what no graph can do runs as it is written."""

import cupy_standin
import pytest
from cupy_standin import compiler

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn, optim
from cygrad._core.graph.internals import array_of
from cygrad._core.replay.parts import pass_over
from cygrad._kernels.device import cupy_library, gpu_forms

pytestmark = pytest.mark.skipif(
    compiler.compiler() is None and not cupy_library.is_available(),
    reason="kernels run by a C++ compiler: there is none",
)


@pytest.fixture(autouse=True)
def gpu(cupy):
    yield cupy
    torch.compiler.reset()
    assert not gpu_forms.captures


def made(*shape, seed=0, **how):
    torch.manual_seed(seed)
    return torch.rand(*shape, **how).cuda() + 0.5


def bits(tensor):
    return tensor.dtype, tensor.shape, array_of(tensor.detach().cpu().contiguous()).tobytes()


def network(*, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5)).cuda()


class Training:
    """A training step on a model of its own."""

    def __init__(self, make=lambda p: optim.SGD(p, lr=0.1, momentum=0.9)):
        self.model = network()
        self.optimizer = make(self.model.parameters())

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def left(self):
        """The bits of all that a step changes."""
        parameters = list(self.model.parameters())
        states = [v for p in parameters for v in self.optimizer.state[p].values() if isinstance(v, torch.Tensor)]
        return [bits(t) for t in (*parameters, *(p.grad for p in parameters), *states)]


def batch(seed):
    torch.manual_seed(seed)
    return torch.randn(4, 6).cuda(), torch.randint(0, 5, (4,)).cuda()


def explained(function):
    return function.explain()


# --- Whole steps -------------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "plain SGD": lambda p: optim.SGD(p, lr=0.1),
    "Adam": lambda p: optim.Adam(p, lr=0.01, capturable=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, capturable=True, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_leaves_what_eager_leaves(name):
    eager, compiled = Training(OPTIMIZERS[name]), Training(OPTIMIZERS[name])
    step = torch.compile(compiled.step)
    for i in range(9):
        expected, found = eager.step(*batch(i)), step(*batch(i))
        assert bits(found) == bits(expected), i
        assert compiled.left() == eager.left(), i
        versions = [[p._version for p in t.model.parameters()] for t in (eager, compiled)]
        assert versions[0] == versions[1]
        assert found.grad_fn.name() == expected.grad_fn.name()
    assert explained(step).replays >= 4, explained(step)


def test_a_replay_is_one_graph():
    training = Training()
    step = torch.compile(training.step)
    for i in range(6):
        step(*batch(i))
    x, y = batch(7)
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in tells of launches")
    with cupy_standin.watch() as seen:
        step(x, y)
    assert not seen.synchronizations and not seen.transfers
    assert explained(step).replays >= 3


def test_results_and_gradients_that_are_kept_are_not_overwritten():
    eager, compiled = Training(), Training()
    step = torch.compile(compiled.step)
    kept, expected = [], []
    for i in range(8):
        for training, function, into in ((compiled, step, kept), (eager, eager.step, expected)):
            loss = function(*batch(i))
            into.append((loss, [p.grad for p in training.model.parameters()]))
    for (loss, grads), (own, others) in zip(kept, expected):
        assert bits(loss) == bits(own)
        assert list(map(bits, grads)) == list(map(bits, others))
    assert explained(step).replays >= 3


def test_gradients_that_add_up():
    model = network()
    other = network()

    @torch.compile
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach()

    for i in range(8):
        step(*batch(i))
        F.cross_entropy(other(batch(i)[0]), batch(i)[1]).backward()
        assert [bits(p.grad) for p in model.parameters()] == [bits(p.grad) for p in other.parameters()]


CLEARED = "a tensor outside of the step has a grad, or has none any more, or has another"


def adds_up_as_eager(change):
    """Whether gradients that are changed between calls are as eager's."""
    model, other = network(), network()

    @torch.compile
    def step(x, y):
        F.cross_entropy(model(x), y).backward()

    for i in range(12):
        for each in (model, other):
            if i in (8, 10):
                for p in each.parameters():
                    change(p)
        step(*batch(i))
        F.cross_entropy(other(batch(i)[0]), batch(i)[1]).backward()
        grads = [[None if p.grad is None else bits(p.grad) for p in each.parameters()] for each in (model, other)]
        if grads[0] != grads[1]:
            return False
    assert explained(step).replays >= 3, explained(step)
    return True


@pytest.mark.parametrize("change", ["clear", "replace"])
def test_gradients_that_change_between_calls(change):
    def act(p):
        p.grad = None if change == "clear" else torch.ones_like(p)

    assert adds_up_as_eager(act)
    pass_over({CLEARED})
    try:
        assert not adds_up_as_eager(act)
    finally:
        pass_over(None)


def test_inference_of_a_module():
    model, eager = network(), network()
    compiled = torch.compile(model.forward)
    with torch.no_grad():
        for i in range(8):
            x, _ = batch(i)
            assert bits(compiled(x)) == bits(eager(x))
    assert explained(compiled).replays >= 4, explained(compiled)


def test_random_numbers_are_those_of_eager():
    def step(x):
        return F.dropout(x, 0.5) + torch.rand(64, device="cuda")

    x = made(64)
    torch.cuda.manual_seed(5)
    expected = [bits(step(x)) for _ in range(8)]
    after = torch.cuda.get_rng_state().tolist()
    torch.cuda.manual_seed(5)
    compiled = torch.compile(step)
    assert [bits(compiled(x)) for _ in range(8)] == expected
    assert torch.cuda.get_rng_state().tolist() == after
    assert explained(compiled).replays >= 4, explained(compiled)


def test_a_function_of_several_results_and_its_argument():
    def step(x, scale):
        y = x * scale
        return {"same": x, "twice": (y, y), "number": 3}

    compiled = torch.compile(step)
    for i in range(7):
        x = made(5, seed=i)
        found = compiled(x, 2.0)
        assert found["same"] is x and found["twice"][0] is found["twice"][1] and found["number"] == 3
        assert bits(found["twice"][0]) == bits(x * 2.0)
    assert explained(compiled).replays >= 3


@pytest.mark.parametrize("how", ["transposed", "expanded", "sliced", "strided", "0-dim", "empty"])
def test_layouts_of_arguments(how):
    change = {
        "transposed": lambda x: x.t(),
        "expanded": lambda x: x[:1].expand(6, 8),
        "sliced": lambda x: x.flatten()[1:],
        "strided": lambda x: x[:, ::2],
        "0-dim": lambda x: x[0, 0],
        "empty": lambda x: x[:0],
    }[how]

    def step(x):
        return (x * 2).exp() + x

    compiled = torch.compile(step)
    for i in range(7):
        x = change(made(6, 8, seed=i))
        found, expected = compiled(x), step(x)
        assert bits(found) == bits(expected) and found.stride() == expected.stride()
    assert explained(compiled).replays >= 3, explained(compiled)


def test_streams_wait_for_each_other():
    compiled = torch.compile(lambda x: (x * 2).exp())
    for i in range(6):
        x = made(50, seed=i)
        expected = bits((x * 2).exp())
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            found = compiled(x)
        torch.cuda.current_stream().wait_stream(side)
        assert bits(found) == expected
        assert bits(compiled(x)) == expected


# --- Guards ------------------------------------------------------------------------------------


def replaying(function, *args):
    compiled = torch.compile(function)
    for _ in range(6):
        compiled(*args)
    assert explained(compiled).replays >= 2, explained(compiled)
    return compiled


def test_another_shape_or_dtype_is_another_plan():
    compiled = replaying(lambda x: x * 2 + 1, made(4))
    for x in (made(5), made(4, dtype=torch.float64), made(2, 2), made(4).half()):
        for _ in range(5):
            assert bits(compiled(x)) == bits(x * 2 + 1)
    assert len(explained(compiled).plans) == 5


def test_changed_state_is_seen():
    held = {"scale": 2.0, "bias": made(4)}
    compiled = replaying(lambda x: x * held["scale"] + held["bias"], made(4))
    x = made(4, seed=3)
    held["scale"] = 3.0
    assert bits(compiled(x)) == bits(x * 3.0 + held["bias"])
    held["scale"] = 2.0
    held["bias"].add_(1)  # a graph reads it anew
    assert bits(compiled(x)) == bits(x * 2.0 + held["bias"])
    held["bias"] = made(4, seed=9)
    assert bits(compiled(x)) == bits(x * 2.0 + held["bias"])
    held["bias"].data = made(4, seed=11)
    assert bits(compiled(x)) == bits(x * 2.0 + held["bias"])


def test_another_rate_is_seen():
    eager, compiled = Training(), Training()
    step = torch.compile(compiled.step)
    for i in range(12):
        for training, function in ((eager, eager.step), (compiled, step)):
            training.optimizer.param_groups[0]["lr"] = 0.1 if i < 7 else 0.05
            function(*batch(i))
        assert compiled.left() == eager.left(), i


COUNTING = {
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True, maximize=True),
    "decaying Adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1),
    "two groups": lambda p: optim.Adam(
        [{"params": [q], "betas": (0.1 * (i + 1), 0.9)} for i, q in enumerate(p)], lr=0.01
    ),
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adadelta": lambda p: optim.Adadelta(p, lr=0.1),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "ASGD": lambda p: optim.ASGD(p, lr=0.01, t0=3),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "Rprop": lambda p: optim.Rprop(p, lr=0.01),
}


@pytest.mark.parametrize("name", COUNTING)
def test_optimizers_that_count_in_main_memory_under_a_schedule(name):
    eager, compiled = (Training(COUNTING[name]) for _ in range(2))
    step = torch.compile(compiled.step)
    for i in range(14):
        for training, function in ((eager, eager.step), (compiled, step)):
            for group in training.optimizer.param_groups:
                group["lr"] = 0.01 / (1 + i)
            function(*batch(i))
        assert compiled.left() == eager.left(), i
        versions = [[v._version for s in t.optimizer.state.values() for v in s.values()] for t in (eager, compiled)]
        assert versions[0] == versions[1]
    (plan,) = explained(step).plans
    assert explained(step).replays == 11, explained(step)


def counted(training):
    return [training.optimizer.state[p]["step"] for p in training.model.parameters()]


HOST_CHANGES = {
    "weight decay": lambda t: t.optimizer.param_groups[0].update(weight_decay=0.5),
    "betas": lambda t: t.optimizer.param_groups[0].update(betas=(0.5, 0.6)),
    "betas of another kind": lambda t: t.optimizer.param_groups[0].update(betas=[0.5, 0.6]),
    "a sign": lambda t: t.optimizer.param_groups[0].update(eps=0.0),
    "a rate in a tensor": lambda t: t.optimizer.param_groups[0].update(lr=torch.tensor(0.02)),
    "all counts": lambda t: [c.fill_(3.0) for c in counted(t)],
    "one count": lambda t: counted(t)[1].fill_(3.0),
    "another count": lambda t: t.optimizer.state[list(t.model.parameters())[0]].update(step=torch.tensor(9.0)),
}


@pytest.mark.parametrize("name", HOST_CHANGES)
def test_what_optimizers_read_in_main_memory_may_change(name):
    eager, compiled = (Training(lambda p: optim.Adam(p, lr=0.01)) for _ in range(2))
    step = torch.compile(compiled.step)
    for i in range(14):
        for training, function in ((eager, eager.step), (compiled, step)):
            if i == 6:
                HOST_CHANGES[name](training)
            function(*batch(i))
        assert compiled.left() == eager.left(), i
    assert explained(step).replays >= 3


def test_a_count_that_the_step_reads_itself_is_not_captured():
    training, eager = (Training(lambda p: optim.Adam(p, lr=0.01)) for _ in range(2))

    def function(training, x, y):
        loss = training.step(x, y)
        return loss * float(training.optimizer.state[training.model[0].weight]["step"])

    step = torch.compile(lambda x, y: function(training, x, y))
    for i in range(7):
        assert bits(step(*batch(i))) == bits(function(eager, *batch(i)))
    assert explained(step).replays == 0


def test_scalars_in_main_memory_that_are_read_are_not_captured():
    scale, unused = torch.tensor(2.0), torch.tensor(1.0)
    for use in (lambda x: x * scale, lambda x: x * float(scale), lambda x: x if scale > 1 else -x):
        compiled = torch.compile(use)
        for i in range(7):
            x = made(4, seed=i)
            assert bits(compiled(x)) == bits(use(x))
        assert explained(compiled).replays == 0, explained(compiled)

    def reach(x):
        return (x * 2, unused)[0]

    compiled = torch.compile(reach)
    for i in range(7):
        x = made(4, seed=i)
        assert bits(compiled(x)) == bits(x * 2)
    assert explained(compiled).replays >= 3, explained(compiled)
    assert unused.item() == 1 and scale.item() == 2


def test_an_argument_on_the_memory_of_a_parameter():
    weight = made(6)

    def step(x):
        y = x + 1
        weight.mul_(2)
        return y * weight + x

    compiled = torch.compile(step)
    for i in range(6):
        compiled(made(6, seed=i))
    assert explained(compiled).replays >= 2, explained(compiled)
    twin = weight.clone()
    expected = (twin + 1) * (twin * 2) + twin * 2
    assert bits(compiled(weight[:])) == bits(expected)


def test_other_devices_and_modes():
    compiled = replaying(lambda x: x * 2, made(4))
    assert compiled(torch.ones(4)).tolist() == [2.0] * 4
    x = made(4).requires_grad_()
    y = compiled(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 4
    with torch.autocast("cuda", torch.float16):
        assert compiled(made(4)).dtype == torch.float32


def test_autocast_within_a_step():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3, device="cuda")

    def step(x):
        layer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            y = layer(x)
        y.float().square().sum().backward()
        return y

    compiled = replaying(step, made(2, 4))
    x = made(2, 4, seed=7)
    expected = bits(step(x)), bits(layer.weight.grad)
    assert (bits(compiled(x)), bits(layer.weight.grad)) == expected


def test_within_a_graph_of_the_user():
    compiled = replaying(lambda x: x * 2, made(4))
    x, g = made(4), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = compiled(x)
    x.fill_(3.0)
    g.replay()
    assert y.tolist() == [6.0] * 4
    torch.cuda.graph.default_capture_stream = None


def weighted():
    weight = made(4).requires_grad_()
    return lambda x: x * weight


def with_ones():
    return lambda x: x.float() * torch.ones(4, device="cuda")


NEEDED = {
    "a mode of the thread differs": (weighted, lambda: torch.set_grad_enabled(False)),
    "the default dtype differs": (with_ones, lambda: torch.set_default_dtype(torch.float64)),
}


@pytest.mark.parametrize("reason", NEEDED)
def test_each_guard_is_needed(reason):
    make, change = NEEDED[reason]
    step, x = make(), made(4)
    compiled = replaying(step, x)
    try:
        change()
        expected = step(x)
        pass_over({reason})
        stale = compiled(x)
        pass_over(None)
        found = compiled(x)
    finally:
        pass_over(None)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    assert (bits(found), found.requires_grad) == (bits(expected), expected.requires_grad)
    assert (bits(stale), stale.requires_grad) != (bits(expected), expected.requires_grad)


# --- What is not replayed ----------------------------------------------------------------------


def outcomes(step, *args):
    """Return what eight calls return, each with fresh arguments, and why they were not replayed."""
    compiled = torch.compile(step)
    found = [compiled(*args) for _ in range(8)]
    seen = explained(compiled)
    assert seen.replays == 0
    return found, str(seen)


REFUSED = {
    "a value that is read": (lambda x: x * x.sum().item(), "item"),
    "a copy to the CPU": (lambda x: (x * 2).cpu(), ""),
    "a mask": (lambda x: x[x > 0.7], "captured as a graph"),
    "a condition": (lambda x: x * 2 if x.sum() > 0 else x, "captured as a graph"),
    "a copy to the GPU": (lambda x: x + torch.ones(4).cuda(), "captured as a graph"),
    "an argument that is changed": (lambda x: x.add_(0), "an argument is changed in place"),
    "a view of an argument": (lambda x: x[1:], "a view"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_can_do_runs_as_it_is_written(name):
    step, reason = REFUSED[name]
    x = made(4)
    expected = step(x)
    found, text = outcomes(step, x)
    assert all(bits(each) == bits(expected) for each in found)
    assert reason in text, text
    assert bits(x) == bits(made(4)) or name == "an argument that is changed"


def test_random_numbers_of_the_cpu():
    def step(x):
        return x * torch.rand(())

    x = made(4)
    torch.manual_seed(3)
    expected = [bits(step(x)) for _ in range(8)]
    torch.manual_seed(3)
    compiled = torch.compile(step)
    found = [bits(compiled(x)) for _ in range(8)]
    assert found == expected and explained(compiled).replays == 0


def test_a_capture_that_fails_leaves_nothing():
    weight, x = made(4).requires_grad_(), made(4)
    twin = made(4).requires_grad_()

    def step(w, x):
        w.grad = None
        loss = (w * x).exp().sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.1)
        return loss.detach() * bool(loss > 0)

    compiled = torch.compile(lambda x: step(weight, x))
    for _ in range(7):
        assert bits(compiled(x)) == bits(step(twin, x))
        assert bits(weight) == bits(twin) and bits(weight.grad) == bits(twin.grad)
        assert weight._version == twin._version
    assert explained(compiled).replays == 0


def test_fullgraph_tells_why():
    compiled = torch.compile(lambda x: x * x.sum().item(), fullgraph=True)
    with pytest.raises(torch.errors.GraphBreak, match="cannot be replayed"):
        for _ in range(4):
            compiled(made(3))
