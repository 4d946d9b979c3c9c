"""Elementwise functions of compiled steps that are launched together: their bits, and what else must see them."""

import cupy_standin
import pytest
from cupy_standin import compiler

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._core.graph.internals import array_of
from cygrad._kernels.device import cupy_library, gpu_forms

pytestmark = pytest.mark.skipif(
    compiler.compiler() is None and not cupy_library.is_available(),
    reason="kernels run by a C++ compiler: there is none",
)


@pytest.fixture(autouse=True)
def gpu(cupy):
    yield cupy
    torch.compiler.reset()
    assert not gpu_forms.captures


def made(*shape, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    return (torch.rand(shape) + 0.5).to(dtype).cuda()


def bits(tensor):
    return tensor.dtype, tensor.shape, array_of(tensor.detach().cpu().contiguous()).tobytes()


def compared(step, *calls):
    """Compile a step and call it with each of these arguments twice; return what one replay launches."""
    compiled = torch.compile(step)
    for _ in range(3):
        for args in calls:
            found, expected = compiled(*args), step(*args)
            found, expected = (x if isinstance(x, (tuple, list)) else [x] for x in (found, expected))
            assert [bits(t) for t in found] == [bits(t) for t in expected]
            assert [t.stride() for t in found] == [t.stride() for t in expected]
    explained = compiled.explain()
    assert explained.replays >= 2, explained
    assert explained.captures == 1, f"not joined at once: {explained}"
    if not cupy_standin.is_installed():
        return None
    with cupy_standin.watch() as seen:
        compiled(*calls[0])
    return [name for name in seen.launches if name != "memcpy"]


def chain(x):
    return torch.tanh(x) * x + torch.exp(x) * torch.sigmoid(x)


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (35,), (6, 35), (3000,)], ids=str)
def test_a_chain_is_one_kernel(dtype, shape):
    launched = compared(chain, (made(*shape, dtype=dtype),), (made(*shape, seed=1, dtype=dtype),))
    assert launched in (None, ["cygrad_group"])


def test_a_chain_and_its_gradient_are_one_kernel_and_a_sum():
    weight = made(40, 50).requires_grad_()

    def step(x):
        weight.grad = None
        loss = chain(weight * x).sum()
        loss.backward()
        return loss.detach(), weight.grad * 1

    launched = compared(step, (made(40, 50),), (made(40, 50, seed=1),))
    assert launched is None or (launched.count("cygrad_group") <= 2 and len(launched) <= 6), launched


