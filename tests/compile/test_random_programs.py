"""Random programs of 5 to 40 ops, compiled and as they are written: equal bits, call by call."""

import random

import pytest
from compile.twins import state_of

import cygrad

UNARY = ("tanh", "sigmoid", "exp", "relu", "neg", "abs", "square", "sin", "cos", "sqrt_abs", "clamp", "log1p_abs")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "where")
SHAPED = ("sum", "mean", "sum_last", "expand", "transpose", "reshape", "slice", "cat", "matmul", "softmax", "clone")
IN_PLACE = ("add_", "mul_", "copy_", "zero_", "slice_")


def unary(name, x):
    if name == "sqrt_abs":
        return (x.abs() + 0.5).sqrt()
    if name == "log1p_abs":
        return x.abs().log1p()
    return x.clamp(-0.5, 0.75) if name == "clamp" else getattr(x, name)()


def binary(name, x, y):
    if name == "div":
        return x / (y.abs() + 1)
    if name == "where":
        return cygrad.where(x > y, x, y * 2)
    return getattr(cygrad, name)(x, y)


def shaped(name, x, y):
    if name == "sum":
        return x + x.sum() * 0.125
    if name == "mean":
        return x * y.mean()
    if name == "sum_last":
        return x - y.sum(-1, keepdim=True) * 0.125
    if name == "expand":
        return x + y[:1].expand(x.shape)
    if name == "transpose":
        return x.t().contiguous().t() * y
    if name == "reshape":
        return x.reshape(-1).reshape(x.shape) + y
    if name == "slice":
        return cygrad.cat([x[1:], y[:1]])
    if name == "cat":
        return cygrad.cat([x[:2], y[2:]])
    if name == "matmul":
        return (x @ y.t()).tanh() @ y * 0.125
    return x.softmax(-1) if name == "softmax" else x.clone()


def in_place(name, x, y):
    if name == "zero_":
        x[0].zero_()
    elif name == "slice_":
        x[:, 1:].mul_(0.5)
    elif name == "copy_":
        x[1].copy_(y[0])
    else:
        getattr(x, name)(y)


def program(seed, with_gradient):
    """A random function of two matrices and a constant, as a list of operations that a fixed interpreter runs."""
    choose = random.Random(seed)
    lines = []
    for _ in range(choose.randint(5, 40)):
        kind = choose.choices(("unary", "binary", "shaped", "in_place"), (4, 4, 2, 0 if with_gradient else 1))[0]
        name = choose.choice({"unary": UNARY, "binary": BINARY, "shaped": SHAPED, "in_place": IN_PLACE}[kind])
        lines.append((kind, name, choose.randint(0, 10**6), choose.randint(0, 10**6)))

    def run(a, b, constant):
        values = [a * 1, b * 1, constant * 0.5]
        for kind, name, i, j in lines:
            x, y = values[i % len(values)], values[j % len(values)]
            if kind == "unary":
                values.append(unary(name, x).clamp(-8, 8))
            elif kind == "binary":
                values.append(binary(name, x, y))
            elif kind == "shaped":
                values.append(shaped(name, x, y).clamp(-8, 8))
            else:
                in_place(name, x, y)
        return values[-1], values[-2]

    return run


@pytest.mark.parametrize("seed", range(60))
def test_forward(seed):
    constant = cygrad.full((4, 5), 0.5)
    function = program(seed, with_gradient=False)

    def step(a, b):
        one, two = function(a, b, constant)
        return one * 1, two + 0

    compare(step, seed, requires_grad=False)


@pytest.mark.parametrize("seed", range(100, 160))
def test_with_gradient(seed):
    constant = cygrad.full((4, 5), 0.5)
    function = program(seed, with_gradient=True)

    def step(a, b):
        one, two = function(a, b, constant)
        loss = (one * two).sum() + (a * b).sum()
        ga, gb = cygrad.autograd.grad(loss, (a, b))
        return loss, ga, gb

    compare(step, seed, requires_grad=True)


def test_most_programs_are_replayed():
    """Otherwise this file would test nothing."""
    replayed = 0
    for seed in range(12):
        constant, function = cygrad.full((4, 5), 0.5), program(seed, with_gradient=False)
        step = cygrad.compile(lambda a, b: tuple(x * 1 for x in function(a, b, constant)))  # noqa: B023
        for _ in range(5):
            step(cygrad.ones(4, 5), cygrad.ones(4, 5))
        replayed += step._cygrad_step.replays() > 0
    assert replayed >= 6


def compare(step, seed, requires_grad):
    compiled = cygrad.compile(step)
    cygrad.manual_seed(seed)
    for _ in range(7):
        a, b = (cygrad.randn(4, 5).requires_grad_(requires_grad) for _ in range(2))
        expected = step(a, b)
        found = compiled(a, b)
        for x, y in zip(expected, found):
            assert state_of(x) == state_of(y), compiled.explain()


@pytest.mark.parametrize("seed", range(200, 240))
def test_with_a_gradient_from_outside(seed):
    constant = cygrad.full((4, 5), 0.5)
    function = program(seed, with_gradient=True)
    compiled = cygrad.compile(lambda a, b: function(a, b, constant))
    cygrad.manual_seed(seed)
    for _ in range(8):
        a, b = (cygrad.randn(4, 5).requires_grad_() for _ in range(2))
        outcomes = []
        for step in (compiled, lambda a, b: function(a, b, constant)):
            one, two = step(a, b)
            loss = (one * two).sum() + (a * b).sum()
            grads = cygrad.autograd.grad(loss, (a, b))
            outcomes.append([state_of(t)[:-2] for t in (one, two, loss, *grads)])
        assert outcomes[0] == outcomes[1], compiled.explain()
