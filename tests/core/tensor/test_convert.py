"""Tensors as numbers, arrays, copies and pickles; predicates; numeric limits of dtypes."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

# --- Numbers -----------------------------------------------------------------------------------

DTYPES = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.float32, torch.float64, torch.bool),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_element_of_each_type(dtype):
    for value in (0, 1, 2) if dtype is not torch.bool else (False, True):
        for t in (torch.tensor(value, dtype=dtype), torch.tensor([[value]], dtype=dtype)):
            kind = bool if dtype is torch.bool else float if dtype.is_floating_point else int
            assert type(t.item()) is kind and t.item() == value
            assert (float(t), int(t), complex(t), bool(t)) == (value, value, value, bool(value))
            assert t.tolist() == value if t.ndim == 0 else [[value]]


def test_extreme_values():
    assert torch.tensor(2**64 - 1, dtype=torch.uint64).item() == 2**64 - 1
    assert torch.tensor(-(2**63)).item() == -(2**63)
    assert torch.tensor(0.1).item() == float(np.float32(0.1))
    assert torch.tensor(float("-inf")).item() == float("-inf") and torch.tensor(float("nan")).isnan()
    assert torch.tensor(1 + 2j).item() == 1 + 2j
    assert float(torch.tensor(2 + 0j)) == 2.0


def test_elements_of_odd_memory():
    packed = np.zeros(3, [("a", "i1"), ("b", "f4")])
    packed["b"] = 1, 2, 3
    assert torch.tensor(packed["b"])[1].item() == 2
    assert torch.from_numpy(np.arange(6.0).reshape(2, 3).T[1:2, 1:2]).item() == 4


@pytest.mark.parametrize(
    "call, error, line",
    [
        (lambda t: t.item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (float, ValueError, "only one element tensors can be converted to Python scalars"),
        (int, ValueError, "only one element tensors can be converted to Python scalars"),
        (complex, ValueError, "only one element tensors can be converted to Python scalars"),
        (bool, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda t: bool(t[:0]), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
        (
            lambda t: [1, 2][t[0]],
            TypeError,
            "only integer tensors of a single element can be converted to an index",
        ),
        (
            lambda t: float(t[0] * 1j),
            RuntimeError,
            "value cannot be converted to type double without overflow",
        ),
        (lambda t: iter(t[0]), TypeError, "iteration over a 0-d tensor"),
        (
            lambda t: "a" in t,
            RuntimeError,
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class 'str'>.",
        ),
    ],
)
def test_what_is_no_number(call, error, line):
    with fails(error, line):
        call(torch.ones(2))


def test_as_an_index():
    assert list(range(torch.tensor(3))) == [0, 1, 2] and "abc"[torch.tensor([1])] == "b"
    assert [10, 20][torch.tensor(True)] == 20


def test_iterating_gives_views_with_history():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x
    assert first.grad_fn.name() == "UnbindBackward0" and second.tolist() == [3, 4]
    assert first.data_ptr() == x.data_ptr()
    (first * second).sum().backward()
    assert x.grad.tolist() == [[3, 4], [1, 2]]
    assert 2 in x and 5 not in x and torch.tensor(4) in x
    assert [t.item() for t in reversed(torch.arange(3))] == [2, 1, 0]


# --- NumPy -------------------------------------------------------------------------------------


def test_numpy_shares_memory():
    t = torch.zeros(2, 3)
    array = t.numpy()
    array[0, 1] = 7
    assert t[0, 1] == 7 and type(array) is np.ndarray
    assert np.asarray(t).base is not None and np.shares_memory(np.asarray(t), array)
    assert np.asarray(t.t()).strides == (4, 12)


def test_array_protocol():
    t = torch.tensor([1.5, 2.5])
    assert np.array(t, dtype=np.int64).tolist() == [1, 2]
    assert not np.shares_memory(np.array(t), t.numpy())
    assert np.shares_memory(np.array(t, copy=False), t.numpy())
    with pytest.raises(ValueError):
        np.asarray(t, dtype=np.float64, copy=False)
    assert np.sum(t) == 4 and np.concatenate([t, t]).tolist() == [1.5, 2.5] * 2


def test_no_gradient_is_lost_without_a_word():
    x = torch.ones(2, requires_grad=True)
    for call in (x.numpy, (x * 2).numpy, lambda: np.asarray(x), x.__array__):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value).startswith("Can't call numpy() on Tensor that requires grad.")
        assert __file__ in str(caught.value)
    assert x.numpy(force=True).tolist() == x.detach().numpy().tolist() == [1, 1]


# --- Pickles -----------------------------------------------------------------------------------

PICKLED = {
    "plain": lambda: torch.arange(6).reshape(2, 3),
    "leaf": lambda: torch.ones(2, requires_grad=True),
    "0-dim": lambda: torch.tensor(1.5),
    "empty": lambda: torch.zeros(0, 3),
    "transposed": lambda: torch.randn(2, 3).t(),
    "expanded": lambda: torch.ones(1).expand(4),
    "half": lambda: torch.tensor([1.0, 2.0], dtype=torch.float16),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("kind", PICKLED)
def test_pickle(kind, protocol):
    t = PICKLED[kind]()
    other = pickle.loads(pickle.dumps(t, protocol))
    assert type(other) is type(t) and other.dtype is t.dtype and other.shape == t.shape
    assert other.requires_grad == t.requires_grad and other.is_leaf and other._version == 0
    assert torch.equal(other, t)
    if kind == "transposed":
        assert other.stride() == t.stride()


def test_pickle_leaves_history_grad_and_hooks_out():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    other = pickle.loads(pickle.dumps(y))
    assert other.requires_grad and other.is_leaf and other.grad is None
    x.mark = "kept"
    x.register_hook(abs)
    with pytest.warns(UserWarning, match="backward hook <built-in function abs> on tensor will not"):
        other = pickle.loads(pickle.dumps(x))
    assert other._backward_hooks is None and other.mark == "kept"


# --- Copies ------------------------------------------------------------------------------------


def test_shallow_copy_is_a_leaf_on_the_same_memory():
    x = torch.ones(2, requires_grad=True)
    x.mark = [1]
    for t in (x, x * 2):
        other = copy.copy(t)
        assert other is not t and other.data_ptr() == t.data_ptr()
        assert other.is_leaf and other.requires_grad and other.grad is None
    assert copy.copy(x).mark is x.mark


def test_deep_copy_has_memory_grad_and_attributes_of_its_own():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    x.mark = [1]
    other = copy.deepcopy(x)
    assert other.requires_grad and other.is_leaf and other.mark == [1] and other.mark is not x.mark
    with torch.no_grad():
        other += 1
    other.grad += 1
    assert x.tolist() == [1, 1] and x.grad.tolist() == [1, 1]


def test_deep_copy_keeps_what_is_shared():
    x = torch.arange(6.0).reshape(2, 3)
    row, column, again = x[0], x.t()[1], x
    copies = copy.deepcopy([x, row, column, again])
    assert copies[3] is copies[0]
    copies[0].zero_()
    assert copies[1].tolist() == [0] * 3 and copies[2].tolist() == [0] * 2
    assert x.sum() == 15 and copies[2].stride() == column.stride()


def test_deep_copy_of_a_subclass():
    class Marked(torch.Tensor):
        pass

    t = torch.Tensor._make_subclass(Marked, torch.ones(2), True)
    t.name = "w"
    for other in (copy.deepcopy(t), copy.copy(t)):
        assert type(other) is Marked and other.name == "w" and other.requires_grad
    parameter = torch.nn.Parameter(torch.ones(2))
    assert type(copy.deepcopy(parameter)) is torch.nn.Parameter


def test_deep_copy_of_a_non_leaf_is_refused():
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError) as caught:
        copy.deepcopy({"state": y})
    text = str(caught.value)
    assert text.startswith("Only Tensors created explicitly by the user (graph leaves) support the deepcopy")
    assert "MulBackward0" in text and __file__ in text and "t.detach()" in text


def test_deep_copy_of_a_circle():
    x = torch.ones(1)
    x.me = x
    other = copy.deepcopy(x)
    assert other.me is other and other is not x
    gone = weakref.ref(other)
    del other, x.me
    gc.collect()
    assert gone() is None


# --- Predicates --------------------------------------------------------------------------------


def test_questions_about_a_tensor():
    t = torch.zeros(2, 3, dtype=torch.float64)
    assert (t.nelement(), t.element_size(), t.nbytes, t.ndimension()) == (6, 8, 48, 2)
    assert t.is_floating_point() and not t.is_complex() and t.is_signed()
    assert t.is_same_size(torch.ones(2, 3)) and not t.is_same_size(torch.ones(3, 2))
    assert (t.get_device(), t.is_cuda, t.is_cpu, t.is_sparse, t.is_pinned()) == (-1, False, True, False, False)
    assert repr(t.layout) == "torch.strided" and t.layout is torch.strided
    assert pickle.loads(pickle.dumps(torch.strided)) is torch.strided
    t.mark = 1
    assert {"mark", "grad", "sin"} <= set(dir(t))


def test_questions_as_functions():
    t = torch.ones(1)
    assert torch.is_tensor(t) and not torch.is_tensor([1]) and not torch.is_storage(t)
    assert torch.numel(t) == 1 and torch.is_floating_point(t) and torch.is_nonzero(t)
    assert torch.is_tensor(torch.nn.Parameter(t))
    with fails(TypeError, "numel(): argument 'input' (position 1) must be Tensor, not int"):
        torch.numel(3)


def test_result_types():
    i, f, d = torch.tensor([1]), torch.tensor([1.0]), torch.tensor(1.0, dtype=torch.float64)
    assert torch.result_type(i, 2.5) is torch.result_type(i, f) is torch.float32
    assert torch.result_type(f, d) is torch.float32 and torch.result_type(i, d) is torch.float64
    assert torch.result_type(1, 2) is torch.int64 and torch.result_type(f, 1j) is torch.complex64
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        torch.result_type("a", 1)


def test_limits():
    info = torch.finfo(torch.float32)
    assert (info.eps, info.max, info.tiny) == (2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126)
    assert info.min == -info.max and info.bits == 32 and info.dtype == "float32"
    assert info == torch.finfo(torch.complex64) == torch.finfo() != torch.finfo(torch.float64)
    assert (torch.iinfo(torch.uint8).min, torch.iinfo(torch.uint8).max) == (0, 255)
    assert pickle.loads(pickle.dumps(info)) == info
    with fails(TypeError, "torch.bool is not supported by torch.iinfo"):
        torch.iinfo(torch.bool)
    with fails(TypeError, "torch.iinfo() requires an integer input type. ..."):
        torch.iinfo(torch.float32)
