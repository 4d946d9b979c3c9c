"""Anomaly mode and `nan_check`: what they detect, the site they report, and that they end."""

import numpy as np
import pytest

import cygrad as torch
from cygrad.autograd import Function, detect_anomaly, nan_check, set_detect_anomaly
from cygrad.errors import NonFiniteError
from helpers import first_line, in_thread, leaf, line_marked


def line_number(mark):
    """The line number of the caller's line with that mark."""
    return int(line_marked(mark, depth=2).rpartition(":")[2].removesuffix(r"\b"))


def caught(action):
    with pytest.raises(NonFiniteError) as error:
        action()
    return error.value


# ------------------------------------------------------------------ anomaly mode


def test_anomaly_mode_names_the_forward_line():
    x = leaf(0.0, 1.0)
    y = x.sqrt()  # recorded
    with set_detect_anomaly(True):
        error = caught((y * torch.tensor([0.0, 1.0])).sum().backward)
    assert first_line(error) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    assert error.sites["recorded"].line == line_number("recorded")
    assert error.sites["recorded"].function == "test_anomaly_mode_names_the_forward_line"
    assert "the first nan is at (0,), one of 1" in str(error)
    y.sum().backward()  # the mode is off again, and the graph is whole
    assert x.grad.tolist() == [float("inf"), 0.5]


def test_anomaly_mode_without_looking_for_nan():
    x = leaf(0.0)
    with set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert np.isnan(x.grad.item())


def test_detect_anomaly_warns_and_holds_for_all_threads():
    x = leaf(0.0)
    y = (x.sqrt() * 0).sum()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), detect_anomaly():
        in_thread(lambda: caught(y.backward))
    assert not torch.is_anomaly_enabled()


