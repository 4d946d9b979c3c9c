"""Steps as programs write them, whose idioms were once not replayed: replayed, with the bits of eager steps."""

import math

import pytest
from compile.twins import state_of

import cygrad
from cygrad import nn
from cygrad._functorch import vmap as steps_of_vmap
from cygrad.distributions import Categorical, Normal, kl_divergence
from cygrad.func import functional_call, grad, hessian, vmap

F = nn.functional

STEPS = {}  # {name: a function that makes (a step, a function that draws its arguments, modules and optimizers)}


def idiom(build):
    STEPS[build.__name__] = build
    return build


def trained(model, loss, draw, optimizer=None, **more):
    """A usual training step."""
    optimizer = optimizer or cygrad.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step(*args):
        optimizer.zero_grad()
        found = loss(model, *args)
        found.backward()
        optimizer.step()
        return found

    return step, draw, [model, optimizer]


def classes(*size, most=3):
    return cygrad.randint(0, most, size)


@idiom
def state_of_zeros():
    rnn = nn.GRU(4, 3, batch_first=True)
    return trained(rnn, lambda rnn, x: rnn(x, cygrad.zeros(1, len(x), 3))[0].sum(), lambda: (cygrad.randn(2, 3, 4),))


@idiom
def packed_sequences():
    rnn = nn.LSTM(4, 3, batch_first=True)

    def loss(rnn, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = nn.utils.rnn.pad_packed_sequence(rnn(packed)[0], batch_first=True)
        return out.sum()

    return trained(rnn, loss, lambda: (cygrad.randn(3, 4, 4), cygrad.tensor([2, 4, 3])))


@idiom
def positions_and_causal_mask():
    net = nn.ModuleList([nn.Embedding(6, 4), nn.Linear(4, 4)])

    def loss(net, x):
        places = cygrad.arange(x.shape[1])
        mask = cygrad.triu(cygrad.full((len(places), len(places)), -1e9), diagonal=1)
        h = x + net[0](places) + cygrad.linspace(0, 1, 4)
        return ((h @ net[1](h).transpose(1, 2) + mask).softmax(-1) @ h).pow(2).mean()

    return trained(net, loss, lambda: (cygrad.randn(2, 5, 4),))


@idiom
def label_smoothing():
    return trained(
        nn.Linear(4, 3),
        lambda net, x, y: F.cross_entropy(net(x), y, label_smoothing=0.1),
        lambda: (cygrad.randn(5, 4), classes(5)),
    )


@idiom
def one_class_for_each_pixel():
    return trained(
        nn.Conv2d(2, 3, 3),
        lambda net, x, y: F.cross_entropy(net(x), y),
        lambda: (cygrad.randn(2, 2, 4, 4), classes(2, 2, 2)),
    )


@idiom
def variational():
    def loss(net, x):
        mean, spread = net[0](x).chunk(2, 1)
        q = Normal(mean, (0.5 * spread).exp())
        code = q.rsample()
        divergence = kl_divergence(q, Normal(cygrad.zeros(2), cygrad.ones(2))).sum()
        return F.binary_cross_entropy(net[1](code).sigmoid(), x, reduction="sum") + divergence

    return trained(nn.ModuleList([nn.Linear(4, 4), nn.Linear(2, 4)]), loss, lambda: (cygrad.rand(5, 4),))


@idiom
def policy_gradient():
    def loss(net, x):
        policy = Categorical(logits=net(x))
        action = policy.sample()
        reward = (action == 1).float()
        return -(policy.log_prob(action) * (reward - reward.mean())).sum() - 0.01 * policy.entropy().mean()

    return trained(nn.Linear(4, 3), loss, lambda: (cygrad.randn(6, 4),))


@idiom
def nodes_of_a_mask():
    known = cygrad.tensor([True, False, True, True])

    def loss(net, x, edges, y):
        source, target = edges
        degree = cygrad.zeros(4).scatter_add_(0, target, cygrad.ones(len(target))).clamp(min=1)
        out = cygrad.zeros(4, 3).index_add_(0, target, net(x)[source] / degree[source, None])
        return F.nll_loss(F.log_softmax(out, 1)[known], y[known])

    return trained(nn.Linear(5, 3), loss, lambda: (cygrad.randn(4, 5), classes(2, 9, most=4), classes(4)))


@idiom
def masked_words():
    def loss(net, words):
        chosen = cygrad.bernoulli(cygrad.full(words.shape, 0.3)).bool()
        labels = words.clone()
        labels[~chosen] = -100
        return F.cross_entropy(net[1](net[0](words.masked_fill(chosen, 0))).flatten(0, 1), labels.flatten())

    return trained(nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9)), loss, lambda: (classes(3, 6, most=9),))


