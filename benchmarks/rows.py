"""The main table: rows for op overhead and networks, plus those of layers.py and peers.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import derivatives, layers, peers
from benchmarks.row import Library, Names, Row
from cygrad._core.runtime.thread_state import take_sites

Sizes = tuple[int, int, int]  # of a network: input, hidden, output


# --- One element: pure overhead ----------------------------------------------------------------


def scalars(torch: Library) -> Names:
    """Set up three tensors of one float32 element that require grad."""
    x, y, w = (torch.tensor([v], requires_grad=True) for v in (1.0, 2.0, 0.999))
    return {"x": x, "y": y, "w": w}


def numpy_scalars() -> Names:
    """Set up three arrays of one float32 element."""
    x, y, w = (np.array([v], dtype=np.float32) for v in (1.0, 2.0, 0.999))
    return {"x": x, "y": y, "w": w}


CHAIN = """
z = x
for _ in range(100):
    z = z * w
z.backward()
x.grad = w.grad = None
"""

NUMPY_CHAIN = """
z, saved = x, []
for _ in range(100):
    saved.append(z)
    z = z * w
grad, grad_w = one, zero
for z in reversed(saved):
    grad_w = grad_w + grad * z
    grad = grad * w
"""


def numpy_chain() -> Names:
    """Set up `numpy_scalars` and the initial gradients."""
    return {**numpy_scalars(), "one": np.ones(1, np.float32), "zero": np.zeros(1, np.float32)}


def custom_function(torch: Library) -> Names:
    """Set up a custom Function that saves its input."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return {"x": torch.tensor([3.0], requires_grad=True), "square": Square.apply}


CUSTOM = """
square(x).backward()
x.grad = None
"""


# The site: a loop that only takes sites, because their cost cannot be separated from that of an op otherwise.
SITES = 1000
SITE_NAME = "source line of one op"
SITE_STATEMENT = f"take_sites({SITES})"
SITE_NAMES: Names = {"take_sites": take_sites}
SITE_TARGET = 5e-9  # seconds


# --- A network ---------------------------------------------------------------------------------

STEP = """
optimizer.zero_grad()
loss = loss_fn(model(images), labels)
loss.backward()
optimizer.step()
"""

CHECKED_STEP = """
with nan_check():
    optimizer.zero_grad()
    loss = loss_fn(model(images), labels)
    loss.backward()
    optimizer.step()
"""


def network(optimizer: str, batch: int, sizes: Sizes = (784, 128, 10), **options: Any) -> Callable[[Library], Names]:
    """Return the setup of a network with one hidden layer, on one batch of random numbers."""

    def setup(torch: Library) -> Names:
        torch.manual_seed(0)
        nn = torch.nn
        n_in, n_hidden, n_out = sizes
        model = nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU(), nn.Linear(n_hidden, n_out))
        return {
            "model": model,
            "loss_fn": nn.CrossEntropyLoss(),
            "optimizer": getattr(torch.optim, optimizer)(model.parameters(), **options),
            "images": torch.randn(batch, n_in),
            "labels": torch.arange(batch) % n_out,
            "nan_check": getattr(torch.autograd, "nan_check", None),  # PyTorch has none
        }

    return setup


NUMPY_STEP = """
hidden = images @ w1.T + b1
active = np.maximum(hidden, 0)
scores = active @ w2.T + b2
scores -= scores.max(axis=1, keepdims=True)
grad = np.exp(scores)
grad /= grad.sum(axis=1, keepdims=True)
grad[rows, labels] -= 1
grad /= len(grad)
grad_hidden = grad @ w2
grad_hidden *= hidden > 0
w2 -= lr * (grad.T @ active)
b2 -= lr * grad.sum(axis=0)
w1 -= lr * (grad_hidden.T @ images)
b1 -= lr * grad_hidden.sum(axis=0)
"""


def numpy_network(batch: int, sizes: Sizes = (784, 128, 10)) -> Callable[[], Names]:
    """Return the setup of the same network with its gradient written out."""

    def setup() -> Names:
        random = np.random.default_rng(0)
        n_in, n_hidden, n_out = sizes

        def uniform(*shape: int) -> np.ndarray:
            return random.uniform(-0.04, 0.04, shape).astype(np.float32)

        return {
            "np": np,
            "w1": uniform(n_hidden, n_in),
            "b1": uniform(n_hidden),
            "w2": uniform(n_out, n_hidden),
            "b2": uniform(n_out),
            "images": random.standard_normal((batch, n_in), dtype=np.float32),
            "labels": np.arange(batch) % n_out,
            "rows": np.arange(batch),
            "lr": np.float32(0.01),
        }

    return setup


# --- The table ---------------------------------------------------------------------------------

ROWS = [
    Row("x + y recorded, against bare a + b", "x + y", scalars, 0.8, rival="NumPy",
        numpy=("x + y", numpy_scalars)),
    Row("x + y recorded", "x + y", scalars, 0.15),
    Row("100 multiplications and backward", CHAIN, scalars, 0.12,
        numpy=(NUMPY_CHAIN, numpy_chain)),
    Row("x * 2, against x * w", "x * 2", scalars, 1.0, rival="cygrad",
        rival_statement="x * w"),
    Row("x * 2 recorded", "x * 2", scalars, 0.15, numpy=("x * 2", numpy_scalars)),
    Row("Function.apply and backward", CUSTOM, custom_function, 0.4),
    Row("784-128-10, batch 64, SGD step", STEP, network("SGD", 64, lr=0.01), 0.7,
        numpy=(NUMPY_STEP, numpy_network(64))),
    Row("784-128-10, batch 64, with nan_check", CHECKED_STEP, network("SGD", 64, lr=0.01), 1.05, rival="cygrad",
        rival_statement=STEP),
    Row("784-128-10, batch 64, SGD with momentum", STEP,
        network("SGD", 64, lr=0.01, momentum=0.9), 0.7),
    Row("784-128-10, batch 64, Adam step", STEP, network("Adam", 64), 0.5),
    Row("16-32-4, batch 1, SGD step", STEP, network("SGD", 1, (16, 32, 4), lr=0.01), 0.2,
        numpy=(NUMPY_STEP, numpy_network(1, (16, 32, 4)))),
    *layers.ROWS,
    *derivatives.ROWS,
    *peers.rows(CHAIN, scalars, STEP, network("SGD", 64, lr=0.01)),
]  # fmt: skip
