"""Compiled modules and functions whose backward pass comes later, outside of them: bit for bit as eager ones."""

import copy
import warnings

import pytest
from compile.replays import bits
from compile.twins import state_of

import cygrad
from cygrad import nn

F = nn.functional


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


def with_norms():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


def with_dropout():
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Softmax(-1), nn.Linear(8, 3))


def convolution():
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3)
    )


class Twice(nn.Module):
    """Uses its weights twice."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(cygrad.sigmoid(self.inner(cygrad.sigmoid(self.inner(x)))))


NETWORKS = {"plain": network, "norms": with_norms, "dropout": with_dropout, "convolution": convolution, "twice": Twice}
OPTIMIZERS = {
    "SGD": lambda p: cygrad.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: cygrad.optim.Adam(p, lr=0.01),
}


class Pair:
    """An eager model and a compiled one with equal weights; `both` does the same with each, and compares all bits."""

    def __init__(self, make=network, optimizer="SGD"):
        cygrad.manual_seed(1)
        self.eager = make()
        self.eager, self.other = copy.deepcopy(self.eager), copy.deepcopy(self.eager)  # with versions that begin at 0
        self.compiled = cygrad.compile(self.other)
        self.optimizers = [OPTIMIZERS[optimizer](model.parameters()) for model in (self.eager, self.other)]
        self.x, self.y = cygrad.randn(5, 4), cygrad.randn(5, 3)

    def both(self, act):
        state = cygrad.get_rng_state()
        wanted = self.outcome(act, self.eager, self.optimizers[0], self.eager)
        after = cygrad.get_rng_state()
        cygrad.set_rng_state(state)
        found = self.outcome(act, self.compiled, self.optimizers[1], self.other)
        assert found == wanted
        assert (cygrad.get_rng_state() == after).all()

    def outcome(self, act, call, optimizer, model):
        try:
            value = act(call, optimizer)
        except RuntimeError as error:  # of what an eager pass had reached until then, leaves have gradients
            return str(error).partition("\n")[0]
        if isinstance(value, cygrad.Tensor):
            value = [value]
        if isinstance(value, (list, tuple)):
            value = [None if t is None else (bits(t), t.requires_grad, t.is_leaf, t._version) for t in value]
        tensors = [*model.parameters(), *model.buffers()]
        return value, [(bits(t), t._version, None if t.grad is None else bits(t.grad)) for t in tensors]

    @property
    def replays(self):
        return step_of(self.compiled).replays()

    @property
    def past(self):
        return step_of(self.compiled).plans.plans[0].program.history


def step_of(compiled):
    """The state of a compiled function or module."""
    for value in (compiled, *vars(compiled).values()):
        if hasattr(value, "_cygrad_step"):
            return value._cygrad_step
    raise AssertionError(vars(compiled))


def train(x, y, loss=lambda out, y: ((out - y) ** 2).mean()):
    def act(call, optimizer):
        optimizer.zero_grad()
        out = call(x)
        found = loss(out, y)
        found.backward()
        optimizer.step()
        return out, found

    return act


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_training(name, optimizer):
    pair = Pair(NETWORKS[name], optimizer)
    for i in range(12):
        pair.both(train(pair.x + i, pair.y))
    assert pair.replays == 9
    assert len(pair.past.layouts) == 1


def test_the_node_has_pytorchs_name():
    pair = Pair()
    for _ in range(5):
        pair.both(train(pair.x, pair.y))
    out = pair.compiled(pair.x)
    assert type(out.grad_fn).__name__ == out.grad_fn.name() == "CompiledFunctionBackward"
    leaves = {id(node.variable) for node, _ in out.grad_fn.next_functions}
    assert leaves == set(map(id, pair.other.parameters()))


@pytest.mark.parametrize(
    "loss", [lambda out, y: out.sum(), lambda out, y: out[1].sum(), lambda out, y: out.t().exp().mean()]
)
def test_gradients_of_other_layouts_are_learnt(loss):
    pair = Pair()
    for i in range(14):
        pair.both(train(pair.x + i, pair.y, loss))
    assert pair.replays > 0 and len(pair.past.layouts) <= 2


def test_cross_entropy():
    pair, y = Pair(), cygrad.tensor([0, 2, 1, 1, 0])
    for i in range(8):
        pair.both(train(pair.x + i, y, F.cross_entropy))
    assert pair.replays == 5


def test_gradients_accumulate():
    pair = Pair()

    def act(call, optimizer):
        optimizer.zero_grad()
        for k in range(3):
            call(pair.x + k).pow(2).mean().backward()
        optimizer.step()

    for _ in range(4):
        pair.both(act)
    assert pair.replays == 9


def test_several_calls_before_one_backward():
    pair = Pair()

    def act(call, optimizer):
        outs = [call(pair.x * k) for k in range(1, 4)]
        sum(out.pow(2).mean() for out in outs).backward()
        optimizer.step()
        optimizer.zero_grad()
        return outs

    for _ in range(5):
        pair.both(act)
    assert pair.replays == 12


def test_passes_in_another_order_than_calls():
    pair = Pair()

    def act(call, optimizer):
        first, second = call(pair.x), call(pair.x + 1)
        first.pow(2).mean().backward()
        second.pow(2).mean().backward()

    for _ in range(4):
        pair.both(act)
    assert pair.replays == 5


def test_retained_graphs():
    pair = Pair()

    def act(call, optimizer):
        out = call(pair.x)
        loss = (out * out).mean()
        loss.backward(retain_graph=True)
        loss.backward()
        return out

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3


def test_a_second_pass_is_eagers_error():
    pair = Pair()

    def act(call, optimizer):
        loss = call(pair.x).pow(2).mean()
        loss.backward()
        loss.backward()

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3


@pytest.mark.parametrize("wanted", ["input", "parameters", "both", "weight"])
def test_gradients_asked_for(wanted):
    pair = Pair()

    def act(call, optimizer):
        x = pair.x.clone().requires_grad_()
        parameters = list(optimizer.param_groups[0]["params"])
        inputs = {"input": [x], "parameters": parameters, "both": [x, *parameters], "weight": parameters[:1]}[wanted]
        return cygrad.autograd.grad(call(x).exp().mean(), inputs)

    for _ in range(14):
        pair.both(act)
    assert pair.replays > 3


def test_an_argument_that_requires_grad_collects_it():
    pair = Pair()

    def act(call, optimizer):
        x = pair.x.clone().requires_grad_()
        call(x).pow(2).mean().backward()
        return x.grad

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3


def test_an_argument_with_a_history():
    pair = Pair()
    weight = cygrad.randn(4, 4, requires_grad=True)

    def act(call, optimizer):
        weight.grad = None
        call(cygrad.tanh(pair.x @ weight)).pow(2).mean().backward()
        return weight.grad

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3


def with_history(call, x, weight):
    """The argument's history leads to the same weights as the function."""
    return call(cygrad.tanh(x @ weight))


