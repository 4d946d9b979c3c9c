"""`cygrad.testing`: closeness, the messages if it fails, and tensors for tests."""

import pytest

import cygrad as torch
from cygrad.testing import assert_allclose, assert_close, make_tensor

t = torch.tensor


def test_close_values_pass():
    assert_close(t([1.0, 2.0]), t([1.0, 2.000001]))
    assert_close({"a": [t(1.0), 2, None, True]}, {"a": [t(1.0), 2, None, True]})
    assert_close(t([float("nan")]), t([float("nan")]), equal_nan=True)
    assert_close(torch.ones(2, requires_grad=True), torch.ones(2))


def test_the_text_names_the_worst_elements_and_the_place():
    text = """\
Tensor-likes are not close!

Mismatched elements: 1 / 2 (50.0%)
Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)

The failure occurred for item ['a'][0]"""
    with pytest.raises(AssertionError) as caught:
        assert_close({"a": [t([1.0, 3.0])]}, {"a": [t([1.0, 2.5])]})
    assert str(caught.value) == text


def test_tolerances_come_together_and_are_not_negative():
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1.0, 1.0, rtol=0.1)
    with pytest.raises(ValueError, match="at least 0"):
        assert_close(1.0, 1.0, rtol=-0.1, atol=0.0)


def test_subclasses_can_be_told_apart():
    x = t([1.0])
    assert_close(x, torch.nn.Parameter(x))
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(x, torch.nn.Parameter(x), allow_subclasses=False)
    with pytest.raises(AssertionError, match=r"types do not match: <class 'bool'> != <class 'int'>"):
        assert_close(True, 1)


def test_the_former_name_warns():
    with pytest.warns(FutureWarning, match="deprecated since 1.12"):
        assert_allclose(t([1.0]), [1.0])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        assert_allclose(t([1.0]), t([1.1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.bool])
def test_made_tensors_keep_their_limits(dtype):
    low, high = (0, 2) if dtype is torch.bool else (1, 3)
    x = make_tensor(50, 40, dtype=dtype, low=low, high=high)
    assert x.dtype is dtype and x.shape == (50, 40)
    assert (x.float() >= low).all() and (x.float() < high).all() and x.float().std() > 0.3


def test_made_tensors_without_zeros():
    assert (make_tensor((100,), dtype=torch.int64, low=0, high=2, exclude_zero=True) == 1).all()
    assert make_tensor((0, 3), dtype=torch.float32).shape == (0, 3)
    assert not make_tensor((3, 2), dtype=torch.float32, noncontiguous=True).is_contiguous()


def test_sparse_tensors_are_compared_by_their_parts():
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    for convert in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc):
        sparse = convert(x)
        assert_close(sparse, convert(x.clone()))
        kind = str(sparse.layout).rpartition("_")[2].upper()
        with pytest.raises(AssertionError, match=f"Sparse {kind} values are not close!"):
            assert_close(sparse, convert(x * 2))
        with pytest.raises(AssertionError, match=f"Sparse {kind} .*indices are not equal!"):
            assert_close(sparse, convert(x.flip(0)))
        with pytest.raises(AssertionError, match="The number of specified values in sparse"):
            assert_close(sparse, convert(x + 1))
        with pytest.raises(AssertionError, match="values for attribute 'layout' do not match"):
            assert_close(sparse, x)
        assert_close(sparse, x, check_layout=False)
    twice = torch.sparse_coo_tensor([[0, 1, 0], [1, 0, 1]], [1.0, 3.0, 1.0])
    assert_close(twice, x.to_sparse())


def test_made_tensors_of_eight_bits():
    pytest.importorskip("ml_dtypes")
    x = make_tensor(30, 4, dtype=torch.float8_e5m2, low=-1, high=0.5, noncontiguous=True)
    assert x.dtype is torch.float8_e5m2 and x.shape == (30, 4)
    assert x.float().min() >= -1 and x.float().max() < 0.5
