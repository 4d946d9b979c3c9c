"""Other forms of the samples' calls: argument names, kinds of numbers, memory of the operands."""

import inspect

import numpy as np
import pytest
from ops.calls import SAMPLES, Cygrad, replace
from oracle.answers import answer, lines, same
from oracle.ops.test_ops import Torch

import cygrad
from helpers import class_of

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Ops with results that are random or unique up to a sign, or that crash PyTorch's process in some of these forms
OTHER_RESULTS = {
    name
    for name in SAMPLES
    if any(part in name for part in ("rand", "dropout", "normal", "bernoulli", "poisson", "multinomial", "rrelu"))
    or any(part in name for part in ("gumbel", "fractional", "lowrank", "empty", "lobpcg", "exponential", "lu_unpack"))
} | {"embedding_bag", "linalg_eig", "lstm", "multi_head_attention_forward", "tensor_split"}
NAMES = [name for name in SAMPLES if Torch.function(name) and name not in OTHER_RESULTS]

NUMPYS_NAMES = {"input": "x1", "other": "x2", "dim": "axis", "keepdim": "keepdims"}
NUMBERS = {
    "float32": lambda library, value: np.float32(value),
    "int64": lambda library, value: np.int64(value),
    "bool": lambda library, value: np.bool_(value),
    "tensor": lambda library, value: library.tensor(value),
}
# Lengths may be any numbers there; `x1` is accepted as another name, and bools can be subtracted.
OTHER_FORMS = set("bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann".split())
OTHER_FORMS |= set("kaiser nuttall permute reshape reshape.alias reshape.copy rsub.Scalar searchsorted".split())


def numpy_forms(sample, names):
    """The arguments of a sample with NumPy's names: (positional, keyword)."""
    for first in range(min(len(sample.args), 3)):
        name = NUMPYS_NAMES.get("input" if first == 0 else names[first]) if first < len(names) else None
        rest = dict(zip(names[first + 1 :], sample.args[first + 1 :]))
        if name and len(names) >= len(sample.args):
            for other in ("input", "x", "a", "x1") if first == 0 else (name,):
                yield f"{other}=", sample.args[:first], {other: sample.args[first], **rest, **sample.kwargs}


def number_forms(sample):
    """Variants with one number replaced by another kind, given as (constructor that takes the library, value)."""
    for i, value in enumerate(sample.args):
        if isinstance(value, (int, float)):
            for kind, made in NUMBERS.items():
                yield f"{kind} {i}", (*sample.args[:i], (made, value), *sample.args[i + 1 :]), sample.kwargs


def outcome(on, name, args, kwargs):
    def made(value):
        if isinstance(value, tuple) and len(value) == 2 and callable(value[0]):
            return value[0](on.library, value[1])
        return replace(value, lambda array: on.tensor(np.array(array)))

    try:
        found = on.function(name)(*map(made, args), **{key: made(value) for key, value in kwargs.items()})
    except Exception as error:
        return class_of(error)
    return [described(on, item) for item in (found if isinstance(found, (list, tuple)) else [found])]


def described(on, value):
    if not isinstance(value, on.library.Tensor):
        return str(value).replace("cygrad", "torch") if not isinstance(value, (list, tuple)) else len(value)
    array = on.array(value.detach())
    return str(value.dtype).replace("cygrad", "torch"), array.shape, np.where(np.isnan(array), 777, array).tolist()


def is_refused(answer):
    return isinstance(answer, str)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_FORMS])
def test_names_and_numbers(name):
    """Forms accepted by PyTorch are accepted, with the same result."""
    sample = SAMPLES[name][0]
    names = list(inspect.signature(Cygrad.function(name)).parameters)
    for form, args, kwargs in [*numpy_forms(sample, names), *number_forms(sample)]:
        expected = outcome(Torch, name, args, kwargs)
        if not is_refused(expected):
            found = outcome(Cygrad, name, args, kwargs)
            assert not is_refused(found) and same(found, expected), f"{form}: {found}\nPyTorch: {expected}"


