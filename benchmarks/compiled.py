"""Compiled steps against eager ones, those of PyTorch (eager and compiled) and of JAX: `python -m benchmarks.compiled`.

Each step returns what it computes, and parameters and optimizer state are part of that: a step whose result nobody asks
for may be left out by a compiler. A row's statements are timed in turn in one process; a time is the median of the
samples. `first` is the time of the first call, or of the calls until cygrad replays.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import cygrad
from benchmarks.machine import describe, limit_threads, usable_cpus

Step = Callable[[], Any]
SAMPLES, SECONDS = 21, 0.02
TO_REPLAY = 5  # calls


# -- the steps, in cygrad and PyTorch --


def chain(lib: Any, size: int) -> Step:
    """Return the gradient of a sum of elementwise functions."""
    u = lib.tensor(_numbers(size)).requires_grad_()

    def step(u):
        return lib.autograd.grad((lib.tanh(u) * u + lib.exp(u) * lib.sigmoid(u)).sum(), u)[0]

    return _bound(lib, step, u)


def chain_with_sum(lib: Any, size: int) -> Step:
    """Return the sum of the chain, and its gradient."""
    u = lib.tensor(_numbers(size)).requires_grad_()

    def step(u):
        value = (lib.tanh(u) * u + lib.exp(u) * lib.sigmoid(u)).sum()
        return value.detach(), lib.autograd.grad(value, u)[0]

    return _bound(lib, step, u)


def second_derivative(lib: Any) -> Step:
    """Return a product of a Hessian and a vector."""
    a, x, v = lib.tensor(_numbers(64, 64)), lib.tensor(_numbers(64)).requires_grad_(), lib.tensor(_numbers(64))

    def step(x):
        y = lib.tanh(a @ x).pow(2).sum()
        (gradient,) = lib.autograd.grad(y, x, create_graph=True)
        return lib.autograd.grad((gradient * v).sum(), x)[0]

    return _bound(lib, step, x)


def network(lib: Any, sizes: tuple[int, ...], batch: int, optimizer: str, activation: str = "ReLU") -> Step:
    """Return a training step of layers of those sizes: a classifier, or with one output a regression."""
    nn = lib.nn
    layers: list[Any] = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), getattr(nn, activation)()]
    model = nn.Sequential(*layers[:-1])
    optimiser = getattr(lib.optim, optimizer)(model.parameters(), lr=1e-3)
    x = lib.tensor(_numbers(batch, sizes[0]))
    if sizes[-1] == 1:
        y = lib.tensor(_numbers(batch, 1))

        def loss_of(x, y):
            return ((model(x) - y) ** 2).sum()
    else:
        y = lib.tensor(np.arange(batch) % sizes[-1])

        def loss_of(x, y):
            return nn.functional.cross_entropy(model(x), y)

    return _bound(lib, _training(optimiser, loss_of), x, y)


def lenet(lib: Any) -> Step:
    """Return a training step of LeNet on 64 images of 28 x 28."""
    nn = lib.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    optimiser = lib.optim.SGD(model.parameters(), lr=0.01)
    x, y = lib.tensor(_numbers(64, 1, 28, 28)), lib.tensor(np.arange(64) % 10)
    return _bound(lib, _training(optimiser, lambda x, y: nn.functional.cross_entropy(model(x), y)), x, y)


def recurrent(lib: Any) -> Step:
    """Return a training step of an LSTM with 64 units on 16 sequences of 20 steps."""
    nn = lib.nn
    lstm, head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)
    optimiser = lib.optim.Adam([*lstm.parameters(), *head.parameters()])
    x, y = lib.tensor(_numbers(16, 20, 32)), lib.tensor(np.arange(16) % 10)
    return _bound(lib, _training(optimiser, lambda x, y: nn.functional.cross_entropy(head(lstm(x)[0][:, -1]), y)), x, y)


def transformer(lib: Any) -> Step:
    """Return a training step of a transformer's layer: 8 sequences of 64 vectors of 128."""
    layer = lib.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    optimiser = lib.optim.Adam(layer.parameters())
    x, y = lib.tensor(_numbers(8, 64, 128)), lib.tensor(_numbers(8, 64, 128))
    return _bound(lib, _training(optimiser, lambda x, y: ((layer(x) - y) ** 2).mean()), x, y)