def several_times(call, x, weight):
    for _ in range(4):
        x = x + call(x)
    return x


def residual(call, x, weight):
    hidden = x @ weight
    return hidden * call(hidden)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", [with_history, several_times, residual])
def test_an_argument_whose_history_leads_to_the_same_leaves(use, create_graph):
    weight, x = cygrad.randn(4, 4, requires_grad=True), cygrad.randn(3, 4)

    def function(hidden):
        return cygrad.sin(hidden @ weight)

    def gradients(call):
        first = cygrad.autograd.grad(use(call, x, weight).sum(), weight, create_graph=create_graph)[0]
        return [first, *cygrad.autograd.grad((first**2).sum(), weight)] if create_graph else [first]

    compiled = cygrad.compile(function)
    for _ in range(8):
        for found, wanted in zip(gradients(compiled), gradients(function), strict=True):
            cygrad.testing.assert_close(found, wanted)
    assert step_of(compiled).replays() > 0


def test_an_argument_that_was_computed_from_another():
    def product(a, b):
        return cygrad.sin(a * b).sum()

    compiled, x = cygrad.compile(product), cygrad.randn(5, requires_grad=True)
    for _ in range(8):
        found, wanted = (cygrad.autograd.grad(call(x, x * 2), x)[0] for call in (compiled, product))
        assert bits(found) == bits(wanted)
    assert step_of(compiled).replays() > 0


def test_double_backward():
    pair = Pair()

    def act(call, optimizer):
        x = pair.x.clone().requires_grad_()
        (slope,) = cygrad.autograd.grad(call(x).tanh().sum(), x, create_graph=True)
        slope.pow(2).mean().backward()
        return slope.detach(), x.grad

    for _ in range(7):
        pair.both(act)
    assert pair.replays > 0


def test_double_backward_draws_the_same_numbers():
    pair = Pair(with_dropout)

    def act(call, optimizer):
        x = pair.x.clone().requires_grad_()
        out = call(x)
        (slope,) = cygrad.autograd.grad(out.tanh().sum(), x, create_graph=True)
        slope.pow(2).mean().backward()
        return out, slope.detach(), cygrad.rand(2)

    for _ in range(7):
        pair.both(act)
    assert pair.replays > 0


def test_double_backward_has_no_effects_of_the_forward():
    pair = Pair(with_norms)

    def act(call, optimizer):
        x = pair.x.clone().requires_grad_()
        (slope,) = cygrad.autograd.grad(call(x).tanh().sum(), x, create_graph=True)
        slope.pow(2).mean().backward()
        return slope.detach()

    for _ in range(7):
        pair.both(act)
    assert pair.replays > 0


