"""Rows against other automatic differentiation libraries, if installed: JAX, HIPS autograd, MyGrad.

JAX runs compiled functions, and its results are waited for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.layers import ELEMENTWISE, elementwise
from benchmarks.row import Library, Names, Row

Setup = Callable[[Library], Names]
MILLION = 10**6


def jax_elementwise() -> Names:
    """Set up the chain of layers.py and its gradient, compiled as one function."""
    import jax
    import jax.numpy as jnp

    def chain(x, w):
        return jax.nn.sigmoid(jnp.exp(jnp.tanh(x) * w))

    def both(x, w, g):
        result, pull_back = jax.vjp(chain, x, w)
        return result, pull_back(g)

    random = np.random.default_rng(0)
    x, w, g = (jnp.asarray(random.standard_normal(MILLION, dtype=np.float32)) for _ in range(3))
    return {"jax": jax, "run": jax.jit(both), "x": x, "w": w, "g": g}


def jax_network() -> Names:
    """Set up the SGD step of 784-128-10 on a batch of 64, compiled as one function that returns new parameters."""
    import jax
    import jax.numpy as jnp

    def loss(parameters, images, labels):
        w1, b1, w2, b2 = parameters
        scores = jax.nn.relu(images @ w1 + b1) @ w2 + b2
        return -jax.nn.log_softmax(scores)[jnp.arange(64), labels].mean()

    def step(parameters, images, labels):
        value, grads = jax.value_and_grad(loss)(parameters, images, labels)
        return value, [p - 0.01 * g for p, g in zip(parameters, grads)]

    random = np.random.default_rng(0)
    shapes = (784, 128), (128,), (128, 10), (10,)
    parameters = [jnp.asarray(random.uniform(-0.04, 0.04, shape).astype(np.float32)) for shape in shapes]
    return {
        "jax": jax,
        "step": jax.jit(step, donate_argnums=0),
        "parameters": parameters,
        "images": jnp.asarray(random.standard_normal((64, 784), dtype=np.float32)),
        "labels": jnp.arange(64) % 10,
    }


JAX_ELEMENTWISE = "jax.block_until_ready(run(x, w, g))"
JAX_STEP = "loss, parameters[:] = jax.block_until_ready(step(parameters, images, labels))"


def autograd_chain() -> Names:
    """Set up the gradient of 100 multiplications."""
    from autograd import grad

    def chain(x, w):
        z = x
        for _ in range(100):
            z = z * w
        return z

    return {"both": grad(chain, (0, 1)), "x": 1.0, "w": 0.999}


def autograd_elementwise() -> Names:
    """Set up the chain of layers.py and its gradient."""
    import autograd.numpy as anp
    from autograd import make_vjp

    def chain(arguments):
        x, w = arguments
        return 1 / (1 + anp.exp(-anp.exp(anp.tanh(x) * w)))

    random = np.random.default_rng(0)
    x, w, g = (random.standard_normal(MILLION, dtype=np.float32) for _ in range(3))
    return {"make_vjp": make_vjp, "chain": chain, "x": x, "w": w, "g": g}


AUTOGRAD_ELEMENTWISE = """
pull_back, result = make_vjp(chain)((x, w))
pull_back(g)
"""


def mygrad_scalars() -> Names:
    """Set up two tensors of one float32 element."""
    import mygrad

    return {name: mygrad.tensor([value], dtype=np.float32) for name, value in (("x", 1.0), ("w", 0.999))}


MYGRAD_CHAIN = """
z = x
for _ in range(100):
    z = z * w
z.backward()
x.null_grad(); w.null_grad()
"""


def mygrad_elementwise() -> Names:
    """Set up the tensors for the chain of layers.py."""
    import mygrad
    from mygrad.nnet.activations import sigmoid

    random = np.random.default_rng(0)
    x, w = (mygrad.tensor(random.standard_normal(MILLION, dtype=np.float32)) for _ in range(2))
    return {"mg": mygrad, "sigmoid": sigmoid, "x": x, "w": w, "g": random.standard_normal(MILLION, dtype=np.float32)}


MYGRAD_ELEMENTWISE = """
sigmoid(mg.exp(mg.tanh(x) * w)).backward(g)
x.null_grad(); w.null_grad()
"""


def rows(chain: str, scalars: Setup, step: str, network: Setup) -> list[Row]:
    """Return the rows, built from statements that are also compared with PyTorch."""
    name, wave = "100 multiplications and backward", "tanh, mul, exp, sigmoid of 10^6"
    return [
        Row(f"{name}, autograd", chain, scalars, None, "autograd", peer=("both(x, w)", autograd_chain)),
        Row(f"{name}, MyGrad", chain, scalars, None, "MyGrad", peer=(MYGRAD_CHAIN, mygrad_scalars)),
        Row("784-128-10, batch 64, SGD step, JAX", step, network, 0.7, "JAX", peer=(JAX_STEP, jax_network)),
        Row(f"{wave}, JAX", ELEMENTWISE, elementwise(MILLION), 1.5, "JAX",
            peer=(JAX_ELEMENTWISE, jax_elementwise)),
        Row(f"{wave}, autograd", ELEMENTWISE, elementwise(MILLION), None, "autograd",
            peer=(AUTOGRAD_ELEMENTWISE, autograd_elementwise)),
        Row(f"{wave}, MyGrad", ELEMENTWISE, elementwise(MILLION), None, "MyGrad",
            peer=(MYGRAD_ELEMENTWISE, mygrad_elementwise)),
    ]  # fmt: skip
