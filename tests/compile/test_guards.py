"""One test for each guard of tensors and modes: changed, steps give eager's bits, and are replayed before and after."""

import contextlib

import pytest
from compile.twins import Twins, World

import cygrad
from cygrad import nn

pytestmark = pytest.mark.interpreter


def other_gradient(world):
    for p in world.net.parameters():
        p.grad = cygrad.ones_like(p)


def hook(world):
    world.net[0].weight.register_hook(lambda grad: grad * 2)


def module_hook(world):
    world.net[1].register_forward_hook(lambda module, args, out: out * 2)


def other_memory(world):
    with cygrad.no_grad():
        world.net[0].weight.data = world.net[0].weight.data * 2


def in_place(world):
    with cygrad.no_grad():
        world.net[0].weight.mul_(2)


def other_layer(world):
    world.net[1] = nn.ReLU()


def other_parameter(world):
    world.net[2].bias = nn.Parameter(cygrad.ones(3))
    world.optimizer.param_groups[0]["params"].append(world.net[2].bias)


CHANGES = {
    "learning rate": lambda world: world.optimizer.param_groups[0].update(lr=0.5),
    "weight decay": lambda world: world.optimizer.param_groups[0].update(weight_decay=0.5),
    "momentum": lambda world: world.optimizer.param_groups[0].update(momentum=0.5),
    "maximize": lambda world: world.optimizer.param_groups[0].update(maximize=True),
    "number in an attribute": lambda world: setattr(world, "scale", 2.0),
    "gradients kept": lambda world: setattr(world, "clears", False),
    "eval": lambda world: world.net.eval(),
    "frozen parameter": lambda world: world.net[0].weight.requires_grad_(False),
    "cleared gradients": lambda world: world.optimizer.zero_grad(),
    "one cleared gradient": lambda world: setattr(world.net[0].weight, "grad", None),
    "other gradients": other_gradient,
    "other memory": other_memory,
    "changed in place": in_place,
    "hook of a tensor": hook,
    "hook of a module": module_hook,
    "other layer": other_layer,
    "other parameter": other_parameter,
    "loaded state": lambda world: world.net.load_state_dict({k: v * 2 for k, v in world.net.state_dict().items()}),
    "loaded optimizer": lambda world: world.optimizer.load_state_dict(world.optimizer.state_dict()),
    "other dtype": lambda world: (world.net.double(), setattr(world, "x", world.x.double()),
                                  setattr(world, "y", world.y.double())),
    "less data": lambda world: (setattr(world, "x", world.x[:3].clone()), setattr(world, "y", world.y[:3].clone())),
    "strides": lambda world: setattr(world, "x", world.x.t().contiguous().t()),
    "data that requires grad": lambda world: world.x.requires_grad_(),
    "data of a subclass": lambda world: setattr(world, "x", Subclass(world.x)),
    "one tensor twice": lambda world: setattr(world, "y", world.x[:, :3]),
    "parameter as an argument": lambda world: (setattr(world, "x", world.net[2].weight.detach()[:, :4]),
                                               setattr(world, "y", world.y[:3].clone())),
    "added group": lambda world: world.optimizer.add_param_group({"params": [cygrad.ones(1, requires_grad=True)]}),
}  # fmt: skip


class Subclass(cygrad.Tensor):
    pass


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_between_steps(case):
    twins = Twins()
    twins.run(6)
    assert twins.replays > 0, twins.compiled.explain()
    twins.both(CHANGES[case])
    twins.run(6)
    twins.both(CHANGES["number in an attribute"])
    twins.run(4)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
def test_a_learning_rate_that_is_scheduled(optimizer):
    twins = Twins(lambda: World(lambda p: getattr(cygrad.optim, optimizer)(p, lr=0.01)))
    schedules = twins.both(lambda w: cygrad.optim.lr_scheduler.ExponentialLR(w.optimizer, 0.9))
    for _ in range(12):
        twins.run(1)
        for schedule in schedules:
            schedule.step()


@contextlib.contextmanager
def default_dtype():
    cygrad.set_default_dtype(cygrad.float64)
    try:
        yield
    finally:
        cygrad.set_default_dtype(cygrad.float32)


@contextlib.contextmanager
def threads():
    former = cygrad.get_num_threads()
    cygrad.set_num_threads(1 if former > 1 else 2)
    try:
        yield
    finally:
        cygrad.set_num_threads(former)


@contextlib.contextmanager
def deterministic():
    cygrad.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        cygrad.use_deterministic_algorithms(False)


