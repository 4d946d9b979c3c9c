"""Compiles kernels ahead of time: `warmup`."""

from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad.cuda.devices import _index, synchronize
from cygrad.cuda.random import get_rng_state, set_rng_state

__all__ = ["warmup"]

# Functions of one tensor
_ACTIVATIONS = """
    abs celu cos elu erf exp gelu hardsigmoid hardswish hardtanh leaky_relu log logsigmoid mish relu relu6 rsqrt selu
    sigmoid silu sin softplus sqrt tanh
""".split()


def _f() -> Any:
    return cygrad.nn.functional  # imported on first use


def _first(count: int, x: Any) -> Any:
    return cygrad.arange(count, device=x.device)


def _layer(kind: Any, x: Any) -> Any:
    return kind(8, 4).to(x.device, x.dtype)(x)[0]


def _step(kind: Any, x: Any) -> None:
    x.grad = cygrad.ones_like(x)
    kind([x], lr=0.1).step()


# Ops that use different kernels for different shapes
_SHAPES: dict[str, Any] = {
    **dict.fromkeys(
        "softmax log_softmax cross_entropy layer_norm rms_norm".split(),
        ((1, 600), (1, 5_000), (1, 10_000), (1, 17_000), (1, 70_000)),
    ),
    "scaled_dot_product_attention": ((4, 64), (4, 128)),
}

# Functions of a tensor that requires grad, of shape (4, 8) or one in `_SHAPES`
_CALLS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: _f().softmax(x, -1),
    "log_softmax": lambda x: _f().log_softmax(x, -1),
    "cross_entropy": lambda x: _f().cross_entropy(x, _first(len(x), x)),
    "nll_loss": lambda x: _f().nll_loss(x, _first(4, x)),
    "mse_loss": lambda x: _f().mse_loss(x, x.detach()),
    "l1_loss": lambda x: _f().l1_loss(x, x.detach()),
    "smooth_l1_loss": lambda x: _f().smooth_l1_loss(x, x.detach()),
    "binary_cross_entropy_with_logits": lambda x: _f().binary_cross_entropy_with_logits(x, x.detach()),
    "layer_norm": lambda x: _f().layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x: _f().rms_norm(x, x.shape[1:]),
    "batch_norm": lambda x: _f().batch_norm(x, None, None, training=True),
    "group_norm": lambda x: _f().group_norm(x, 2),
    "dropout": lambda x: _f().dropout(x),
    "embedding": lambda x: _f().embedding(_first(4, x), x),
    "scaled_dot_product_attention": lambda x: _f().scaled_dot_product_attention(*[x.view(1, 1, *x.shape)] * 3),
    "conv2d": lambda x: _f().conv2d(x.view(1, 1, 4, 8), x.view(1, 1, 4, 8)[:, :, :3, :3], padding=1),
    "max_pool2d": lambda x: _f().max_pool2d(x.view(1, 1, 4, 8), 2),
    "avg_pool2d": lambda x: _f().avg_pool2d(x.view(1, 1, 4, 8), 2),
    "linear": lambda x: _f().linear(x, x),
    "lstm": lambda x: _layer(cygrad.nn.LSTM, x),
    "gru": lambda x: _layer(cygrad.nn.GRU, x),
    "cumsum": lambda x: x.cumsum(0),
    "gather": lambda x: x.gather(0, _first(4, x).unsqueeze(1)),
    "index_select": lambda x: x.index_select(0, _first(4, x)),
    "sum": lambda x: x.sum(0),
    "SGD": lambda x: _step(cygrad.optim.SGD, x),
    "Adam": lambda x: _step(cygrad.optim.Adam, x),
    "AdamW": lambda x: _step(cygrad.optim.AdamW, x),
}


def warmup(ops: Iterable[str] | None = None, dtypes: Iterable[Any] = (cygrad.float32,), device: Any = None) -> None:
    """Run ops forward and backward on small inputs, so that their kernels are compiled and cached on disk by CuPy.

    `ops` are names of functions of one tensor, or of the ops of a training step (losses, normalizations,
    `"conv2d"`, `"lstm"`, `"Adam"`, ...); None selects all of the latter and the activations. Later random numbers are
    not affected. CuPy kernels that depend on shapes are compiled on first use. Raises ValueError for other names,
    RuntimeError without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> report = cygrad.cuda.warmup(["exp"])
    """
    index = _index(device)
    names = [*_CALLS, *_ACTIVATIONS] if ops is None else list(ops)
    calls = [(_call_of(name), (4, 8)) for name in names]
    calls += [(_CALLS[name], shape) for name in names for shape in _SHAPES.get(name, ())]
    state = get_rng_state(index)
    for dtype in dtypes:
        for call, shape in calls:
            x = cygrad.full(shape, 0.5, dtype=dtype, device=f"cuda:{index}", requires_grad=True)
            with cygrad.enable_grad():
                found = call(x)
                if found is not None and found.requires_grad:
                    found.sum().backward()
    set_rng_state(state, index)
    synchronize(index)


def _call_of(name: str) -> Callable[[Any], Any]:
    for place in (_CALLS.get, lambda name: getattr(_f(), name, None), lambda name: getattr(cygrad, name, None)):
        found: Any = place(name)
        if callable(found):
            return found
    raise ValueError(f"warmup(): there is no op named {name!r}")
