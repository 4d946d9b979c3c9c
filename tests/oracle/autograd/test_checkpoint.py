"""Programs with checkpoints, run by cygrad and by PyTorch, have the same log of calls and the same gradients."""

import functools
import itertools

import numpy as np
import pytest

import cygrad
import cygrad.utils.checkpoint
from helpers import class_of

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

MODES = list(itertools.product([True, False], [True, False]))  # reentrant, early stop


def run(library, seed, reentrant, early_stop):
    """Run a random program of nested checkpoints; return the log of its function calls, and all gradients."""
    rng = np.random.default_rng(seed)
    log = []
    names = itertools.count()

    def function(depth):
        name = next(names)
        ops = rng.choice(["sin", "exp", "tanh", "square", "weight", "noise"], rng.integers(1, 5))
        inner = function(depth - 1) if depth else None
        place = rng.integers(0, len(ops) + 1)

        def call(x, w):
            log.append((name, library.is_grad_enabled(), x.requires_grad))
            for i, op in enumerate(ops):
                if inner is not None and i == place:
                    x = keep(inner, x, w)
                x = x * w if op == "weight" else x * x.shape[0] if op == "noise" else getattr(x, op)()
            log.append((name, "end"))
            return x

        return call

    def keep(call, x, w):
        return library.utils.checkpoint.checkpoint(call, x, w, use_reentrant=reentrant)

    parts = [function(int(rng.integers(0, 3))) for _ in range(3)]
    x = library.tensor([0.3, -0.2], dtype=library.float64, requires_grad=True)
    w = library.tensor([0.5, 1.5], dtype=library.float64, requires_grad=True)
    y = x * 1
    with library.utils.checkpoint.set_checkpoint_early_stop(early_stop):
        for part in parts:
            y = keep(part, y, w)
    log.append("backward")
    y.sum().backward(retain_graph=True)
    log.append("backward")
    y.sum().backward()
    return log, [x.grad.tolist(), w.grad.tolist()]


@pytest.mark.parametrize(("reentrant", "early_stop"), MODES)
@pytest.mark.parametrize("seed", range(12))
def test_programs(seed, reentrant, early_stop):
    import torch.utils.checkpoint

    ours = run(cygrad, seed, reentrant, early_stop)
    theirs = run(torch, seed, reentrant, early_stop)
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-10, atol=1e-12)