def test_hooks():
    pair = Pair()
    seen = []
    for model in (pair.eager, pair.other):
        model[0].weight.register_hook(lambda grad: grad * 2)
        model[2].weight.register_post_accumulate_grad_hook(lambda p: seen.append(bits(p.grad)))

    def act(call, optimizer):
        optimizer.zero_grad()
        x = pair.x.clone().requires_grad_()
        x.register_hook(lambda grad: seen.append(bits(grad)))
        out = call(x)
        out.register_hook(lambda grad: grad + 1)
        out.retain_grad()
        out.pow(2).mean().backward()
        return out.grad, x.grad

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3
    assert len(seen) == 24


def test_hooks_of_a_result_without_a_gradient_do_not_run():
    compiled, seen = cygrad.compile(lambda x: (x.sin(), x.cos())), []
    for _ in range(6):
        for result in (results := compiled(cygrad.ones(3, requires_grad=True))):
            result.register_hook(seen.append)
        results[0].sum().backward()
    assert len(seen) == 6 and None not in seen


def test_modes():
    pair = Pair(with_dropout)

    def evaluate(call, optimizer):
        pair.eager.eval(), pair.other.eval()
        with cygrad.no_grad():
            out = call(pair.x)
        pair.eager.train(), pair.other.train()
        return out

    for _ in range(7):
        pair.both(train(pair.x, pair.y))
        pair.both(evaluate)
    assert pair.replays == 8


def test_passes_after_the_mode_has_changed():
    pair = Pair(with_norms)

    def act(call, optimizer):
        out = call(pair.x)
        pair.eager.eval(), pair.other.eval()
        out.pow(2).mean().backward()
        pair.eager.train(), pair.other.train()

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3


CHANGES = {
    "weight": lambda call, out, x: parameters_of(call)[2].add_(1),
    "first weight": lambda call, out, x: parameters_of(call)[0].mul_(2),
    "bias": lambda call, out, x: parameters_of(call)[1].add_(1),
    "argument": lambda call, out, x: x.add_(1),
    "result": lambda call, out, x: out.mul_(2),
}


def parameters_of(call):
    return list(call.parameters())


@pytest.mark.parametrize("last", [nn.Identity, nn.Tanh])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_before_the_pass(name, last):
    pair = Pair(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), last()))

    def act(call, optimizer):
        x = pair.x.clone()
        out = call(x)
        with cygrad.no_grad():
            CHANGES[name](call, out, x)
        out.backward(cygrad.ones(5, 3))

    def plain(call, optimizer):
        call(pair.x).backward(cygrad.ones(5, 3))

    for _ in range(4):
        pair.both(plain)
    pair.both(act)
    assert pair.replays == 2


def test_the_error_names_the_change():
    pair = Pair()
    for _ in range(5):
        pair.both(train(pair.x, pair.y))

    def error_of(call):
        loss = call(pair.x).pow(2).mean()
        with cygrad.no_grad():
            parameters_of(call)[2].add_(1)
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
        return str(caught.value).replace("\n", " ")

    wanted, found = error_of(pair.eager), error_of(pair.compiled)
    assert "changed by add_ at" in found
    assert found.partition(" is at version")[0] == wanted.partition(" is at version")[0]


def test_memory_that_is_replaced_before_the_pass():
    pair = Pair()

    def act(call, optimizer):
        out = call(pair.x)
        weight = parameters_of(call)[0]  # which no gradient needs
        former = weight.data
        weight.data = cygrad.zeros(8, 4)
        out.pow(2).mean().backward()
        weight.data = former

    for _ in range(6):
        pair.both(act)
    assert pair.replays == 3


def test_results_are_never_overwritten():
    pair = Pair()
    for _ in range(4):
        pair.both(train(pair.x, pair.y))
    outs = [pair.compiled(pair.x + i) for i in range(4)]
    expected = [bits(pair.eager(pair.x + i)) for i in range(4)]
    assert [bits(out) for out in outs] == expected
    outs[2].sum().backward()
    assert [bits(out) for out in outs] == expected


def compiled_and_not(function):
    return cygrad.compile(function), function


def test_a_loss_function():
    def loss_of(out, target):
        return ((out - target) ** 2).mean() + out.abs().sum() * 0.01

    compiled, eager = compiled_and_not(loss_of)
    weight = cygrad.randn(4, 3, requires_grad=True)
    x, y = cygrad.randn(5, 4), cygrad.randn(5, 3)
    for _ in range(7):
        grads = []
        for function in (compiled, eager):
            loss = function(x @ weight, y)
            grads.append((bits(loss), bits(cygrad.autograd.grad(loss, weight)[0])))
        assert grads[0] == grads[1]
    assert compiled._cygrad_step.replays() == 4


