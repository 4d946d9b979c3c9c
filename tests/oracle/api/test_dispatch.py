"""Modes and classes with `__torch_dispatch__`, and `make_fx`: what PyTorch's receive and return."""

import importlib

import pytest
from oracle.programs import compare

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def mode_of(torch, said):
    """Return a mode that appends each op with its arguments, tensors as their shapes."""
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

    def show(value):
        if isinstance(value, torch.Tensor):
            return f"T{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return [show(item) for item in value]
        return str(value)

    class Notes(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            if func is not torch.ops.aten.detach.default:  # PyTorch detaches what it saves
                said.append([str(func), show(args), {k: str(v) for k, v in (kwargs or {}).items()}, show(found)])
            return found

    return Notes()


def seen(torch, program, *given):
    said = []
    with mode_of(torch, said):
        program(*given)
    return said


def data(torch, *size, grad=False):
    numbers = torch.arange(1.0, 1 + torch.Size(size).numel()).reshape(size) / 7
    return numbers.requires_grad_(grad)


FORWARD = {
    "arithmetic": lambda t, x, y: [
        (x + y) * 2,
        y / x,
        x**2 - 3,
        -x,
        2 - x,
        2**x,
        x**y,
        t.add(x, y, alpha=2),
        y // x,
        x % 2,
    ],
    "comparisons": lambda t, x, y: [x > y, x > 0, x == y, x != 1, t.where(x > y, x, y), x.clamp(0, 1), t.maximum(x, y)],
    "units": lambda t, x, y: [
        *(getattr(t.nn.functional, name)(x) for name in ("relu", "gelu", "silu", "leaky_relu", "elu", "softplus")),
        *(
            getattr(t, name)(x)
            for name in ("sigmoid", "tanh", "exp", "log", "sqrt", "abs", "sign", "sin", "erf", "isnan")
        ),
        t.softmax(x, 1),
        t.log_softmax(x, 1),
    ],
    "products": lambda t, x, y: [
        x @ y.t(),
        x @ y[0],
        x[0] @ y[0],
        t.nn.functional.linear(x, y),
        t.nn.functional.linear(x, y, y[:, 0]),
        t.nn.functional.linear(t.stack([x, y]), y),
        t.addmm(x @ y.t(), x, y.t()),
        t.stack([x, y]) @ y.t(),
    ],
    "reductions": lambda t, x, y: [
        x.sum(),
        x.sum(1, keepdim=True),
        x.mean(),
        x.mean(1),
        x.max(),
        x.max(1),
        x.var(),
        x.std(1),
        x.prod(),
        x.logsumexp(1),
        x.cumsum(1),
        x.argmax(),
        x.argmax(1),
        x.amax(1),
        x.topk(2),
        x.sort(1),
        x.norm(),
        (x > 0).any(),
        (x > 0).all(1),
    ],
    "views": lambda t, x, y: [
        x.view(3, 2),
        x.reshape(6),
        x.permute(1, 0),
        x.transpose(0, 1),
        x[0],
        x[:, 1],
        x[..., None],
        x.unsqueeze(0).squeeze(0),
        x.expand(5, 2, 3),
        x.split(2, 1),
        x.unbind(0),
        x.t(),
        x.clone(),
        t.cat([x, y], 1),
        t.stack([x, y]),
        x.repeat(2, 1),
        x.flip(0),
        x.roll(1, 0),
        t.tril(x),
        x.masked_fill(x > 0, 1.0),
        x.diagonal(),
    ],
    "losses": lambda t, x, y: [
        t.nn.functional.mse_loss(x, y),
        t.nn.functional.l1_loss(x, y),
        t.nn.functional.smooth_l1_loss(x, y),
        t.nn.functional.layer_norm(x, (3,)),
    ],
    "writes": lambda t, x, y: [
        x.add_(1),
        x.mul_(y),
        x.zero_(),
        x.fill_(2.0),
        x.copy_(y),
        x.relu_(),
        x.addcmul_(y, y, value=2),
        x.lerp_(y, 0.5),
        x.sub_(y, alpha=2),
        x.div_(2),
        x.sqrt_(),
        x.uniform_(),
    ],
    "new": lambda t, x, y: [
        t.ones(2),
        t.zeros(2, 3),
        t.empty(2),
        t.full((2,), 3.0),
        t.arange(3),
        t.arange(0, 6, 2),
        t.eye(2),
        t.rand(2),
        t.ones_like(x),
        t.zeros_like(x),
        x.new_zeros(2),
        t.ones(2, dtype=t.long),
        x.double(),
    ],
}


@pytest.mark.parametrize("name", FORWARD)
def test_ops_and_their_arguments(name):
    def program(torch, say):
        x, y = data(torch, 2, 3), data(torch, 2, 3)
        say(str(seen(torch, FORWARD[name], torch, x, y)))

    compare(program)


BACKWARD = {
    "sum": lambda t, x: (x * 2).sum(),
    "mean": lambda t, x: x.mean(1).sum(),
    "sigmoid": lambda t, x: x.sigmoid().sum(),
    "gelu": lambda t, x: t.nn.functional.gelu(x).sum(),
    "softmax": lambda t, x: t.softmax(x, 1).sum(),
    "pow": lambda t, x: x.pow(3).sum(),
    "sin": lambda t, x: x.sin().sum(),
    "mse": lambda t, x: t.nn.functional.mse_loss(x, x.detach() * 2),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (3,)).sum(),
    "views": lambda t, x: x[1].sum(),
    "numbers": lambda t, x: (x / 2 - 1).sum(),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients(name):
    def program(torch, say):
        x = data(torch, 2, 3, grad=True)
        say(str([call[0] for call in seen(torch, lambda: BACKWARD[name](torch, x).backward())]))
        say(x.grad.numpy().round(4).tolist())

    compare(program)


def test_make_fx():
    def program(torch, say):
        make_fx = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
        x = data(torch, 2, 3)
        for function in (
            lambda x: torch.sin(x).cos() + 1,
            lambda x: (x @ x.t()).softmax(1).sum(0),
            lambda x: x.clone().add_(1),
            lambda x: torch.nn.functional.linear(x, x).relu(),
        ):
            say(make_fx(function)(x).code)
        with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
            make_fx(lambda x: x if x.sum() > 0 else -x)(x)
        say(lambda: make_fx(lambda x: x, tracing_mode="other")(x))

    compare(program)


def test_classes():
    def program(torch, say):
        tree_map = importlib.import_module(f"{torch.__name__}.utils._pytree").tree_map
        said = []

        class Holder(torch.Tensor):
            __slots__ = ["elem"]
            __torch_function__ = torch._C._disabled_torch_function_impl

            @staticmethod
            def __new__(cls, elem, requires_grad=False):
                made = torch.Tensor._make_wrapper_subclass(
                    cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, requires_grad=requires_grad
                )
                made.elem = elem
                return made

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                said.append(str(func))
                inner = lambda v: v.elem if isinstance(v, cls) else v  # noqa: E731
                outer = lambda v: cls(v) if isinstance(v, torch.Tensor) else v  # noqa: E731
                return tree_map(outer, func(*tree_map(inner, args), **tree_map(inner, kwargs or {})))

        functional = torch.nn.functional
        for function in (
            lambda x: (x * 2 + 1).sum(),
            lambda x: functional.cross_entropy(functional.linear(x, data(torch, 4, 3)), torch.tensor([1, 2])),
            lambda x: functional.gelu(x).tanh().mean(),
            lambda x: x.view(3, 2)[1:].max(1)[0].sum(),
        ):
            x = Holder(data(torch, 2, 3), requires_grad=True)
            y = function(x)
            y.backward()
            say([type(y).__name__, y.elem.item() // 1e-4, type(x.grad).__name__])
            say(x.grad.elem.numpy().round(4).tolist())
        x = Holder(data(torch, 3))
        say(lambda: x.nonzero().elem.tolist())
        say(lambda: torch.Tensor._make_wrapper_subclass(type("No", (torch.Tensor,), {}), (2,)))
        x.add_(1)
        say(x.elem)

    compare(program)