WRONG = {
    "keyword": {"use_reentrant": True, "foo": 1},
    "context": {"use_reentrant": True, "context_fn": lambda: (1, 2)},
    "check": {"use_reentrant": False, "determinism_check": "foo"},
    "debug": {"use_reentrant": False, "debug": True, "context_fn": lambda: (1, 2)},
    "contexts": {"use_reentrant": False, "context_fn": lambda: 1},
    "three": {"use_reentrant": False, "context_fn": lambda: (1, 2, 3)},
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    def answer(library):
        x = library.ones(2, requires_grad=True)
        try:
            library.utils.checkpoint.checkpoint(library.exp, x, **WRONG[name])
        except Exception as error:
            return class_of(error), str(error).split("\n", 1)[0]
        return "no error"

    assert answer(cygrad) == answer(torch)


# -- selective checkpoints ---------------------------------------------------------------------------------

HEAVY = [f"aten.{name}.default" for name in ("addmm", "bmm", "convolution", "mm")]


def selective(library, choice):
    """A program with expensive ops of each kind: the ops the policy was called for, result, gradients, and the
    error.
    """
    F, rng, log = library.nn.functional, np.random.default_rng(0), []

    def values(*shape):
        return library.tensor(rng.normal(size=shape), requires_grad=True)

    def function(x, w, b, stack):
        y = F.linear(F.linear(x, w, b).sigmoid(), w).tanh()
        q = (y @ y.t() @ y).sin().reshape(1, 1, 3, 4)
        a = F.scaled_dot_product_attention(q, q, q)
        c = F.conv1d(a[0, 0].unsqueeze(1), b[:2].reshape(1, 1, 2))
        return c.sum() * F.mse_loss(y, x) + (stack @ stack).exp().sum()

    def policy(ctx, op, *args, **kwargs):
        if str(op) not in HEAVY:
            return False
        log.append((str(op), list(ctx.op_output.shape), ctx.is_recompute))
        return choice == "all" or str(op) == choice

    context = functools.partial(library.utils.checkpoint.create_selective_checkpoint_contexts, policy)
    if choice == "list":
        ops = [library.ops.aten.mm.default, library.ops.aten._scaled_dot_product_flash_attention_for_cpu.default]
        context = functools.partial(library.utils.checkpoint.create_selective_checkpoint_contexts, ops)
    arguments = values(3, 4), values(4, 4), values(4), values(2, 3, 3)
    out = library.utils.checkpoint.checkpoint(function, *arguments, use_reentrant=False, context_fn=context)
    out.backward(retain_graph=True)
    found = [out.item(), *[t.grad.tolist() for t in arguments]]
    try:
        out.backward()
    except RuntimeError as error:
        log.append(str(error).split("\n", 1)[0])
    return log, found


@pytest.mark.parametrize("choice", ["all", "nothing", "list", *HEAVY])
def test_selective(choice):
    ours, theirs = selective(cygrad, choice), selective(torch, choice)
    assert ours[0] == theirs[0]
    for a, b in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


WRONG_POLICIES = {
    "number": lambda library: 3,
    "list of numbers": lambda library: [3],
    "packet": lambda library: [library.ops.aten.mm],
    "tuple": lambda library: (library.ops.aten.mm.default,),
}


@pytest.mark.parametrize("name", WRONG_POLICIES)
def test_wrong_policies(name):
    def answer(library):
        with pytest.raises((TypeError, ValueError)) as caught:
            library.utils.checkpoint.create_selective_checkpoint_contexts(WRONG_POLICIES[name](library))
        return class_of(caught.value), str(caught.value).split(" of type", 1)[0]

    assert answer(cygrad) == answer(torch)


def test_names_and_policies():
    for name in ("mm", "bmm", "addmm", "convolution", "_scaled_dot_product_flash_attention_for_cpu"):
        ours, theirs = getattr(cygrad.ops.aten, name), getattr(torch.ops.aten, name)
        assert (str(ours), str(ours.default), ours.default.name()) == (
            str(theirs), str(theirs.default), theirs.default.name())  # fmt: skip
        assert (repr(ours), repr(ours.default)) == (repr(theirs), repr(theirs.default))
    ours, theirs = cygrad.utils.checkpoint.CheckpointPolicy, torch.utils.checkpoint.CheckpointPolicy
    assert {p.name: p.value for p in ours} == {p.name: p.value for p in theirs}


# -- messages about functions that change ------------------------------------------------------------------


def changing(library, name):
    """Run a function whose two runs differ."""
    first, second = {
        "fewer": (lambda x: x.sin().exp().tanh(), lambda x: x.sin()),
        "more": (lambda x: x.sin(), lambda x: x.sin().exp().tanh()),
        "another shape": (lambda x: x.sin(), lambda x: x[:1].sin()),
        "another dtype": (lambda x: x.exp().sin(), lambda x: x.float().exp().sin()),
        "two of another shape": (lambda x: x.sin().exp(), lambda x: x[:1].sin().exp()),
    }[name]
    return iter([first, second])


def is_compared(name, check):
    """Without a check, PyTorch continues with another shape; here this is an error, because kernels rely on saved
    shapes.
    """
    return check == "default" or "shape" not in name


@pytest.mark.parametrize("check", ["default", "none"])
@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("name", ["fewer", "more", "another shape", "another dtype", "two of another shape"])
def test_functions_that_change(name, early_stop, check):
    def answer(library):
        runs = changing(library, name)
        x = library.tensor([0.5, 1.0], dtype=library.float64, requires_grad=True)
        how = {"use_reentrant": False, "determinism_check": check, "early_stop": early_stop}
        try:
            library.utils.checkpoint.checkpoint(lambda x: next(runs)(x), x, **how).sum().backward()
        except library.utils.checkpoint.CheckpointError as error:
            return str(error)
        except RuntimeError:
            return "another error"
        return "no error"

    ours, theirs = answer(cygrad), answer(torch)
    if is_compared(name, check):  # up to the point where the messages differ
        ours = ours.split("\n  the first difference", 1)[0].rstrip()
        assert ours == theirs.split("\nTip: ", 1)[0].rstrip().removesuffix("\n.")
    else:
        assert (ours, theirs) == ("another error", "no error")


def test_states_of_devices(monkeypatch):
    monkeypatch.setattr(cygrad.utils.checkpoint.DefaultDeviceType, "_type", None)
    monkeypatch.setattr(torch.utils.checkpoint.DefaultDeviceType, "_default_device_type", None)

    def found(library):
        module = library.utils.checkpoint
        module.set_device_states([], [])
        kinds = module.DefaultDeviceType
        known = [module.get_device_states(library.ones(2), [3, library.ones(1)]), kinds.get_device_type()]
        kinds.set_device_type()
        return [*known, kinds.get_device_type()]

    assert found(cygrad) == found(torch)
    ignored = {op.name() for op in torch.utils.checkpoint.SAC_IGNORED_OPS}
    assert {op.name() for op in cygrad.utils.checkpoint.SAC_IGNORED_OPS} < ignored