# -- memory ---------------------------------------------------------------------------------------------------


def transposed(array):
    return np.ascontiguousarray(array.T).T


def stepped(array):
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


LAYOUTS = {"contiguous": np.ascontiguousarray, "transposed": transposed, "stepped": stepped}
LAZY = {"conj", "adjoint"}  # PyTorch conjugates lazily


def shared(on, name, sample, layout):
    """Whether each result shares memory with each operand."""
    operands = []

    def tensor(array):
        operands.append(on.library.from_numpy(LAYOUTS[layout](array) if array.ndim else np.array(array)))
        return operands[-1]

    args = [replace(value, tensor) for value in sample.args]
    kwargs = {key: replace(value, tensor) for key, value in sample.kwargs.items()}
    found = on.function(name)(*args, **kwargs)
    results = [item for item in (found if isinstance(found, (list, tuple)) else [found]) if hasattr(item, "numel")]
    return [
        [bool(r.numel() and t.numel()) and np.may_share_memory(on.array(r), t.detach().numpy()) for t in operands]
        for r in results
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LAZY])
def test_shared_memory(name, layout):
    for sample in SAMPLES[name]:
        try:
            expected = shared(InMemory, name, sample, layout)
        except RuntimeError:
            continue  # PyTorch needs another layout
        assert shared(Cygrad, name, sample, layout) == expected, sample


class InMemory(Torch):
    """Like `Torch`, but arrays share memory with the tensors."""

    @staticmethod
    def array(tensor):
        return tensor.detach().resolve_conj().numpy()


# -- typical user calls ---------------------------------------------------------------------------------------