def test_anomaly_mode_in_second_gradients():
    x = leaf(0.0)
    (g,) = torch.autograd.grad((x**1.5).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    with set_detect_anomaly(True):
        error = caught(lambda: torch.autograd.grad((h * 0).sum(), x))
    assert "returned nan values" in str(error)


def test_anomaly_mode_in_a_custom_function():
    class Nan(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * float("nan")

    with set_detect_anomaly(True):
        error = caught(Nan.apply(leaf(1.0), leaf(2.0)).backward)
    assert first_line(error) == "Function 'NanBackward' returned nan values in its 1th output."


def test_an_error_in_backward_notes_the_node():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("lost")

    y = Fails.apply(leaf(1.0))
    with pytest.raises(KeyError) as error:
        y.backward()
    (note,) = error.value.__notes__
    assert "in the backward of FailsBackward, recorded at" in note
    assert "y = Fails.apply(leaf(1.0))" in note


# ------------------------------------------------------------------ nan_check


def test_result_of_an_op():
    x = torch.tensor([[1.0, 2.0], [-1.0, float("inf")]])
    with nan_check():
        error = caught(lambda: x.log())  # computed
    assert first_line(error) == "nan_check: log computed nan values"
    assert "the first nan is at (1, 0), one of 1" in str(error)
    assert "operand 0 has shape (2, 2) and dtype torch.float32, from -1.0 to inf" in str(error)
    assert error.sites["computed"].line == line_number("computed")


@pytest.mark.parametrize(
    "action",
    [
        lambda x: x - x,
        lambda x: x * 0,
        lambda x: x.clone().sub_(x),
        lambda x: torch.cat([x - 1, x]) - torch.cat([x, x]),
        lambda x: torch.stack([x, -x]).sum(0),
        lambda x: (x * 1j).exp(),
        lambda x: x.to(torch.float16) - x.to(torch.float16),
        lambda x: x.double()[::2] - x[::2],
        lambda x: x.expand(4, 3).t() * 0.0,
        lambda x: torch.sub(x, x, out=torch.empty(3)),
        lambda x: x.sort(descending=True).values.cumsum(0) * 0,
    ],
)
def test_every_kind_of_op_is_looked_at(action):
    x = torch.tensor([float("inf")] * 3)
    action(x)
    with nan_check():
        assert "nan" in first_line(caught(lambda: action(x)))
    action(x)


def test_infinite_numbers_only_when_asked():
    x = torch.tensor([0.0, 1.0])
    with nan_check():
        assert (1 / x).tolist() == [float("inf"), 1.0]
    with nan_check(inf=True):
        assert first_line(caught(lambda: 1 / x)).endswith("computed inf values")
        assert (x * 3).tolist() == [0.0, 3.0]
        assert torch.arange(3).sum() == 3


@pytest.mark.parametrize("layout", ["C", "F", "strided", "permuted"])
def test_one_bad_element_is_found_in_every_layout(layout):
    array = np.ones((4, 6, 5), np.float32, order="F" if layout == "F" else "C")
    array = {"strided": array[::2, ::3], "permuted": array.transpose(1, 2, 0)}.get(layout, array)
    x = torch.from_numpy(array)
    with nan_check():
        x.abs_()
    array[1, 1, 2] = np.nan
    with nan_check():
        assert "the first nan is at (1, 1, 2), one of 1" in str(caught(x.abs_))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 5000, 100_001])  # the largest is split across threads
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_one_bad_element_is_found_wherever_it_is(size, dtype, bad):
    largest = torch.finfo(getattr(torch, dtype)).max
    for place in {0, size // 2, size - 1}:
        x = torch.full((size,), largest, dtype=getattr(torch, dtype))
        x[place] = bad
        with nan_check(inf=True):
            error = caught(lambda x=x: x.clone())
            assert f"is at ({place},), one of 1" in str(error)
        x[place] = -largest
        with nan_check(inf=True):
            x.clone()


def test_a_gradient_that_is_given_is_looked_at():
    x = leaf(1.0, 2.0)
    for y in (x + 1, x.relu(), x.view(2, 1).expand(2, 1)):
        with nan_check():
            error = caught(lambda y=y: y.backward(torch.full(y.shape, float("nan"))))
        assert first_line(error) == "nan_check: the gradient passed for output 0 has nan values"
        assert "it has shape (2" in str(error) and "is at (0" in str(error)
        assert x.grad is None
    with nan_check():
        (x + 1).backward(torch.full((2,), float("inf")))
    with nan_check(inf=True):
        assert "has inf values" in first_line(caught(lambda: (x + 1).backward(torch.full((2,), float("inf")))))


def test_one_element_that_is_repeated_is_looked_at_once():
    x = torch.ones(3, requires_grad=True)
    for bad in (1.0, float("nan")):
        given = torch.tensor([1.0, bad, 1.0])[:, None].expand(3, 4)
        with nan_check():
            if bad == 1:
                (x[:, None] * torch.ones(3, 4)).backward(given)
            else:
                assert "one of 4" in str(caught(lambda g=given: (x[:, None] * torch.ones(3, 4)).backward(g)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", ["inf", "nan", "overflow", "large", "sum"])
@pytest.mark.parametrize("product", ["linear", "stack of linear", "left", "right"])
def test_a_large_gradient_made_of_small_factors(product, case, dtype):
    """Such a gradient is not scanned if its factors prove it finite, which they cannot if they are large."""
    x = torch.ones(2, 400, dtype=dtype)
    w = torch.zeros(300, 400, dtype=dtype, requires_grad=True)
    huge = torch.finfo(dtype).max ** 0.6
    x[0, 399], x[1, 399] = {"inf": (np.inf, -np.inf), "nan": (np.nan, 1), "overflow": (huge, -huge)}.get(case, (1, 2))
    given = torch.ones(2, 300, dtype=dtype)
    if case == "large":  # but finite
        given[0, 7] = huge
    elif case == "overflow":
        given[0, 299] = given[1, 299] = huge
    elif case == "sum":  # only the first is huge
        given[0, 7], x[0, 8] = huge, 1e-3
    with torch.enable_grad():
        if product == "linear":
            y = torch.nn.functional.linear(x, w, torch.zeros(300, dtype=dtype))  # recorded
        elif product == "stack of linear":
            y = torch.nn.functional.linear(x[:, None], w, torch.zeros(300, dtype=dtype))[:, 0]  # recorded
        elif product == "left":
            y = (w @ x.t()).t()
        else:
            y = x @ w.t()
    with nan_check(forward=False, inf=case == "overflow"):  # where products are fused into sums, overflow gives no NaN
        if case in ("large", "sum"):
            y.backward(given)
            assert torch.equal(w.grad, given.t() @ x)
        else:
            message = str(caught(lambda: y.backward(given)))
            assert "nan values in its" in message or "inf values in its" in message
            assert ("(399, " if product == "right" else ", 399), one of ") in message
            assert w.grad is None


def test_what_a_view_shows_is_looked_at_by_the_next_op():
    x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
    with nan_check():
        y = x.t()[1].view(2, 1).expand(2, 3)
        assert "nan_check: mul computed nan" in str(caught(lambda: y * 2))
        for part in (*x.split(1), *x.unbind(1)):
            if part.isnan().any():
                assert "nan_check: clone computed nan" in str(caught(part.clone))


def test_gradients_are_looked_at_too():
    x = leaf(0.0, 1.0)
    y = x.sqrt()
    with nan_check(forward=False):
        torch.tensor([-1.0]).log()
        error = caught((y * torch.tensor([0.0, 1.0])).sum().backward)
    assert first_line(error) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    assert x.grad is None


def test_is_of_its_thread_and_ends():
    bad = torch.tensor([-1.0])
    with nan_check():
        in_thread(bad.log)
        with nan_check(forward=False):
            bad.log()
        caught(bad.log)
    bad.log()
    check = nan_check()
    with check, check:
        caught(bad.log)
    bad.log()


def test_finds_the_op_whose_operand_was_bad_already():
    with nan_check():
        error = caught(lambda: torch.tensor([1.0, float("nan")]) * 2)
    assert "and 1 that are nan or infinite" in str(error)
