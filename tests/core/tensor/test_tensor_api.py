"""Attributes, conversions and the container interface of tensors."""

import gc
import operator
import pickle
import warnings
import weakref

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, leaf, scalar

NUMPY = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
ONE_ELEMENT = "only one element tensors can be converted to Python scalars"
INDEX = "only integer tensors of a single element can be converted to an index"


# ------------------------------------------------------------------ shape and memory


def test_shape_attributes():
    x = torch.ones(2, 3)
    assert x.shape == x.size() == (2, 3)
    assert type(x.shape) is torch.Size
    assert (x.size(0), x.size(-1)) == (2, 3)
    assert x.dim() == x.ndim == 2
    assert x.numel() == 6
    assert repr(x.shape) == "torch.Size([2, 3])"
    assert x.shape.numel() == 6


def test_memory_attributes():
    x = torch.ones(2, 3)
    assert x.stride() == (3, 1)
    assert (x.stride(0), x.stride(-1)) == (3, 1)
    assert x.is_contiguous() and not x.t().is_contiguous()
    assert x[1].storage_offset() == 3
    assert x[1].data_ptr() == x.data_ptr() + 12
    assert x.itemsize == 4
    assert x.nbytes == 24
    assert x.t().contiguous().stride() == (2, 1)


@pytest.mark.parametrize(
    ("shape", "strides"), [((0, 3), (3, 1)), ((3, 0), (1, 1)), ((3, 0, 2), (2, 2, 1)), ((0,), (1,))]
)
def test_strides_of_empty_tensors(shape, strides):
    assert torch.zeros(shape).stride() == strides
    assert (torch.zeros(shape) + 1).stride() == strides
    assert torch.zeros(shape).stride(0) == strides[0]