@idiom
def bags_of_words():
    net = nn.Sequential(nn.EmbeddingBag(9, 4), nn.Linear(4, 3))
    return trained(
        net,
        lambda net, words, y: F.cross_entropy(net[1](net[0](words, cygrad.tensor([0, 2, 5]))), y),
        lambda: (classes(7, most=9), classes(3)),
    )


@idiom
def experts_of_each_token():
    def loss(net, x):
        weight, place = net[0](x).softmax(-1).topk(2)
        chosen = F.one_hot(place, 3).to(x.dtype).sum(1)
        found = cygrad.stack([expert(x) for expert in net[1:]], 1) * chosen[..., None]
        return (found.sum(1) * weight.sum(1, True)).sum()

    net = nn.ModuleList([nn.Linear(4, 3), *(nn.Linear(4, 4) for _ in range(3))])
    return trained(net, loss, lambda: (cygrad.randn(5, 4),))


@idiom
def assignments_to_slices():
    def loss(net, x):
        grid = net(x) * 1
        inner = cygrad.zeros_like(grid)
        inner[1:-1, 1:-1] = grid[2:, 1:-1] + grid[:-2, 1:-1] - 2 * grid[1:-1, 1:-1]
        grid = grid + 0.1 * inner
        grid[0, :] = 0
        grid[:, -1] = 1.0
        return grid.pow(2).sum() + grid.diagonal().pow(3).sum()

    return trained(nn.Linear(5, 5), loss, lambda: (cygrad.randn(5, 5),))


@idiom
def overlaps_of_boxes():
    def loss(net, x, box):
        found = net(x).sigmoid()[:, :4]
        size = (cygrad.min(found[:, 2:], box[:, 2:]) - cygrad.max(found[:, :2], box[:, :2])).clamp(min=0)
        return (1 - size.prod(1)).mean() + F.smooth_l1_loss(found, box) + F.l1_loss(found, box)

    return trained(nn.Linear(3, 6), loss, lambda: (cygrad.randn(5, 3), cygrad.rand(5, 4)))


@idiom
def determinants_and_solutions():
    def loss(net, x):
        k = x @ net.weight @ x.T
        k = k @ k.T + cygrad.eye(len(x))
        fit = cygrad.linalg.solve(k, x[:, 0]) @ x[:, 0] + cygrad.inverse(k).trace()
        return fit + cygrad.slogdet(k)[1] + cygrad.logdet(k) + cygrad.det(k).log()

    return trained(nn.Linear(3, 3), loss, lambda: (cygrad.randn(4, 3),))


@idiom
def residuals_of_derivatives():
    net = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))

    def loss(net, x):
        x = x.clone().requires_grad_()
        u = net(x)
        (slope,) = cygrad.autograd.grad(u.sum(), x, create_graph=True)
        return (slope - math.pi * u).pow(2).mean()

    return trained(net, loss, lambda: (cygrad.rand(5, 1),))


@idiom
def tasks_of_an_inner_loop():
    net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))

    def error(parameters, x, y):
        return F.mse_loss(functional_call(net, parameters, (x,)), y)

    def task(parameters, x, y):
        slopes = grad(error)(parameters, x, y)
        return error({name: p - 0.1 * slopes[name] for name, p in parameters.items()}, x, y)

    def loss(net, x, y):
        return vmap(task, in_dims=(None, 0, 0))(dict(net.named_parameters()), x, y).mean()

    return trained(net, loss, lambda: (cygrad.randn(3, 5, 1), cygrad.randn(3, 5, 1)))


