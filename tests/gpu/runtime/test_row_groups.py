"""Functions of rows of compiled steps that are launched together with the elementwise functions around them."""

import gc
import random

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

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SOME_DTYPES = [
    torch.float32,
    torch.bfloat16,
    *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in (torch.float64, torch.float16)),
]
LENGTHS = [1, 7, 1000, 4096, 40000]


@pytest.fixture(autouse=True)
def gpu(cupy):
    yield cupy
    torch.compiler.reset()
    assert not gpu_forms.captures


def made(*shape, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    return torch.randn(shape).to(dtype).cuda()


def bits(tensor):
    return tensor.dtype, tensor.shape, array_of(tensor.detach().cpu().contiguous()).tobytes()


def listed(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def compared(step, *calls):
    """Compile a step, compare replays with eager calls bit by bit, and return (what a replay launches, explanation)."""
    for _ in range(2):
        step(*calls[0])
    gc.collect()  # not while the step is watched
    compiled = torch.compile(step)
    for _ in range(3):
        for args in calls:
            found, expected = listed(compiled(*args)), listed(step(*args))
            assert [bits(t) for t in found] == [bits(t) for t in expected]
    explained = compiled.explain()
    assert explained.replays >= 2, explained
    assert explained.captures == 1, f"not joined at once: {explained}"
    if not cupy_standin.is_installed():
        return None, explained
    with cupy_standin.watch() as seen:
        compiled(*calls[0])
    return [name for name in seen.launches if name != "memcpy"], explained


def pairs(*shape, dtype=torch.float32):
    return [(made(*shape, seed=i, dtype=dtype), made(*shape, seed=i + 7, dtype=dtype)) for i in range(2)]


def with_gradients(function):
    """The results of a function of two tensors and their gradients."""

    def step(*args):
        leaves = [x.detach().requires_grad_() for x in args]
        found = listed(function(*leaves))
        grads = torch.autograd.grad(found, leaves, [torch.full_like(y, 0.7) for y in found], allow_unused=True)
        return [y.detach() * 1 for y in found] + [g * 1 for g in grads if g is not None]

    return step


def lines(r):
    """A weight and a bias: two rows of an array."""
    rows = r.reshape(-1, r.shape[-1])
    return rows[0], rows[-1]


def gelu_of_layer_norm(x, r):
    weight, bias = lines(r)
    return F.gelu(F.layer_norm(x + r, x.shape[-1:], weight, bias) * r)


ONE_KERNEL = {
    "softmax": lambda x, r: F.softmax(x * 0.25 + r, -1) * 2,
    "softmax with a mask": lambda x, r: F.softmax(x * 0.25 + r[0], -1),
    "log_softmax": lambda x, r: F.log_softmax(F.silu(x) - r, -1).exp(),
    "softmax of softmax": lambda x, r: F.softmax(F.softmax(x, -1) * 9 + r, -1),
    "layer norm": gelu_of_layer_norm,
    "layer norm without weights": lambda x, r: F.layer_norm(x * r, x.shape[-1:]) + x,
    "rms norm": lambda x, r: F.rms_norm(x + r, x.shape[-1:], lines(r)[0]) * r,
    "two norms": lambda x, r: F.layer_norm(F.rms_norm(x + r, x.shape[-1:]) * r, x.shape[-1:]) + x,
    "sum": lambda x, r: (x * r).sum(-1) * 2 + 1,
    "mean": lambda x, r: (x * r) - (x * r).mean(-1, keepdim=True),
    "by hand": lambda x, r: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * r,
    "deviation": lambda x, r: (x * r).std(-1) + 1,
    "extrema": lambda x, r: ((x * r).amax(-1), (x + r).amin(-1) * 2),
    "logsumexp": lambda x, r: x - torch.logsumexp(x * r, -1, keepdim=True),
    "norm": lambda x, r: x * r / (x * r).norm(dim=-1, keepdim=True),
    "norms": lambda x, r: [(x + r).norm(p, dim=-1) for p in (0, 1, torch.inf, -torch.inf)],
    "last two": lambda x, r: (x + r).sum((-2, -1)),
    "columns": lambda x, r: F.softmax(x * r.sum(-1, keepdim=True) + r.reshape(-1)[:36].view(4, 9, 1), -1),
    "column of last two": lambda x, r: F.softmax(x * r.reshape(-1)[:4].view(4, 1, 1), -1) + r,
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_are_one_kernel(name):
    launched, _ = compared(ONE_KERNEL[name], *pairs(4, 9, 35))
    assert launched in (None, ["cygrad_rows"])


WITH_GRADIENTS = [name for name in ONE_KERNEL if name not in ("extrema", "norms", "norm", "deviation", "logsumexp")]


@pytest.mark.parametrize("name", WITH_GRADIENTS)
@pytest.mark.parametrize("dtype", SOME_DTYPES, ids=str)
def test_with_gradients(name, dtype):
    compared(with_gradients(ONE_KERNEL[name]), *pairs(4, 9, 35, dtype=dtype))


@pytest.mark.parametrize("name", ["extrema", "norms", "norm", "deviation", "logsumexp"])
def test_gradients_of_reductions(name):
    compared(with_gradients(ONE_KERNEL[name]), *pairs(4, 9, 35))


def test_softmax_and_its_gradient_are_one_kernel():
    weight = made(36, 35, seed=3)

    def step(x, r):
        x = x.detach().requires_grad_()
        found = F.softmax(x * 0.25 + r, -1) * 2
        return found.detach(), torch.autograd.grad(found, x, weight)[0]

    launched, _ = compared(step, *pairs(36, 35))
    assert launched in (None, ["cygrad_rows"])


def test_layer_norm_and_its_gradient():
    """The gradients of weight and bias are sums over columns, of what is written for them."""
    weight, bias, given = made(35, seed=1), made(35, seed=2), made(36, 35, seed=3)

    def step(x, r):
        leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
        found = F.gelu(F.layer_norm(leaves[0] + r, (35,), *leaves[1:]) * r)
        return found.detach(), *[g * 1 for g in torch.autograd.grad(found, leaves, given)]

    launched, _ = compared(step, *pairs(36, 35))
    assert launched in (None, ["cygrad_rows", "column_sums", "totals", "cygrad_group"])


@pytest.mark.parametrize("frozen", ["weight", "bias", "both", "input"])
def test_layer_norm_with_frozen_parameters(frozen):
    weight, bias, given = made(35, seed=1), made(35, seed=2), made(36, 35, seed=3)

    def step(x, r):
        named = {"input": x, "weight": weight, "bias": bias}
        leaves = {name: t.detach() for name, t in named.items()}
        wanted = [t.requires_grad_() for name, t in leaves.items() if frozen not in (name, name == "input" or "both")]
        found = F.layer_norm(leaves["input"] * r, (35,), leaves["weight"], leaves["bias"]) * r
        return found.detach() * 1, *[g * 1 for g in torch.autograd.grad(found, wanted, given)]

    compared(step, *pairs(36, 35))


def test_dropout_draws_beside_the_kernel():
    def step(x, r):
        x = x.detach().requires_grad_()
        found = F.dropout(F.softmax(x * r, -1), 0.25) * 2
        return found.detach() * 1, torch.autograd.grad(found, x, r)[0]

    args = pairs(36, 35)[0]
    for _ in range(2):
        step(*args)
    compiled = torch.compile(step)
    for i in range(5):
        torch.cuda.manual_seed(i)
        found = compiled(*args)
        torch.cuda.manual_seed(i)
        assert [bits(t) for t in found] == [bits(t) for t in step(*args)]
    assert compiled.explain().replays >= 2 and compiled.explain().captures == 1, compiled.explain()
    if cupy_standin.is_installed():
        with cupy_standin.watch() as seen:
            compiled(*args)
        assert seen.launches.count("cygrad_rows") == 1 and "cygrad_group" not in seen.launches


def of_lengths(x, r):
    weight, bias = lines(r)
    y = F.gelu(F.layer_norm(x + r, x.shape[-1:], weight, bias) * r) + x
    return F.softmax(y * 0.5 + r[:1], -1) * r, (y * r).sum(-1) + 1, F.log_softmax(x - r, -1)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", SOME_DTYPES, ids=str)
def test_lengths(length, dtype):
    rows = 17 if length < 4096 else 16
    launched, _ = compared(with_gradients(of_lengths), *pairs(rows, length, dtype=dtype)[:1] * 2)
    assert launched is None or "cygrad_rows" in launched


def test_wide_blocks_in_double_precision():
    compared(of_lengths, *pairs(16, 8192, dtype=torch.float64)[:1] * 2)


def test_what_is_needed_afterwards_is_kept():
    def step(x, r):
        a = x * r
        b = F.softmax(a, -1)
        means = b.mean(-1)
        view = b[1:]
        return a, b + 1, view * 3, means, means.exp()

    compared(step, *pairs(18, 6))


def test_what_nothing_needs_is_not_launched():
    def step(x, r):
        F.softmax(x * r, -1).sum(-1)
        return x * r + 1

    launched, _ = compared(step, *pairs(18, 6))
    assert launched in (None, ["cygrad_group"])


def test_rows_of_different_lengths_are_different_kernels():
    def step(x, r):
        y = F.softmax(x * r, -1)
        return y.sum((1, 2)), y.sum(-1) + 1

    launched, _ = compared(step, *pairs(16, 5, 6))
    assert launched in (None, ["cygrad_rows", "cygrad_rows"])


@pytest.mark.parametrize("size", [65536, 70001])
@pytest.mark.parametrize("dtype", SOME_DTYPES, ids=str)
def test_a_chain_with_its_gradient_and_the_sums_of_chunks_are_one_kernel(size, dtype):
    bias = made(17, seed=4, dtype=dtype)

    def step(x, r):
        x = x.detach().requires_grad_()
        loss = (torch.tanh(x) * r + torch.exp(x) * torch.sigmoid(x)).mean()
        total = (x.detach()[: size // 17 * 17].view(-1, 17) * bias).sum()
        return loss.detach() * 1, torch.autograd.grad(loss, x)[0], total

    launched, _ = compared(step, *pairs(size, dtype=dtype))
    assert launched is None or launched.count("cygrad_rows") == 2 and "partial_sums" not in launched


def test_few_long_rows_stay_alone():
    """A kernel for all of them would leave most of the GPU idle."""
    launched, _ = compared(lambda x, r: F.softmax(x * r, -1) + 1, *pairs(3, 4000))
    assert launched in (None, ["cygrad_group", "softmax", "cygrad_group"])


def test_operands_that_are_not_aligned():
    room = made(1 + 36 * 32)
    odd, line, few = room[1:].view(36, 32), room[3:35], room[5:41].view(36, 1)

    def step(x, r):
        y = F.softmax(x * odd + line, -1) * few
        return y, F.layer_norm(y + odd, (32,), line, line) + r, F.softmax(odd, -1) * r

    compared(step, *pairs(36, 32))


def test_operands_that_are_not_contiguous():
    held = made(32, 36)

    def step(x, r):
        return F.softmax(x.t() * held.t(), -1), F.softmax(r + held.t()[:, :32], 0), F.layer_norm(r[:, ::2] * 2, (16,))

    compared(step, (made(32, 36), made(36, 32)), (made(32, 36, seed=1), made(36, 32, seed=1)))


def test_operands_that_change_in_place():
    held = made(36, 32)

    def step(x, r):
        a = F.softmax(x + held, -1)
        held.mul_(2)
        b = F.softmax(a + held, -1)
        held.mul_(0.5)
        return a * r, b * held

    compared(step, *pairs(36, 32))


def test_statistics_of_half_precision_are_single():
    weight, bias = made(32, seed=1), made(32, seed=2)

    def step(x, r):
        x = x.detach().requires_grad_()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            found = F.layer_norm(x * r, (32,), weight, bias) + r
        return found.detach() * 2, torch.autograd.grad(found, x, torch.ones_like(found))[0]

    compared(step, *pairs(36, 32, dtype=torch.bfloat16))
    compared(step, *pairs(36, 32))


def test_explanations_list_groups():
    _, explained = compared(ONE_KERNEL["softmax"], *pairs(36, 32))
    assert "multiply_number+add+softmax+multiply_number" in str(explained).replace(" ", "")


# -- random programs --

UNARY = [torch.tanh, F.silu, torch.sigmoid, F.gelu, lambda x: x * 0.5, lambda x: x + 0.25, lambda x: -x, F.relu]
BINARY = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: x * y[:1], lambda x, y: x + y[:, :1]]
OF_ROWS = [
    lambda x: F.softmax(x, -1),
    lambda x: F.log_softmax(x, -1),
    lambda x: F.layer_norm(x, x.shape[-1:]),
    lambda x: F.rms_norm(x, x.shape[-1:]),
    lambda x: x - x.mean(-1, keepdim=True),
    lambda x: x + torch.tanh(x.sum(-1, keepdim=True)),
    lambda x: x - x.amax(-1, keepdim=True),
    lambda x: x - torch.logsumexp(x, -1, keepdim=True),
    lambda x: x + x.std(-1, correction=0, keepdim=True),
    lambda x: x + x.mean(0),
]


def random_program(seed):
    """A function of two matrices, with a few results."""
    chosen = random.Random(seed)
    plan = [(chosen.choice("ubrr"), chosen.randrange(1000), chosen.random()) for _ in range(chosen.randint(4, 9))]

    def program(x, r):
        values, results = [x, r], []
        for kind, number, which in plan:
            a = values[-1] if which < 0.7 else values[number % len(values)]
            if kind == "u":
                a = UNARY[number % len(UNARY)](a)
            elif kind == "b":
                a = BINARY[number % len(BINARY)](a, values[int(which * len(values))])
            else:
                a = OF_ROWS[number % len(OF_ROWS)](a)
            values.append(a)
            if which < 0.15:
                results.append(a.sum(-1))
        return [values[-1], *results]

    return program


def check_program(seed):
    chosen = random.Random(seed)
    dtype, length = chosen.choice(DTYPES), chosen.choice([1, 7, 33, 64, 300, 1000])
    rows = chosen.choice([3, 17, 40])
    program = random_program(seed)
    compared(with_gradients(program) if chosen.random() < 0.6 else program, *pairs(rows, length, dtype=dtype))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    check_program(seed)


@pytest.mark.slow  # compiles several kernels for each program
@pytest.mark.parametrize("seed", range(100, 130))
def test_more_random_programs(seed):
    check_program(seed)