class Doubling(cygrad.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


MODES = {
    "no_grad": cygrad.no_grad,
    "inference": cygrad.inference_mode,
    "autocast": lambda: cygrad.autocast("cpu", dtype=cygrad.bfloat16),
    "float16": lambda: cygrad.autocast("cpu", dtype=cygrad.float16),
    "anomaly": cygrad.autograd.detect_anomaly,
    "profiler": cygrad.autograd.profiler.profile,
    "default dtype": default_dtype,
    "threads": threads,
    "deterministic": deterministic,
    "dual level": cygrad.autograd.forward_ad.dual_level,
    "function mode": Doubling,
    "saved tensors' hooks": lambda: cygrad.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("mode", MODES)
def test_a_mode(mode):
    if mode in ("autocast", "default dtype", "float16"):
        pytest.importorskip("ml_dtypes")

    def forward(world):
        def step(x, y):
            return (world.net(x) - y).tanh().mul(world.scale)

        world.step = step
        return world

    twins = Twins(lambda: forward(World()))
    for within in (cygrad.no_grad, MODES[mode], cygrad.no_grad, MODES[mode]):
        for _ in range(5):
            with within():
                expected = twins.eager.step(twins.eager.x, twins.eager.y)
                found = twins.compiled(twins.other.x, twins.other.y)
            assert cygrad.equal(expected, found) and expected.dtype == found.dtype
            assert expected.requires_grad == found.requires_grad and expected.is_inference() == found.is_inference()
    assert twins.replays > 0


def test_overlapping_arguments():
    @cygrad.compile
    def step(a, b):
        a.mul_(2)
        return a + b

    def arguments(overlap):
        memory = cygrad.arange(8.0)
        return (memory[:4], memory[2:6]) if overlap else (memory[:4], memory[4:])

    for overlap in (False,) * 5 + (True,) * 5 + (False,) * 2:
        one, two = arguments(overlap), arguments(overlap)
        assert cygrad.equal(step(*one), step.__wrapped__(*two)) and cygrad.equal(one[1], two[1])


def test_an_argument_that_is_reached_otherwise():
    world = [cygrad.ones(3)]

    @cygrad.compile
    def step(x):
        world[0].add_(1)
        return x * 2

    inside, other = world[0], cygrad.ones(3)
    for i in range(6):
        assert step(inside).tolist() == [2 * (i + 2)] * 3
        assert step(other).tolist() == [2] * 3
        world[0].sub_(1)


def test_a_seed():
    @cygrad.compile
    def step(x):
        return nn.functional.dropout(x, 0.5, training=True)

    x = cygrad.ones(64)
    cygrad.manual_seed(1)
    found = [step(x) for _ in range(8)]
    cygrad.manual_seed(1)
    assert all(cygrad.equal(step.__wrapped__(x), a) for a in found)
    cygrad.manual_seed(1)
    assert all(cygrad.equal(step(x), a) for a in found)
    state = cygrad.get_rng_state()
    step(x)
    cygrad.set_rng_state(state)
    after = step(x)
    cygrad.set_rng_state(state)
    assert cygrad.equal(step.__wrapped__(x), after)


READS = {
    "item": lambda y: y.sum().item() > 0,
    "bool": lambda y: bool((y > 0).all()),
    "float": lambda y: float(y.sum()) > 0,
    "int": lambda y: int(y.sum()) > 0,
    "index": lambda y: [1, 2, 3, 4, 5, 6, 7][y.to(cygrad.int64)[0]] > 2,
    "numpy": lambda y: y.numpy()[0] > 0,
    "asarray": lambda y: __import__("numpy").asarray(y)[0] > 0,
    "tolist": lambda y: y.tolist()[0] > 0,
    "text": lambda y: "2." in repr(y),
    "format": lambda y: f"{y.sum()}" > "7",
    "contains": lambda y: 2.0 in y,
    "unpacked": lambda y: max(a.item() for a in y) > 0,
    "nonzero": lambda y: len(y.nonzero()) > 3,
    "unique": lambda y: len(y.unique()) > 1,
    "mask": lambda y: len(y[y > 0]) > 3,
    "argwhere": lambda y: len(cygrad.argwhere(y)) > 3,
    "where": lambda y: len(cygrad.where(y > 0)[0]) > 3,
    "integers": lambda y: y.long().tolist()[0] > 0,
    "index of a range": lambda y: range(-9, 9)[y[0].long()] > 0,
    "bincount": lambda y: len(y.long().abs().bincount()) > 2,
    "classes": lambda y: nn.functional.one_hot(y.long().abs()).shape[1] > 3,
    "equal": lambda y: cygrad.equal(y, cygrad.ones(4) * 2),
    "allclose": lambda y: cygrad.allclose(y, cygrad.ones(4) * 2),
    "data_ptr": lambda y: y.data_ptr() % 4 == 0,
    "dlpack": lambda y: __import__("numpy").from_dlpack(y)[0] > 0,
    "memoryview": lambda y: y.untyped_storage().nbytes() > 0,
    "version": lambda y: y._version > 0,
    "pickle": lambda y: len(__import__("pickle").dumps(y)) > 0,
    "comparison": lambda y: bool(y[0] > 1),
    "assert": lambda y: not (y < 0).any(),
    "max": lambda y: max(y) > 1,
}


@pytest.mark.parametrize("read", READS)
def test_a_value_that_is_read_decides(read):
    def step(x):
        y = x * 2
        return y * 3 if reads(y) else y * 5

    reads = READS[read]
    compiled = cygrad.compile(step)
    for _ in range(5):
        for x in (cygrad.ones(4), cygrad.tensor([1.0, 0.0, -1.0, -3.0]), -cygrad.ones(4)):
            try:
                expected = step(x)
            except (IndexError, RuntimeError) as error:
                with pytest.raises(type(error)):
                    compiled(x)
                continue
            assert cygrad.equal(compiled(x), expected)


def test_whether_modules_swap_their_parameters():
    def make():
        net = nn.Linear(2, 2, bias=False)
        source = cygrad.ones(2, 2)

        def step(x):
            net.load_state_dict({"weight": source})
            return x @ net.weight.detach()

        return net, step

    (net, step), (other, written) = make(), make()
    compiled = cygrad.compile(step)
    x = cygrad.ones(2, 2)
    for _ in range(6):
        compiled(x), written(x)
    assert compiled._cygrad_step.replays() > 0
    cygrad.__future__.set_swap_module_params_on_conversion(True)
    try:
        assert cygrad.equal(compiled(x), written(x))
    finally:
        cygrad.__future__.set_swap_module_params_on_conversion(False)
    assert net.weight._version == other.weight._version


def test_a_mode_that_the_call_leaves_changed():
    @cygrad.compile
    def step(x):
        cygrad.set_grad_enabled(False)
        return x * 2

    try:
        for _ in range(6):
            assert step(cygrad.ones(2)).tolist() == [2, 2] and not cygrad.is_grad_enabled()
            cygrad.set_grad_enabled(True)
    finally:
        cygrad.set_grad_enabled(True)
    assert step._cygrad_step.replays() == 0 and "changes a mode" in str(step.explain())


def test_the_default_device():
    @cygrad.compile
    def step(x):
        return x * 2 if cygrad.zeros(1).is_meta else x * 3

    x = cygrad.ones(2)
    for _ in range(6):
        assert step(x).tolist() == [3, 3]
    with cygrad.device("meta"):
        for _ in range(6):
            assert step(x).tolist() == [2, 2]
    assert step(x).tolist() == [3, 3]


def test_tensors_elsewhere_do_not_prevent_replays():
    assert cygrad.ones(2, device="meta").is_meta  # from now on, calls look where their operands are

    @cygrad.compile
    def step(x):
        return x * 2

    for _ in range(6):
        step(cygrad.ones(2))
    assert step._cygrad_step.replays() > 0


def test_layouts_that_the_function_asks_for():
    def step(x):
        y = x * 2
        return y.sum(1) if y.is_contiguous() else y.sum(0)

    compiled = cygrad.compile(step)
    x = cygrad.randn(4, 4)
    for _ in range(8):
        assert cygrad.equal(compiled(x), step(x))
        assert cygrad.equal(compiled(x.T), step(x.T))
    assert compiled._cygrad_step.replays() >= 8


def test_attributes_of_arguments():
    def scaled(x):
        return (x * x.factor).sum()

    step = cygrad.compile(scaled)
    for factor in range(8):
        x = cygrad.ones(3)
        x.factor = factor if factor % 2 else cygrad.full((3,), float(factor))
        assert step(x).item() == 3 * factor


def test_attributes_of_other_tensors():
    for weight in (cygrad.ones(3), nn.Parameter(cygrad.ones(3))):
        step = cygrad.compile(lambda x, weight=weight: x * weight.detach() * getattr(weight, "factor", 2))
        unused = cygrad.compile(lambda x, weight=weight: x * 2 if hasattr(weight, "factor") else x)
        for _ in range(6):
            assert step(cygrad.ones(3)).sum() == 6
            assert unused(cygrad.ones(3)).sum() == 3
        assert step._cygrad_step.replays() > 0
        assert unused._cygrad_step.replays() > 0
        weight.factor = 3
        assert step(cygrad.ones(3)).sum() == 9
        assert unused(cygrad.ones(3)).sum() == 6


@pytest.mark.parametrize("clears", [True, False])
def test_gradients_of_arguments(clears):
    """Each call may get another tensor, or one with another gradient."""

    def trained(x):
        if clears:
            x.grad = None
        (x * x).sum().backward()

    step = cygrad.compile(trained)
    for call in range(8):
        x = cygrad.full((2,), float(call)).requires_grad_()
        x.grad = cygrad.ones(2)
        step(x)
        assert x.grad.tolist() == [2.0 * call + (not clears)] * 2


def test_reading_gradients_of_arguments():
    step = cygrad.compile(lambda x: (x * x.grad).sum())
    grads = [cygrad.full((2,), each) for each in (1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 7.0)]
    for grad in grads:
        x = cygrad.ones(2, requires_grad=True)
        x.grad = grad
        assert step(x).item() == 2 * grad[0].item()