def _training(optimiser: Any, loss_of: Callable[..., Any]) -> Callable[..., Any]:
    def step(x, y):
        optimiser.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimiser.step()
        return loss

    return step


def _bound(lib: Any, step: Callable[..., Any], *arguments: Any) -> Step:
    """Return the step as a function without arguments, which can be compiled: `compiled` has the compiled one."""

    def call():
        return step(*arguments)

    function: Any = call
    function.compiled = lambda: lib.compile(step)
    function.arguments = arguments
    return call


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32) * np.float32(0.5)


# -- the same in JAX, where it is installed --


def jax_chain(size: int) -> Step:
    """Return the chain's gradient."""
    import jax
    import jax.numpy as jnp

    gradient = jax.jit(jax.grad(lambda u: (jnp.tanh(u) * u + jnp.exp(u) * jax.nn.sigmoid(u)).sum()))
    u = jnp.asarray(_numbers(size))
    return lambda: gradient(u).block_until_ready()


def jax_chain_with_sum(size: int) -> Step:
    """Return the sum of the chain, and its gradient."""
    import jax
    import jax.numpy as jnp

    both = jax.jit(jax.value_and_grad(lambda u: (jnp.tanh(u) * u + jnp.exp(u) * jax.nn.sigmoid(u)).sum()))
    u = jnp.asarray(_numbers(size))
    return lambda: jax.block_until_ready(both(u))


def jax_second_derivative() -> Step:
    """Return the product of the Hessian and the vector."""
    import jax
    import jax.numpy as jnp

    a, x, v = jnp.asarray(_numbers(64, 64)), jnp.asarray(_numbers(64)), jnp.asarray(_numbers(64))
    product = jax.jit(jax.grad(lambda x: (jax.grad(lambda x: (jnp.tanh(a @ x) ** 2).sum())(x) * v).sum()))
    return lambda: product(x).block_until_ready()


def jax_network(sizes: tuple[int, ...], batch: int, optimizer: str, activation: str = "ReLU") -> Step:
    """Return the training step of layers: Adam or SGD written out."""
    import jax
    import jax.numpy as jnp

    act = {"ReLU": jax.nn.relu, "Tanh": jnp.tanh}[activation]
    random = np.random.default_rng(0)
    weights = [
        (random.standard_normal((a, b)).astype(np.float32) / np.sqrt(a), np.zeros(b, np.float32))
        for a, b in zip(sizes, sizes[1:])
    ]
    x = jnp.asarray(_numbers(batch, sizes[0]))
    y = jnp.asarray(_numbers(batch, 1) if sizes[-1] == 1 else np.arange(batch) % sizes[-1])

    def loss_of(weights):
        out = x
        for i, (w, b) in enumerate(weights):
            out = out @ w + b
            out = act(out) if i < len(weights) - 1 else out
        if sizes[-1] == 1:
            return ((out - y) ** 2).sum()
        return -jax.nn.log_softmax(out)[jnp.arange(batch), y].mean()

    def sgd(state):
        weights, *rest = state
        loss, grads = jax.value_and_grad(loss_of)(weights)
        return loss, (jax.tree.map(lambda p, g: p - 1e-3 * g, weights, grads), *rest)

    def adam(state):
        weights, m, v, t = state
        loss, grads = jax.value_and_grad(loss_of)(weights)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate, root = 1e-3 / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        weights = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) / root + 1e-8), weights, m, v)
        return loss, (weights, m, v, t)

    step = jax.jit(sgd if optimizer == "SGD" else adam, donate_argnums=0)
    weights = jax.tree.map(jnp.asarray, weights)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = [(weights, zeros, jax.tree.map(jnp.zeros_like, weights), jnp.asarray(0.0))]

    def call():
        loss, state[0] = step(state[0])
        return jax.block_until_ready((loss, state[0]))

    return call


