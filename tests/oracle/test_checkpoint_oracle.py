"""Programs with checkpoints, run by cygrad and by PyTorch: the same log of what ran, and the same gradients."""

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
    """A random program of nested checkpoints: the log of the calls of its functions, and all gradients."""
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