def test_gradients_of_a_function():
    def step(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(chain(x).sum(), x)[0]

    launched = compared(step, (made(300),), (made(300, seed=1),))
    assert launched is None or launched.count("cygrad_group") == 1, launched


FUNCTIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "div": lambda x, y: x / y,
    "number": lambda x, y: (x * 2.5 + 1) / 3 - 0.25,
    "number first": lambda x, y: 2.5 / y - 1.5,
    "exp": lambda x, y: x.exp(),
    "log": lambda x, y: y.log(),
    "sqrt": lambda x, y: y.sqrt(),
    "rsqrt": lambda x, y: y.rsqrt(),
    "square": lambda x, y: y.square() + x**2,
    "sin": lambda x, y: x.sin() + x.cos(),
    "log1p": lambda x, y: y.log1p() + y.expm1(),
    "neg": lambda x, y: -x,
    "relu": lambda x, y: F.relu(x - 0.9),
    "clamp": lambda x, y: x.clamp(0.5, 0.75) + x.clamp(min=0.6) * x.clamp(max=0.9),
    "leaky_relu": lambda x, y: F.leaky_relu(x - 1, 0.1),
    "softplus": lambda x, y: F.softplus(x, 2.0),
    "silu": lambda x, y: F.silu(x),
    "mish": lambda x, y: F.mish(x),
    "gelu": lambda x, y: F.gelu(x) + F.gelu(x, approximate="tanh"),
    "erf": lambda x, y: torch.erf(x),
    "row": lambda x, y: x * y[:1] + y[1],
    "column": lambda x, y: x * y[:, :1],
    "one": lambda x, y: x * y[0, 0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_have_the_same_bits_in_a_group(name, dtype):
    def step(x, y):
        x = x * 2 - 0.5
        z = FUNCTIONS[name](x, y) + x
        w = x.detach().requires_grad_()
        return z * z, torch.autograd.grad((FUNCTIONS[name](w, y) * w).sum(), w)[0] * 2

    compared(step, *((made(6, 35, seed=i, dtype=dtype), made(6, 35, seed=i + 9, dtype=dtype)) for i in range(2)))


def test_what_is_needed_afterwards_is_kept():
    def step(x):
        a = x * 2
        b = a + 1
        view = b[1:]
        c = b.exp()
        return a, c, view * 3

    compared(step, (made(6),), (made(6, seed=1),))


def test_operands_that_change_in_place():
    held = torch.full((6,), 0.5, device="cuda")

    def step(x):
        a = x * held
        held.mul_(2)
        b = a + held
        held.zero_()
        held.add_(0.5)
        c = b * held
        return a * c, c

    compared(step, (made(6),), (made(6, seed=1),))


def test_memory_that_is_freed_meanwhile():
    def step(x):
        found = []
        for i in range(6):
            y = x * float(i)
            y = y + 1
            found.append(torch.zeros(50, device="cuda") + y)
        return found

    compared(step, (made(50),), (made(50, seed=1),))


def test_long_groups_are_split():
    others = [made(20, seed=i) for i in range(60)]

    def step(x):
        for each in others:
            x = x * 1.01 + each
        return x

    launched = compared(step, (made(20),), (made(20, seed=1),))
    assert launched is None or 2 <= launched.count("cygrad_group") <= 6


def test_functions_of_different_shapes_and_dtypes():
    def step(x, y):
        a, b = x * 2 + 1, y.exp() * 3
        c = a.double() * 2
        return a + b[:, None] * a, c.float() + a, b.half() * 2

    compared(step, (made(4, 5), made(4)), (made(4, 5, seed=1), made(4, seed=2)))


WORK = {
    "views": lambda m: m(4, 5)[1:, ::2].t() @ m(3, 2),
    "in place": lambda m: m(4).clone().add_(m(4)).mul_(2),
    "joined": lambda m: torch.cat([m(2), m(3), torch.stack([m(2), m(2)])[0]]),
    "sums": lambda m: m(3, 4).sum(0) + m(3, 4).mean() + m(3, 4).amax(1).sum() + m(4).cumsum(0),
    "normalized": lambda m: (m(30, 40) - m(30, 40).mean(1, keepdim=True)) / m(30, 40).std(1, keepdim=True),
    "variance by hand": lambda m: (m(30, 40) - (m(30, 40) * 2).sum(1, keepdim=True)).square().mean(1),
    "sorted": lambda m: m(9).sort()[0] + m(9).topk(9)[0],
    "rows": lambda m: m(4, 5)[torch.arange(3, device="cuda")],
    "gathered": lambda m: m(4, 5).gather(1, torch.arange(4, device="cuda")[:, None]),
    "where": lambda m: torch.where(m(4) > 1, m(4), m(4) * 2),
    "compared": lambda m: (m(4) > 1) | (m(4) == m(4)),
    "copied": lambda m: torch.empty(4, device="cuda").copy_(m(4)) + m(4).clone(),
    "converted": lambda m: m(4).double() + m(4).half() + m(4).bfloat16(),
    "linear": lambda m: F.linear(m(3, 4), m(5, 4), m(5)),
    "products": lambda m: m(2, 3, 4) @ m(2, 4, 3) + torch.einsum("ij,bjk->bik", m(3, 3), m(2, 3, 3)),
    "softmax": lambda m: F.softmax(m(3, 4), 1) + F.log_softmax(m(3, 4), 1),
    "layer norm": lambda m: F.layer_norm(m(3, 4), (4,), m(4), m(4)),
    "batch norm": lambda m: F.batch_norm(m(1, 2, 6, 6), None, None, m(2), m(2), training=True),
    "convolution": lambda m: F.conv2d(m(1, 2, 6, 6), m(3, 2, 3, 3), m(3)),
    "pooling": lambda m: F.max_pool2d(m(1, 2, 6, 6), 2) + F.avg_pool2d(m(1, 2, 6, 6), 2),
    "attention": lambda m: F.scaled_dot_product_attention(m(1, 2, 4, 8), m(1, 2, 4, 8), m(1, 2, 4, 8)),
    "loss": lambda m: F.mse_loss(m(3), m(3) * 2) + F.binary_cross_entropy_with_logits(m(3), m(3)),
    "flipped": lambda m: m(4, 5).flip(0) + m(5, 4).t().contiguous() + m(2, 10).reshape(4, 5),
    "dropped": lambda m: F.dropout(m(40), 0.5) * 2,
    "random in place": lambda m: m(40).detach().uniform_() + m(40),
    "norms": lambda m: m(3, 4).norm() + m(3, 4).logsumexp(1).sum() + m(3, 4).amax(),
    "set": lambda m: m(3, 4).index_fill(0, torch.arange(1, device="cuda"), 2.0) + m(4).masked_fill(m(4) > 1, 0.0),
    "slices set": lambda m: F.pad(m(3, 4), (1, 1)) + m(3, 6).narrow(0, 0, 3),
    "filled": lambda m: m(4) * torch.full((), 3.0, device="cuda") + torch.ones(4, device="cuda") * m(4),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_everything_else_sees_what_waits(name):
    held = {}

    def m(*shape):
        return (held.setdefault(shape, made(*shape, seed=len(shape))) * 0.75 + 0.25).sqrt()

    WORK[name](m)  # makes the tensors

    def step(x):
        return WORK[name](lambda *shape: (held[shape] * x + 0.25).sqrt())

    def with_gradient(x):
        leaves = {shape: t.detach().requires_grad_() for shape, t in held.items()}
        out = WORK[name](lambda *shape: (leaves[shape] * x + 0.25).sqrt())
        if not out.requires_grad:
            return out
        grads = torch.autograd.grad((out * out).sum(), list(leaves.values()), allow_unused=True)
        return [out.detach() * 1, *(g * 2 for g in grads if g is not None)]

    for each in (step, with_gradient):
        torch.cuda.manual_seed(3)
        compiled = torch.compile(each)
        for i in range(6):
            x = made(seed=i)
            state = torch.cuda.get_rng_state()
            found = compiled(x)
            after = torch.cuda.get_rng_state()
            torch.cuda.set_rng_state(state)
            expected = each(x)
            torch.cuda.set_rng_state(after)
            found, expected = (v if isinstance(v, list) else [v] for v in (found, expected))
            assert [bits(t) for t in found] == [bits(t) for t in expected]
        explained = compiled.explain()
        assert explained.replays >= 2 and explained.captures == 1, explained