CALLS = """
torch.heaviside(torch.tensor([float("nan"), 0.0, -1.0, 2.0]), torch.tensor(0.5))
torch.heaviside(torch.tensor([float("nan"), 0.0, 2.0], dtype=torch.float16), torch.tensor([0.5], dtype=torch.float16))
torch.heaviside(torch.tensor([3, 0, -2]), torch.tensor(7))
torch.ldexp(torch.ones(2), torch.tensor([20, 100], dtype=torch.uint8))
torch.ldexp(torch.ones(2, dtype=torch.float64), torch.tensor([20, 200], dtype=torch.uint8))
torch.ldexp(torch.tensor([1e-30, 1.0, 1e30, 3.0]), torch.tensor([130, 127, -160, -149]))
torch.ldexp(torch.tensor([1e-30, 1.0, 1e30, 3.0]), torch.tensor([130.0, 127.0, -160.0, -149.0]))
torch.ldexp(torch.tensor([1.5, 0.3], dtype=torch.float64), torch.tensor([-1074, -1060]))
torch.ldexp(torch.ones(2), torch.tensor([True, False]))
torch.ldexp(torch.tensor([3, 5]), torch.tensor([True, False]))
torch.ldexp(torch.tensor([1 + 1j]), torch.tensor([20], dtype=torch.uint8))
torch.ldexp(torch.tensor([1 + 1j], dtype=torch.complex128), torch.tensor([200], dtype=torch.int16))
torch.ldexp(torch.tensor([0, 45]), torch.tensor([300, -151]))
torch.normal(0.0, math.nan, (2,))
torch.add(torch.ones(2), 2, other=torch.ones(2))
torch.addmm(2, torch.ones(2, 2), mat1=torch.ones(2, 2), mat2=torch.ones(2, 2))
torch.addmm(torch.ones(2, 2), 2, mat1=torch.ones(2, 2), mat2=torch.ones(2, 2))
torch.linspace(1.0, float("inf"), 1)
torch.linspace(float("-inf"), float("inf"), 1)
torch.linspace(2.0, float("nan"), 1)
torch.logspace(2.0, float("inf"), 1)
torch.nn.functional.embedding_bag(torch.tensor([1, 2]), torch.ones(4, 3), torch.tensor([], dtype=torch.int64))
torch.embedding_bag(torch.ones(4, 3), torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64), False, 0)[0]
torch.embedding_bag(torch.ones(4, 3), torch.tensor([1]), torch.tensor([], dtype=torch.int64), include_last_offset=True)
torch.median(torch.tensor([], dtype=torch.int16))
torch.nanmedian(torch.tensor([], dtype=torch.int8))
torch.median(torch.tensor([], dtype=torch.int64))
torch.diff(torch.arange(4.0), n=0, out=torch.zeros(4, dtype=torch.float64))
torch.diff(torch.arange(4.0), n=1, out=torch.zeros(3, dtype=torch.float64))
torch.diag(torch.arange(4.0), out=torch.zeros(4, 4, dtype=torch.float64))
torch.diag(torch.arange(4.0), out=torch.zeros(4, 4, dtype=torch.int64))
torch.diag(torch.arange(4.0), out=torch.zeros(4, 4))
torch.trapezoid(torch.arange(24.0).reshape(2, 3, 4), torch.tensor([[1.0, 2, 4, 7]]), dim=2)
torch.trapezoid(torch.arange(24.0).reshape(2, 3, 4), torch.arange(12.0).reshape(3, 4) ** 2, dim=1)
torch.cumulative_trapezoid(torch.arange(24.0).reshape(2, 3, 4), torch.arange(12.0).reshape(3, 4) ** 2, dim=2)
torch.nn.functional.rms_norm(torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]]), (2,))
torch.nn.functional.rms_norm(torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]]), (2, 2), torch.tensor([[1j, 2], [3, 4]]), 0.1)
torch.max_pool1d_with_indices(torch.tensor([[3, 1, 4, 1, 5]]), 2)
torch.conv_transpose1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2), torch.tensor([2]))
torch.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.tensor([0.5], dtype=torch.float64))
torch.conv_transpose1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2), torch.tensor([2j]))
torch.linalg.solve_triangular(torch.eye(2) * 2, torch.tensor([[1], [3]]), upper=True)
torch.linalg.solve_triangular(torch.eye(2) * 2j, torch.tensor([[1.0], [3.0]]), upper=True)
torch.ones(3).index_put((torch.tensor([True, False, True]),), torch.tensor(5))
torch.ones(3).index_put((torch.tensor([True, False, True]),), torch.tensor([5, 6]))
torch.ones(3).index_put((torch.tensor([True, False, True]),), torch.tensor(5), accumulate=True)
torch.index_fill(torch.ones(3), 0, torch.tensor(1), np.float32(0.5))
torch.lerp(torch.tensor(1.0), torch.tensor(3.0), np.float32(0.5))
torch.scatter(torch.zeros(3, dtype=torch.float64), 0, torch.tensor([0, 2]), value=torch.tensor(1.5))
torch.scatter(torch.zeros(3, dtype=torch.float64), 0, torch.tensor([0, 2]), src=torch.tensor([1.5, 2.5]))
torch.signal.windows.hann(1.0)
torch.signal.windows.bartlett(False)
torch.signal.windows.kaiser(np.float32(1))
torch.signal.windows.kaiser(2.5)
torch.det(input=torch.eye(2))
torch.linalg.cholesky(input=torch.eye(2))
torch.addr(torch.tensor(1.5, dtype=torch.float64), torch.ones(2), torch.ones(3))
torch.zeros(2, 3).addr_(torch.ones(2, dtype=torch.float64), torch.ones(3))
torch.zeros(2, 3, requires_grad=True).clone().addr_(torch.ones(2, dtype=torch.float64), torch.ones(3)).detach()
torch.zeros(2, 3, dtype=torch.int32).addr_(torch.ones(2), torch.ones(3))
torch.addr(torch.zeros(2, 3), torch.ones(2), torch.ones(3), out=torch.zeros(2, 3, dtype=torch.float64))
[*torch.max(torch.arange(6.0).reshape(2, 3), torch.tensor(1), True)]
[*torch.min(torch.arange(6.0).reshape(2, 3), torch.tensor(0), keepdim=True)]
torch.gradient(torch.arange(5.0) ** 2, spacing=torch.tensor(2.0))
torch.zeros(2, dtype=torch.int8).copy_(300)
torch.zeros(2, dtype=torch.int8).copy_(2j)
torch.zeros(2, dtype=torch.float16).copy_(1e10)
torch.zeros(2, dtype=torch.int64).copy_(2**63)
torch.zeros(2).copy_(2**63)
torch.zeros(2).copy_(2**70)
torch.zeros(2, dtype=torch.bool).fill_(1j)
torch.zeros(2, dtype=torch.bool).masked_fill_(torch.tensor([True, False]), torch.tensor(1j))
torch.nn.functional.pad(torch.zeros(2, dtype=torch.bool), (1, 1), value=1j)
torch.zeros(0, dtype=torch.int64) // 0
torch.zeros(0, 3, dtype=torch.int32).remainder_(torch.tensor([1, 0, 1]))
torch.fmod(torch.zeros(0, dtype=torch.int64), torch.tensor(0))
torch.div(torch.zeros(0, dtype=torch.int64), 0, rounding_mode="floor")
torch.div(torch.tensor([1, 0]), 0, rounding_mode="floor")
torch.bernoulli(torch.tensor([0.0, 1.0]), out=torch.ones(2, dtype=torch.int64))
torch.bernoulli(torch.tensor([0.0, 1.0]), out=torch.ones(2, dtype=torch.bool))
torch.cumsum(torch.full((3,), 1.5), 0, out=torch.zeros(3, dtype=torch.int64))
torch.cumsum(torch.full((3,), 1.5j), 0, out=torch.zeros(3))
torch.cumprod(torch.tensor([100, 100], dtype=torch.int8), 0, out=torch.zeros(2, dtype=torch.int64))
torch.cumsum(torch.tensor([1, 2]), 0, out=torch.zeros(2, dtype=torch.bool))
torch.cumsum(torch.ones(2), 0, dtype=torch.float32, out=torch.zeros(2, dtype=torch.int64))
torch.ones(2).cumsum_(0, dtype=torch.int64)
torch.ones(2).cumprod_(0, dtype=torch.float32)
"""