def test_is_contiguous_in_other_orders():
    x = torch.ones(2, 3, 4, 5)
    assert x.is_contiguous(memory_format=torch.contiguous_format)
    assert not x.is_contiguous(memory_format=torch.channels_last)
    assert x.contiguous(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
    assert not torch.ones(2, 3).is_contiguous(memory_format=torch.channels_last)


def test_dtype_and_device():
    x = torch.ones(1)
    assert x.dtype is torch.float32
    assert repr(x.dtype) == "torch.float32"
    assert x.device == torch.device("cpu")
    assert (repr(x.device), str(x.device)) == ("device(type='cpu')", "cpu")
    assert not x.is_cuda


def test_transposes():
    x = torch.ones(2, 3, 4)
    assert x.mT.shape == (2, 4, 3)
    assert torch.ones(2, 3).T.shape == (3, 2)
    with pytest.warns(UserWarning, match="The use of `x.T` on tensors of dimension other than 2"):
        assert x.T.shape == (4, 3, 2)


def test_graph_attributes():
    x = leaf(1.0, 2.0, 3.0)
    first, second = x.split([1, 2])
    assert (x.output_nr, first.output_nr, second.output_nr) == (0, 0, 1)
    assert x.grad_fn is None and first.grad_fn is second.grad_fn
    assert first._base is x and x._base is None


@pytest.mark.parametrize("name", ["grad_fn", "is_leaf", "shape", "dtype", "output_nr", "retains_grad", "_version"])
def test_attributes_that_cannot_be_set(name):
    x = torch.ones(1)
    with pytest.raises(AttributeError):
        setattr(x, name, 1)


def test_unknown_attribute():
    with fails(AttributeError, "'Tensor' object has no attribute 'nothing'"):
        torch.ones(1).nothing  # noqa: B018


def test_tensors_take_attributes_and_weak_references():
    x = torch.ones(1)
    x.note = "mine"
    assert x.note == "mine"
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_users_may_add_methods_to_the_class():
    torch.Tensor.doubled = lambda self: self * 2
    try:
        assert torch.ones(1).doubled().tolist() == [2.0]
        assert torch.nn.Parameter(torch.ones(1)).doubled().tolist() == [2.0]
    finally:
        del torch.Tensor.doubled
    with fails(AttributeError, "'Tensor' object has no attribute 'doubled'"):
        torch.ones(1).doubled()


def test_tensor_of_a_tensor_is_an_alias():
    x = torch.ones(2, requires_grad=True)
    y = torch.Tensor(x)
    assert y.grad_fn.name() == "AliasBackward0" and y._base is x
    plain = torch.ones(2)
    torch.Tensor(plain)[0] = 5.0
    assert plain.tolist() == [5.0, 1.0] and plain._version == 1
    assert torch.Tensor(torch.tensor([1])).dtype is torch.int64


def test_attributes_as_a_dictionary():
    x = torch.ones(1)
    assert vars(x) == {}
    x.note = "mine"
    assert x.__dict__ == {"note": "mine"}
    x.__dict__["other"] = 2
    assert x.other == 2


def test_name_of_the_class():
    assert repr(torch.Tensor) == "<class 'cygrad.Tensor'>"
    assert pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor


def test_tensor_made_without_init_is_empty():
    x = torch.Tensor.__new__(torch.Tensor)
    assert (x.shape, x.dtype, x.tolist()) == ((0,), torch.float32, [])
    assert repr(x) == "tensor([])"


def test_tensor_is_an_instance_of_variable_too():
    x = torch.ones(1)
    assert isinstance(x, torch.Tensor)
    assert isinstance(x, torch.autograd.Variable)


# ------------------------------------------------------------------ conversions


def test_item_and_tolist():
    assert torch.tensor(2).item() == 2 and type(torch.tensor(2).item()) is int
    assert type(torch.tensor(2.0).item()) is float
    assert torch.tensor([[True]]).item() is True
    assert torch.tensor(1.5).tolist() == 1.5
    assert torch.tensor([[1, 2]]).tolist() == [[1, 2]]
    assert torch.ones(0, 3).tolist() == []
    assert torch.ones(2, 0).tolist() == [[], []]
    assert scalar(2.0).item() == 2.0
    assert leaf(1.0).tolist() == [1.0]


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
def test_item_needs_exactly_one_element(shape):
    count = int(np.prod(shape))
    with fails(RuntimeError, f"a Tensor with {count} elements cannot be converted to Scalar"):
        torch.ones(shape).item()


def test_numpy_shares_memory():
    x = torch.zeros(2, 3)
    array = x.numpy()
    array[0, 0] = 5.0
    assert x[0, 0].item() == 5.0
    assert array.dtype == np.float32
    assert x.t().numpy().shape == (3, 2)


def test_numpy_refuses_tensors_that_require_grad():
    for x in (leaf(1.0), leaf(1.0) * 2):
        with fails(RuntimeError, NUMPY):
            x.numpy()
        with fails(RuntimeError, NUMPY):
            np.asarray(x)
        assert x.detach().numpy().tolist() == x.tolist()
        assert x.numpy(force=True).tolist() == x.tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_numpy_functions_read_tensors():
    x = torch.tensor([1.0, 2.0])
    assert np.asarray(x).tolist() == [1.0, 2.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x).dtype == np.float32
    assert np.mean(np.asarray(x)) == 1.5


def test_from_numpy_shares_memory_and_dtype():
    array = np.arange(3)
    x = torch.from_numpy(array)
    assert x.dtype is torch.int64
    x[0] = 9
    assert array[0] == 9
    assert torch.from_numpy(np.ones((2, 3)).T).stride() == (1, 3)


def test_tensor_copies_numpy():
    array = np.ones(2)
    x = torch.tensor(array)
    x[0] = 9.0
    assert array[0] == 1.0
    assert x.dtype is torch.float64


def test_bool():
    assert bool(torch.ones(1, 1)) is True
    assert bool(torch.tensor(0.0)) is False
    assert not torch.tensor([False])
    with fails(RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"):
        bool(torch.ones(2))
    with fails(RuntimeError, "Boolean value of Tensor with no values is ambiguous"):
        bool(torch.ones(0))
    with fails(RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"):
        assert torch.ones(2) == torch.ones(2)


def test_float_int_and_complex():
    assert float(torch.tensor([2.5])) == 2.5
    assert int(torch.tensor([2.7])) == 2
    assert complex(torch.tensor(1.5)) == 1.5
    with fails(ValueError, ONE_ELEMENT):
        float(torch.ones(2))
    with fails(ValueError, ONE_ELEMENT):
        int(torch.ones(2))


def test_complex_of_a_tensor_that_requires_grad_warns():
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        assert complex(scalar(2.0)) == 2


def test_float_of_a_tensor_that_requires_grad_warns():
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        assert float(leaf(2.0)) == 2.0


def test_that_warning_is_given_once():
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="Converting a tensor"):
        float(x)
    float(x)
    complex(x)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="Converting a tensor"):
            float(x)
    finally:
        torch.set_warn_always(False)


def test_index():
    assert [10, 11, 12][torch.tensor(1)] == 11
    assert list(range(5))[torch.tensor([1]) :] == [1, 2, 3, 4]
    assert operator.index(torch.tensor(True)) == 1
    with fails(TypeError, INDEX):
        [1][torch.tensor(0.0)]
    with fails(TypeError, INDEX):
        [1][torch.tensor([0, 0])]


def test_format():
    assert f"{torch.tensor(1.5):.3f}" == "1.500"
    assert f"{torch.tensor(2):d}" == "2"
    assert f"{torch.tensor(1.5)}" == "1.5"
    assert "%.2f" % torch.tensor(1.5) == "1.50"  # noqa: UP031
    assert f"{torch.ones(2)}" == "tensor([1., 1.])"
    with fails(TypeError, "unsupported format string passed to Tensor.__format__"):
        f"{torch.ones(2):.2f}"


# ------------------------------------------------------------------ containers


def test_contains():
    x = torch.tensor([1.0, 2.0])
    assert 1.0 in x and 5 not in x
    assert torch.tensor(2.0) in x
    assert np.float32(2) in x and np.int64(5) not in x
    with fails(
        RuntimeError,
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class 'str'>.",
    ):
        "a" in x  # noqa: B015


def test_len_and_iteration():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    first, second = x
    assert second.tolist() == [3.0, 4.0]
    assert [row.tolist() for row in reversed(x)] == [[3.0, 4.0], [1.0, 2.0]]
    assert list(torch.ones(0)) == []


def test_iteration_differentiates():
    x = leaf(1.0, 2.0, 3.0)
    total = 0
    for i, value in enumerate(x):
        total = total + value * i
    total.backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]
    assert next(iter(x)).grad_fn.name() == "UnbindBackward0"