def test_a_decorated_function_of_leaves():
    @cygrad.compile
    def energy(x):
        return (x**2).sum()

    for i in range(6):
        x = cygrad.full((3,), float(i), requires_grad=True)
        energy(x).backward()
        assert x.grad.tolist() == [2.0 * i] * 3
    assert energy._cygrad_step.replays() == 3


def test_several_results():
    def split(x, w):
        h = cygrad.tanh(x @ w)
        return h, {"sum": h.sum(), "exp": h.exp()}, x

    compiled, eager = compiled_and_not(split)
    x = cygrad.randn(5, 4)
    for use in (lambda h, d: h.sum() + d["exp"].mean(), lambda h, d: d["sum"], lambda h, d: d["exp"].pow(2).mean()):
        for _ in range(9):
            found = []
            for function in (compiled, eager):
                w = cygrad.full((4, 2), 0.5).requires_grad_()
                h, rest, same = function(x, w)
                assert same is x
                use(h, rest).backward()
                found.append((bits(h), bits(rest["exp"]), bits(w.grad)))
            assert found[0] == found[1]
    assert compiled._cygrad_step.replays() > 3


def test_views_of_results():
    compiled, eager = compiled_and_not(lambda x, w: (x @ w).view(-1))
    x = cygrad.randn(5, 4)
    for _ in range(6):
        found = []
        for function in (compiled, eager):
            w = cygrad.full((4, 2), 0.5).requires_grad_()
            out = function(x, w)
            (out.view(5, 2) ** 2).sum().backward()
            found.append((bits(out), bits(w.grad)))
        assert found[0] == found[1]
    assert compiled._cygrad_step.replays() == 3


def test_module_compile():
    pair = Pair()
    pair.other.compile()
    pair.compiled = pair.other
    for i in range(7):
        pair.both(train(pair.x + i, pair.y))


def test_memory_is_freed_with_the_pass():
    import weakref

    pair = Pair()
    for _ in range(5):
        pair.both(train(pair.x, pair.y))
    x = cygrad.randn(5, 4)
    reference = weakref.ref(x)
    out = pair.compiled(x)
    del x
    out.sum().backward()
    assert reference() is None


def test_calls_inside_transforms_run_as_written():
    pair = Pair()
    for _ in range(5):
        pair.both(train(pair.x, pair.y))
    call = lambda model: lambda x: model(x).pow(2).sum()  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = cygrad.func.grad(call(pair.eager))(pair.x)
        assert bits(cygrad.func.grad(call(pair.compiled))(pair.x)) == bits(wanted)
        tangent = cygrad.func.jvp(call(pair.eager), (pair.x,), (pair.x,))
        assert [bits(t) for t in cygrad.func.jvp(call(pair.compiled), (pair.x,), (pair.x,))] == [
            bits(t) for t in tangent
        ]


def test_gradients_that_are_views():
    """Such as those of sums: a pass is replayed for them, too, and does not call the function once more."""

    def step(x):
        return (x.tanh() * x).exp()

    compiled, weights = cygrad.compile(step), cygrad.randn(2, 5)
    for i in range(8):
        x = cygrad.randn(5)
        found, expected = (x.clone().requires_grad_() for _ in range(2))
        compiled(found).backward(weights[i % 2])
        step(expected).backward(weights[i % 2])
        assert bits(found.grad) == bits(expected.grad)
    (plan,) = compiled._cygrad_step.plans.plans
    assert plan.replays > 0
    assert [each.why_missed() for each in plan.program.history.programs] == [None]


def test_results_whose_graph_leads_to_an_argument():
    """The function's own pass leaves the graph of another result usable, which must lead to this call's argument."""

    def step(x):
        found = x.sum()
        cygrad.autograd.grad((x * x).sum(), x)
        return found

    compiled = cygrad.compile(step)
    for _ in range(7):
        x = cygrad.ones(3, requires_grad=True)
        compiled(x).backward()
        assert x.grad.tolist() == [1, 1, 1]


def test_results_that_were_changed_through_views():
    weight = cygrad.randn(3, 3, requires_grad=True)

    def step(x):
        found = x @ weight
        cygrad.diagonal(found).add_(-1)
        found[:, 0].mul_(2)
        loss = found.pow(2).sum()
        return loss, cygrad.autograd.grad(loss, weight)[0]

    compiled = cygrad.compile(step)
    for _ in range(8):
        x = cygrad.randn(4, 3)[:3]
        assert [state_of(t) for t in compiled(x)] == [state_of(t) for t in step(x)]
        with pytest.raises(cygrad.errors.FreedGraphError):
            compiled(x)[0].backward()
    assert compiled.explain().replays >= 4
