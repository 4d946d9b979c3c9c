"""Elements replaced by the results of Python functions: `apply_`, `map_`, `map2_`."""

import numpy as np
import pytest

import cygrad as torch


def test_python_functions_of_elements():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[:, 0].apply_(lambda value: value * 10).tolist() == [10, 30] and x.tolist() == [[10, 2], [30, 4]]
    assert x.map_(torch.tensor([1.0, 2.0]), lambda a, b: a + b) is x and x.tolist() == [[11, 4], [31, 6]]
    assert x.map2_(x, x, lambda a, b, c: a - b + c / 2).tolist() == [[5.5, 2], [15.5, 3]]
    assert torch.arange(3).apply_(lambda value: value + 0.5).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"^Can't call apply_\(\) on Variable that requires grad"):
        x.clone().requires_grad_().apply_(abs)
    with pytest.raises(TypeError, match="^map_: expected torch.FloatTensor for 'other' .got torch.LongTensor"):
        x.map_(torch.ones(2, dtype=torch.int64), max)
    with pytest.raises(TypeError, match="^'int' object is not callable"):
        x.apply_(3)
    with pytest.raises(TypeError, match="must be real number, not str"):
        x.apply_(str)
    assert x.tolist() == [[5.5, 2], [15.5, 3]]


def test_read_only_memory_stays_read_only():
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        torch.from_numpy(array).apply_(lambda v: v + 1)
    assert array.tolist() == [0, 1, 2]


def test_a_failing_function_changes_nothing():
    x = torch.arange(3.0)
    with pytest.raises(ZeroDivisionError):
        x.apply_(lambda v: 1 / (2 - v))
    with pytest.raises(TypeError, match="^must be real number, not NoneType$"):
        x.map_(x, lambda a, b: None)
    assert x.tolist() == [0, 1, 2] and x._version == 0


def test_results_are_numbers_that_the_dtype_can_hold():
    i = torch.tensor([1, 2], dtype=torch.int8)
    with pytest.raises(RuntimeError, match="^value cannot be converted to type int8 without overflow"):
        i.apply_(lambda v: v + 400)
    with pytest.raises(TypeError, match="^'str' object cannot be interpreted as an integer"):
        i.apply_(str)
    with pytest.raises(TypeError, match="^must be real number, not list"):
        torch.ones(2, dtype=torch.complex64).apply_(lambda v: [v])
    with pytest.raises(TypeError, match="^map2_: expected torch.CharTensor for argument 'y' .got torch.FloatTensor"):
        i.map2_(i, torch.ones(2), max)
    assert i.tolist() == [1, 2]
    assert torch.tensor([False, True]).apply_(lambda v: 0.5 - v / 2).tolist() == [True, False]