ROWS: dict[str, tuple[Callable[[Any], Step], Callable[[], Step] | None]] = {
    "784-128-10, batch 64, Adam": (
        lambda lib: network(lib, (784, 128, 10), 64, "Adam"),
        lambda: jax_network((784, 128, 10), 64, "Adam"),
    ),
    "transformer layer": (transformer, None),
    "LeNet, batch 64": (lenet, None),
    "LSTM": (recurrent, None),
    "tiny network, batch 1, SGD": (
        lambda lib: network(lib, (2, 16, 16, 1), 1, "SGD", "Tanh"),
        lambda: jax_network((2, 16, 16, 1), 1, "SGD", "Tanh"),
    ),
    "chain of 10^6": (lambda lib: chain(lib, 10**6), lambda: jax_chain(10**6)),
    "chain of 8*10^6": (lambda lib: chain(lib, 8 * 10**6), lambda: jax_chain(8 * 10**6)),
    "chain of 10^6 and its sum": (
        lambda lib: chain_with_sum(lib, 10**6),
        lambda: jax_chain_with_sum(10**6),
    ),
    "chain of 8*10^6 and its sum": (
        lambda lib: chain_with_sum(lib, 8 * 10**6),
        lambda: jax_chain_with_sum(8 * 10**6),
    ),
    "Hessian-vector product": (second_derivative, jax_second_derivative),
}


# -- measuring --


def contestants(row: str, torch: Any, jax: bool) -> dict[str, tuple[Step, float]]:
    """Return, by name, each step of a row and the seconds until it runs at its speed."""
    build, build_in_jax = ROWS[row]
    found = {
        "eager": _started(lambda: build(cygrad), 1),
        "compiled": _started(lambda: _compiled(build(cygrad)), TO_REPLAY),
    }
    if torch is not None:
        found["PyTorch"] = _started(lambda: build(torch), 1)
        try:
            found["torch.compile"] = _started(lambda: _compiled(build(torch)), 2)
        except Exception as error:  # its compiler may be missing, or refuse
            print(f"  torch.compile: {type(error).__name__}", file=sys.stderr)
    if jax and build_in_jax is not None:
        found["JAX"] = _started(build_in_jax, 1)
    return found


def _compiled(step: Any) -> Step:
    function, arguments = step.compiled(), step.arguments
    call: Any = lambda: function(*arguments)  # noqa: E731
    call.function = function
    return call


def _started(build: Callable[[], Step], calls: int) -> tuple[Step, float]:
    step = build()
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    return step, time.perf_counter() - begin


def measure(steps: dict[str, Step], samples: int, seconds: float) -> dict[str, float]:
    """Return the median seconds of each step, timed in turn."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    counts = {}
    for name, step in steps.items():
        begin = time.perf_counter()
        step()
        counts[name] = max(1, int(seconds / max(time.perf_counter() - begin, 1e-7)))
    for _ in range(samples):
        for name, step in steps.items():
            _settle(step)
            begin = time.perf_counter()
            for _ in range(counts[name]):
                step()
            times[name].append((time.perf_counter() - begin) / counts[name])
    return {name: statistics.median(found) for name, found in times.items()}


def _settle(step: Step) -> None:
    """Run a step untimed for a while: threads of the one before may still spin."""
    end = time.perf_counter() + 0.015
    while time.perf_counter() < end:
        step()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("--rows", default="", metavar="TEXT", help="only rows whose name contains this")
    parser.add_argument("--threads", type=int, default=usable_cpus())
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    options = parser.parse_args()
    torch, jax = _imported("torch"), _imported("jax")
    limit_threads(options.threads, torch)
    for name, text in describe(options.threads, torch).items():
        print(f"{name:>10}  {text}")
    print("\nmicroseconds of a step; first: milliseconds until it runs at its speed; ratio: compiled to the best other")
    for row in ROWS:
        if options.rows in row:
            print_row(row, torch, jax is not None, options.quick)
    return 0


def print_row(row: str, torch: Any, jax: bool, quick: bool) -> None:
    """Measure and print one row."""
    found = contestants(row, torch, jax)
    samples, seconds = (7, SECONDS / 4) if quick else (SAMPLES, SECONDS)
    times = measure({name: step for name, (step, _) in found.items()}, samples, seconds)
    others = [value for name, value in times.items() if name not in ("eager", "compiled")]
    ratio = f"{times['compiled'] / min(others):.2f}" if others else "-"
    print(f"\n{row}: ratio {ratio}, to eager {times['compiled'] / times['eager']:.2f}")
    for name, value in times.items():
        print(f"  {name:14} {value * 1e6:10.1f}   first {found[name][1] * 1e3:10.1f}")
    step: Any = found["compiled"][0]
    for reason in step.function.explain().reasons:
        print(f"  not replayed: {reason}")
    del found
    gc.collect()


def _imported(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        return None


if __name__ == "__main__":
    sys.exit(main())