def test_zero_dim_has_no_len_and_no_iterator():
    with fails(TypeError, "len() of a 0-d tensor"):
        len(torch.tensor(1))
    with fails(TypeError, "iteration over a 0-d tensor"):
        list(torch.tensor(1))
    with fails(TypeError, "iteration over a 0-d tensor"):
        first, second = torch.tensor(1)


def test_tensors_are_hashed_by_identity():
    x, y = torch.ones(1), torch.ones(1)
    assert hash(x) == hash(x) != hash(y)
    assert len({x, y, x}) == 2
    assert {x: "x", y: "y"}[y] == "y"


# ------------------------------------------------------------------ detach_ and clone


def test_detach_in_place_of_a_leaf_stops_requiring_grad():
    x = leaf(1.0)
    assert x.detach_() is x
    assert not x.requires_grad


def test_clone_is_recorded_and_owns_its_memory():
    x = leaf(1.0)
    y = x.clone()
    assert y.grad_fn.name() == "CloneBackward0"
    assert y.data_ptr() != x.data_ptr()
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_to_float_and_double():
    x = leaf(1.0)
    assert x.to(torch.float32) is x and x.float() is x
    assert x.to("cpu") is x
    y = x.double()
    assert y.dtype is torch.float64
    assert y.grad_fn.name() == "ToCopyBackward0"
    (y * 3).backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [3.0]
    assert x.to(torch.float32, copy=True) is not x
    assert x.to(torch.zeros(1, dtype=torch.float64)).dtype is torch.float64