def without_memory(outcome):
    """The contents of one or several tensors."""
    if isinstance(outcome, list):
        return [without_memory(item) for item in outcome]
    return {key: outcome[key] for key in ("dtype", "shape", "values")}


@pytest.mark.parametrize("expression", lines(CALLS))
def test_calls(expression):
    found, expected = (answer(library, expression, lambda library: {}, False)[0] for library in (cygrad, torch))
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and found[0] == expected[0], f"{found}, PyTorch gives {expected}"
    else:
        assert same(*map(without_memory, (found, expected))), f"{found}, PyTorch gives {expected}"


# Functions whose results `view` accepts in PyTorch, for transposed operands
CONTIGUOUS = """
torch.nn.functional.group_norm(torch.rand(2, 4, 3).transpose(1, 2), 3)
torch.nn.functional.group_norm(torch.rand(4, 3, 4, 2).permute(3, 0, 2, 1), 2)
torch.nn.functional.batch_norm(torch.rand(3, 4).t(), None, None, training=True)
torch.nn.functional.batch_norm(torch.rand(4, 3, 2).transpose(0, 2), torch.zeros(3), torch.ones(3))
torch.nn.functional.instance_norm(torch.rand(2, 4, 3).transpose(1, 2))
torch.logcumsumexp(torch.rand(3, 4).t(), 0)
torch.cummax(torch.arange(12).reshape(3, 4).t(), 1)[0]
torch.count_nonzero(torch.ones(2, 3, 4).transpose(0, 2), dim=1)
torch.cumprod(torch.arange(1, 7).reshape(2, 3).t(), 0)
torch.cumprod(torch.arange(1, 7).reshape(2, 3).t() * 1j, 1)
"""


@pytest.mark.parametrize("expression", lines(CONTIGUOUS))
def test_contiguous_results(expression):
    found, expected = (answer(library, expression, lambda library: {}, False)[0] for library in (cygrad, torch))
    assert found["strides"] == expected["strides"]
