"""Other forms of a call than the samples have: names of arguments, kinds of numbers, memory of the operands."""

import inspect

import numpy as np
import pytest
from ops.calls import SAMPLES, Cygrad, replace
from oracle.answers import same
from oracle.test_ops_oracle import Torch

from helpers import class_of

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Of which the result is random, or the same only up to a sign; or where PyTorch's process ends at some of the forms
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
# Lengths may be any numbers there; `x1` may stand before them, and a truth value may be subtracted.
OTHER_FORMS = set("bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann".split())
OTHER_FORMS |= set("kaiser nuttall permute reshape reshape.alias reshape.copy rsub.Scalar searchsorted".split())


def numpy_forms(sample, names):
    """The arguments of a sample with NumPy's names: (positional, by keyword)."""
    for first in range(min(len(sample.args), 3)):
        name = NUMPYS_NAMES.get("input" if first == 0 else names[first]) if first < len(names) else None
        rest = dict(zip(names[first + 1 :], sample.args[first + 1 :]))
        if name and len(names) >= len(sample.args):
            for other in ("input", "x", "a", "x1") if first == 0 else (name,):
                yield f"{other}=", sample.args[:first], {other: sample.args[first], **rest, **sample.kwargs}


def number_forms(sample):
    """Those with another kind of number in the place of one: a function of the library."""
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
    """What PyTorch takes is taken, with the same result."""
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
LAZY = {"conj", "adjoint"}  # of which PyTorch conjugates nothing before it is read


def shared(on, name, sample, layout):
    """For each result and operand, whether they share memory."""
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
            continue  # where it wants another layout
        assert shared(Cygrad, name, sample, layout) == expected, sample


class InMemory(Torch):
    """As `Torch`, with arrays that are the memory of the tensors."""

    @staticmethod
    def array(tensor):
        return tensor.detach().resolve_conj().numpy()