def test_new_style_constructor():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.Tensor([1, 2]).dtype is torch.float32
        assert torch.Tensor(2, 3).shape == (2, 3)
        assert torch.Tensor().shape == (0,)


# -- rarely used names -----------------------------------------------------------------------------------


def test_detach_as_function():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = torch.detach(y)
    assert not z.requires_grad
    assert z.data_ptr() == y.data_ptr()
    assert torch.detach_(y) is y
    assert y.is_leaf
    with pytest.raises(TypeError, match=r"^detach\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        torch.detach(3)


def test_hooks_outlive_detach_():
    seen = []
    y = torch.ones(2, requires_grad=True) * 2
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    z = y * 1
    y.detach_().requires_grad_()
    (y * 3).sum().backward()
    assert seen == [[3, 3]]
    z.sum().backward()  # the previous node also has the hooks
    assert seen == [[3, 3], [1, 1]]


def test_is_inference_and_get_device_as_functions():
    with torch.inference_mode():
        t = torch.ones(1)
    assert torch.is_inference(t)
    assert not torch.is_inference(torch.ones(1))
    assert torch.get_device(t) == t.get_device() == -1


def test_numpy_of_a_tensor_that_requires_grad_needs_no_grad_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert x.numpy().tolist() == np.asarray(x).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="^Can't call numpy"):
        x.numpy()


def test_storage_offset_after_data_is_set():
    v = torch.ones(5)[2:]
    assert v.storage_offset() == 2
    v.data = torch.ones(3)
    assert v.storage_offset() == 0
    assert v.as_strided((3,), (1,)).tolist() == [1, 1, 1]
    base = torch.ones(5)
    v = base[2:]
    base.data = torch.zeros(100)
    assert v.as_strided((3,), (1,)).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="^setStorage: sizes"):
        v.as_strided((3,), (1,), 50)


def test_storage_offset_of_views_without_elements():
    base = torch.arange(6.0).reshape(2, 3).clone()
    v = base.narrow(0, 2, 0)
    assert v.storage_offset() == 6
    assert base[:, 3:].storage_offset() == 3
    assert v.as_strided((2, 2), (1, 1), 0).tolist() == [[0, 1], [1, 2]]
    v.data = torch.zeros(0, 3)
    with pytest.raises(RuntimeError, match="^setStorage: sizes"):
        v.as_strided((2, 2), (1, 1), 0)


def test_shifts():
    x = torch.tensor([1, 2])
    assert (x << 2).tolist() == [4, 8]
    assert (1 << x).tolist() == [2, 4]
    assert (x >> 1).tolist() == [0, 1]
    assert (8 >> x).tolist() == [4, 2]
    before = x
    x <<= torch.tensor([3])
    x >>= 1
    assert x is before
    assert x.tolist() == [4, 8]
    with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for <<: 'Tensor' and 'str'$"):
        x << "a"
    with pytest.raises(NotImplementedError, match="^\"lshift_cpu\" not implemented for 'Float'$"):
        torch.ones(1) << 1


def test_reversed():
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    assert reversed(x).tolist() == [[2], [1]]
    assert reversed(x).grad_fn.name() == "FlipBackward0"
    zero_dim = torch.tensor(1)
    assert reversed(zero_dim) is zero_dim


def test_old_names_of_division():
    x = torch.tensor([3.0])
    assert x.__div__(2).tolist() == [1.5]
    assert x.__rdiv__(6).tolist() == [2]
    assert x.__idiv__(2) is x


def test_deleting_an_attribute_that_is_not_there():
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'foo'$"):
        del torch.ones(1).foo


@pytest.mark.parametrize("name", ["dtype", "layout", "memory_format", "device", "Size", "Tensor", "Generator"])
def test_classes_say_where_users_find_them(name):
    kind = getattr(torch, name)
    assert repr(kind) == f"<class 'cygrad.{name}'>"
    assert pickle.loads(pickle.dumps(kind)) is kind