@idiom
def second_derivatives():
    return lambda x: hessian(lambda y: (y**3).sum() + y.cumprod(0).sum())(x), lambda: (cygrad.randn(4),), []


@idiom
def copied_weights():
    online, slow = nn.Linear(4, 3), nn.Linear(4, 3)

    def step(x):
        kept, new = slow.state_dict(), online.state_dict()
        slow.load_state_dict({name: 0.9 * kept[name] + 0.1 * new[name] for name in new})
        return slow(x).detach()

    return step, lambda: (cygrad.randn(2, 4),), [online, slow]


@idiom
def guarded_by_conditions():
    def loss(net, x):
        found = net(x).pow(2).sum()
        assert not found.isnan()
        if not cygrad.isfinite(found):
            return found * 0
        return found / int((x > -100).sum())

    return trained(nn.Linear(4, 3), loss, lambda: (cygrad.randn(5, 4),))


@idiom
def drawn_by_weights():
    def step(p):
        places = cygrad.multinomial(p, 2), cygrad.multinomial(p, 3, replacement=True)
        return (
            *places,
            cygrad.poisson(p),
            cygrad.bernoulli(p),
            cygrad.normal(p, 0.5),
            cygrad._standard_gamma(p + 1),
            cygrad.bernoulli(p, 0.3),
        )

    return step, lambda: (cygrad.rand(3, 4),), []


def seen(value, holders):
    """All that a call has left."""
    values = value if isinstance(value, tuple) else (value,)
    found = [state_of(t) for t in values]
    for holder in holders:
        if isinstance(holder, nn.Module):
            found += [state_of(t) for t in (*holder.parameters(), *holder.buffers())]
        else:
            found += [state_of(t) for state in holder.state.values() for t in state.values()]
    return found, cygrad.get_rng_state().tolist()


def run(name, wrap):
    cygrad.manual_seed(1)
    step, draw, holders = STEPS[name]()
    step = wrap(step)
    found = []
    for _ in range(8):
        found.append(seen(step(*draw()), holders))
    return step, found


@pytest.mark.parametrize("name", STEPS)
def test_idioms_are_replayed_bit_for_bit(name):
    _, expected = run(name, lambda step: step)
    compiled, found = run(name, cygrad.compile)
    if compiled.explain().replays < 3:
        pytest.fail(str(compiled.explain()))
    assert found == expected


def test_arrays_of_numbers_are_new_in_each_call():
    settings = {"n": 3, "values": [1.0, 2.0, 3.0]}

    def step(x):
        n = settings["n"]
        return x[:n] * cygrad.tensor(settings["values"]), cygrad.arange(n), cygrad.eye(n), cygrad.zeros(n)

    compiled = cygrad.compile(step)
    x = cygrad.randn(5)
    kept = [compiled(x) for _ in range(6)]
    for change in (lambda: settings["values"].__setitem__(1, 7.0), lambda: settings.update(n=2, values=[4.0, 5.0])):
        for values in kept:
            for t in values:
                t.zero_()
        change()
        for _ in range(6):
            found = compiled(x)
            assert [state_of(t) for t in found] == [state_of(t) for t in step(x)]
            kept.append(found)
    assert compiled.explain().replays >= 6


def test_steps_of_vmap_that_a_library_replaces(monkeypatch):
    compiled, x, seen = cygrad.compile(lambda x: vmap(cygrad.sin)(x)), cygrad.randn(2, 3), []
    for _ in range(6):
        compiled(x)
    assert compiled.explain().replays >= 3
    unwrap = steps_of_vmap._unwrap_batched
    monkeypatch.setattr(steps_of_vmap, "_unwrap_batched", lambda *args: seen.append(args) or unwrap(*args))
    assert state_of(compiled(x)) == state_of(cygrad.sin(x)) and len(seen) == 1
