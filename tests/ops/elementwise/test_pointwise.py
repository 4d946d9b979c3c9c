"""Elementwise ops: properties of individual ops that the generic tests do not cover."""

import inspect
import math
import operator
import re
import sys

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, kind, leaf, scalar

NAN, INF = math.nan, math.inf


def gradient(function, *values):
    """Gradients of the sum of `function` with respect to leaves with these values."""
    leaves = [leaf(*value, dtype=torch.float64) for value in values]
    grads = torch.autograd.grad(function(*leaves).sum(), leaves)
    return [grad.tolist() for grad in grads]


# --- Subgradient conventions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (torch.abs, [0.0, -0.0, -2.0], [0.0, 0.0, -1.0]),
        (torch.relu, [0.0, -0.0, 3.0, -1.0], [0.0, 0.0, 1.0, 0.0]),
        (torch.sign, [0.0, 2.0], [0.0, 0.0]),
        (torch.floor, [0.0, 1.5], [0.0, 0.0]),
        (torch.sqrt, [0.0], [INF]),
        (lambda x: torch.clamp(x, 0, 1), [0.0, 1.0, 2.0, -1.0], [1.0, 1.0, 0.0, 0.0]),
        (lambda x: torch.clamp(x, 1, 0), [0.0, 1.0, 0.5], [0.0, 0.0, 0.0]),
        (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
        (lambda x: x**2, [0.0, -1.0], [0.0, -2.0]),
    ],
)
def test_gradient_at_kinks(function, at, expected):
    assert gradient(function, at) == [expected]


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (torch.maximum, [0.5, 1.0, 1.0, 1.0], [0.5, 0.0, 1.0, 1.0]),
        (torch.minimum, [0.5, 0.0, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0]),
        (torch.fmax, [1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
        (torch.fmin, [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]),
    ],
)
def test_ties_and_nan_share_the_gradient(function, first, second):
    assert gradient(function, [1.0, 2.0, NAN, 1.0], [1.0, 1.0, 0.0, NAN]) == [first, second]


def test_bounds_that_are_tensors_get_the_gradient_they_cause():
    at = [0.0, 2.0, -1.0, 0.5], [0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]
    assert gradient(torch.clamp, *at) == [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]


def test_where_keeps_nan_out_of_what_is_not_taken():
    x = leaf(-1.0, 4.0)
    torch.where(x > 0, 2 * x, 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]
    condition, infinite = torch.tensor([True, False]), torch.tensor([INF, NAN])
    torch.where(condition, x * 3, x).backward(infinite)
    assert x.grad.tolist()[0] == INF


def test_power_of_zero_has_no_nan():
    base, exponent = leaf(0.0, 0.0, 2.0), leaf(2.0, 0.0, 3.0)
    grads = torch.autograd.grad((base**exponent).sum(), (base, exponent), create_graph=True)
    assert grads[0].tolist() == [0.0, 0.0, 12.0]
    assert grads[1].tolist() == pytest.approx([0.0, 0.0, 8 * math.log(2)])
    again = torch.autograd.grad(grads[0].sum() + grads[1].sum(), (base, exponent))
    assert not any(math.isnan(value) for grad in again for value in grad.tolist())


# --- Saved tensors -----------------------------------------------------------------------------


def test_condition_is_saved_and_watched():
    x, condition = leaf(1.0, 2.0), torch.tensor([True, False])
    y = torch.where(condition, x, 0.0)
    assert y.grad_fn._saved_condition is condition
    assert len(y.grad_fn.next_functions) == 2
    condition.logical_not_()
    line = "one of the variables needed for gradient computation has been modified by an inplace operation: ..."
    with fails(RuntimeError, line):
        y.sum().backward()


def test_results_are_saved_where_they_are_enough():
    x = leaf(0.5)
    for name in ("exp", "tanh", "sigmoid", "sqrt", "rsqrt", "reciprocal", "expm1", "exp2", "relu", "tan"):
        y = getattr(x, name)()
        assert y.grad_fn._saved_result.tolist() == y.tolist(), name
        assert not hasattr(y.grad_fn, "_saved_self"), name


# --- Operators ---------------------------------------------------------------------------------


@pytest.mark.parametrize("symbol", ["and_", "or_", "xor", "floordiv", "mod"])
def test_operators_reflected_and_in_place(symbol):
    function, inplace = getattr(operator, symbol), getattr(operator, "i" + symbol.strip("_"))
    a, b = np.array([5, 6, 7]), np.array([3, 2, 4])
    expected = function(a, b).tolist()
    assert function(torch.tensor(a), torch.tensor(b)).tolist() == expected
    assert function(torch.tensor(a), 3).tolist() == function(a, 3).tolist()
    assert function(9, torch.tensor(b)).tolist() == function(9, b).tolist()
    x = before = torch.tensor(a)
    x = inplace(x, torch.tensor(b))
    assert x is before and x.tolist() == expected and x._version == 1
    with pytest.raises(TypeError, match="unsupported operand"):
        function(x, "text")


def test_unary_operators():
    x = torch.tensor([-1.5, 2.0])
    assert abs(x).tolist() == [1.5, 2.0]
    assert +x is x
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    with fails(TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors"):
        operator.invert(x)
    with fails(RuntimeError, "The `+` operator, on a bool tensor is not supported."):
        operator.pos(torch.tensor([True]))


def test_comparison_with_what_is_no_number():
    x = torch.tensor([1.0, 2.0])
    for other in (None, "text", [1.0, 2.0], object()):
        assert (x == other) is False and (x != other) is True
        with pytest.raises(TypeError, match="not supported between instances of"):
            x < other  # noqa: B015
    assert (x == np.array([1.0, 3.0])).tolist() == [True, False]
    assert (x < np.float32(1.5)).tolist() == [True, False]
    assert (1.5 > x).tolist() == [True, False]


@pytest.mark.parametrize("name", ["floor_divide", "heaviside"])
def test_steps_have_no_derivative(name):
    x = leaf(5.0, 7.0)
    y = getattr(torch, name)(x, torch.tensor([2.0]))
    assert kind(y.grad_fn) == "NotImplemented"
    with fails(RuntimeError, f"derivative for aten::{name} is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("name", "node", "options"),
    [
        ("_unique2", "Unique2", {}),
        ("unique_dim", "UniqueDim", {"dim": 0}),
        ("unique_consecutive", "UniqueConsecutive", {}),
        ("unique_consecutive", "UniqueConsecutive", {"dim": 0}),
    ],
)
def test_distinct_values_have_no_derivative(name, node, options):
    x = leaf(1.0, 1.0, 3.0)
    function = torch.unique_consecutive if "consecutive" in name else torch.unique
    values, places, counts = function(x, return_inverse=True, return_counts=True, **options)
    assert kind(values.grad_fn) == f"{node}Backward0"
    assert values.tolist() == [1, 3] and not places.requires_grad and not counts.requires_grad
    for run in (
        lambda: (values * x[1:]).sum().backward(),
        lambda: torch.func.grad(lambda x: function(x, **options).sum())(x),
    ):
        with fails(NotImplementedError, f"the derivative for '{name}' is not implemented."):
            run()
    assert function(torch.tensor([2, 2]), **options).tolist() == [2]


# --- Types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tanh", "sigmoid", "reciprocal", "erf"])
def test_integers_become_the_default_float(name):
    function = getattr(torch, name)
    assert function(torch.tensor([1, 2])).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    assert function(torch.tensor([True])).dtype is torch.float64


@pytest.mark.parametrize("name", ["relu", "abs", "sign", "floor", "round", "clamp_min"])
def test_integers_stay_integers(name):
    more = (0,) if name == "clamp_min" else ()
    result = getattr(torch, name)(torch.tensor([-1, 2], dtype=torch.int16), *more)
    assert result.dtype is torch.int16


def test_half_precision_keeps_its_type():
    x = torch.tensor([0.5, -1.0], dtype=torch.float16, requires_grad=True)
    for name in ("exp", "sigmoid", "tanh", "relu", "erf", "rsqrt", "exp2", "sign"):
        y = getattr(torch, name)(x)
        assert y.dtype is torch.float16, name
        assert torch.autograd.grad(y.sum(), x)[0].dtype is torch.float16, name


def test_uint8_condition_is_deprecated():
    condition = torch.tensor([1, 0], dtype=torch.uint8)
    with pytest.warns(UserWarning, match="where received a uint8 condition tensor"):
        assert torch.where(condition, 1.0, 2.0).tolist() == [1.0, 2.0]


def test_method_where_begins_with_itself():
    x = torch.tensor([1.0, 2.0])
    assert x.where(torch.tensor([True, False]), 0.0).tolist() == [1.0, 0.0]


def test_complex_absolute_value_in_place_is_refused():
    with fails(RuntimeError, "In-place abs is not supported for complex tensors."):
        torch.tensor([1j]).abs_()


def test_complex_absolute_value_goes_where_it_came_from():
    z = torch.tensor([3 + 4j, -1j])
    assert torch.abs(z, out=z) is z and z.tolist() == [5, 1] and z._version == 1


def test_log10_of_powers_of_ten_is_exact():
    exponents = list(range(-30, 38))
    powers = np.array([10.0**n for n in exponents], np.float32)
    assert torch.log10(torch.tensor(powers)).tolist() == exponents
    for spread in (torch.tensor(powers)[::2], torch.tensor(powers.reshape(4, 17)).t()):
        assert torch.log10(spread).reshape(-1).tolist() == [round(math.log10(x)) for x in spread.reshape(-1).tolist()]


def test_extreme_arguments():
    x = torch.tensor([-1e4, 0.0, 1e4])
    assert x.sigmoid().tolist() == [0.0, 0.5, 1.0]
    assert x.tanh().tolist() == [-1.0, 0.0, 1.0]
    assert scalar(NAN).relu().isnan().item() and not torch.sign(scalar(NAN)).item()


def test_log_gamma_of_infinities():
    for x in (torch.tensor([INF, -INF, 0.0, -1.0], dtype=dtype) for dtype in (torch.float32, torch.float64)):
        assert torch.lgamma(x).tolist() == [INF] * 4
    assert torch.mvlgamma(torch.tensor([-INF, INF]), 2).tolist() == [INF, INF]


def derivatives(function, at, dtype, count=3):
    x = leaf(*at, dtype=dtype)
    y = function(x)
    for _ in range(count):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        yield y.detach().double().numpy()


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-13), (torch.float32, 1e-6)])
@pytest.mark.parametrize(("name", "scipys"), [("i1", "ivp"), ("bessel_j1", "jvp")])
def test_higher_derivatives_of_bessel_functions_near_0(name, scipys, dtype, rtol):
    special = pytest.importorskip("scipy.special")
    at = [0.0, 1e-30, -1e-9, 1e-3, -0.3, 0.99, 1.01, -3.0, 20.0]
    at = torch.tensor(at, dtype=dtype).tolist()
    for n, found in enumerate(derivatives(getattr(torch.special, name), at, dtype), 1):
        np.testing.assert_allclose(found, getattr(special, scipys)(1, at, n), rtol, atol=1e-300)


def test_second_derivative_of_i1e_near_0():
    """The second derivative of x / 2 * exp(-|x|)."""
    _, second = derivatives(torch.special.i1e, [1e-30, -1e-9, 1e-4], torch.float64, 2)
    np.testing.assert_allclose(second, [-1.0, 1.0, -1.0], atol=1e-3)


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-12), (torch.float32, 2e-3)])
def test_higher_derivatives_of_error_functions_far_from_0(dtype, rtol):
    """Higher derivatives of exp(x^2) erfc(x), which tends to 1 / (x sqrt(pi)), and of log_ndtr, which tends to -x^2 / 2
    or to 0.
    """
    at = np.array([30.0, 1e3, 1e5])
    first, second = derivatives(torch.special.erfcx, at, dtype, 2)
    series = 1 - 1.5 / at**2 + 3.75 / at**4 - 13.125 / at**6
    np.testing.assert_allclose(first, -series / at**2 / math.sqrt(math.pi), rtol=max(rtol / 100, 1e-9))
    np.testing.assert_allclose(second, 2 / at**3 / math.sqrt(math.pi), rtol=1e-2)
    first, second = derivatives(torch.special.log_ndtr, [-1e6, -100.0, -3.0, 0.0, 3.0, 40.0, 1e6], dtype, 2)
    ratio = [1e6, 100.00999800099926, 3.283098654930445, 0.7978845608028654, 0.004437839042152347, 0.0, 0.0]
    np.testing.assert_allclose(first, ratio, rtol=max(rtol / 100, 1e-9))
    slopes = [-1.0, -0.9999000599, -0.9294408131, -0.6366197724, -0.0133332115, 0.0, 0.0]
    np.testing.assert_allclose(second, slopes, rtol=max(rtol, 1e-8))


def test_third_derivatives_of_error_functions_in_single_precision():
    *_, third = derivatives(torch.special.erfcx, [6.5, 10.0, 14.0, 20.0], torch.float32, 3)
    np.testing.assert_allclose(third, [-1.69641889e-3, -3.22426748e-4, -8.59284316e-5, -2.08960654e-5], rtol=1e-5)
    *_, third = derivatives(torch.special.log_ndtr, [-14.0, -20.0], torch.float32, 3)
    np.testing.assert_allclose(third, [6.86898525e-4, 2.42726579e-4], rtol=1e-3)


def test_inplace_forms_are_functions():
    x = torch.tensor([1.0, 4.0])
    assert torch.sqrt_(x) is x and x.tolist() == [1, 2]
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    z = y * 1
    assert torch.exp_(input=z) is z and z.grad_fn.name() == "ExpBackward0"
    with pytest.raises(TypeError, match=r"^exp_\(\): argument 'input' \(position 1\) must be Tensor, not float"):
        torch.exp_(1.0)
    with pytest.raises(TypeError, match="positional|multiple values"):
        torch.exp_(x, x)


@pytest.mark.parametrize("call", ["special.bessel_j0", "special.airy_ai", "special.modified_bessel_k0", "lgamma"])
def test_without_scipy(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    function = operator.attrgetter(call)(torch)
    with pytest.raises(ImportError, match=f"^cygrad.{call} needs SciPy, which is not installed"):
        function(torch.ones(2))
    ends = torch.tensor([0.0, -0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(torch.special.spherical_bessel_j0(ends).numpy(), [1, 1, 0, 0, np.nan])
    assert torch.special.hermite_polynomial_h(torch.ones(1), 2) == 2


def test_polynomials_beyond_their_degrees():
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.special.legendre_polynomial_p(x, 3)
    for expected in (lambda x: 7.5 * x**2 - 1.5, lambda x: 15 * x, lambda x: 15 + 0 * x, lambda x: 0 * x):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.detach().numpy(), expected(x.detach().numpy()))
    assert torch.special.laguerre_polynomial_l(x, float("nan")).tolist() == [0, 0]


def test_order_of_arguments_of_early_pytorch():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0], requires_grad=True)
    for call, expected in (
        (lambda: torch.add(x, 2, y), [21, 42]),
        (lambda: x.clone().sub_(0.5, y), [-4, -8]),
        (lambda: torch.addcmul(x, 2, x, y), [21, 82]),
        (lambda: torch.add(x, 2, other=y), [21, 42]),
        (lambda: x.clone().sub_(0.5, other=y), [-4, -8]),
        (lambda: torch.addcmul(x, 2, x, tensor2=y), [21, 82]),
        (lambda: torch.addcmul(x, 2, tensor2=y, tensor1=x), [21, 82]),
        (lambda: x.clone().addcdiv_(-1, y, x), [-9, -8]),
    ):
        with pytest.warns(UserWarning, match="^This overload of .* is deprecated:\n"):
            result = call()
        assert result.tolist() == expected
        (grad,) = torch.autograd.grad(result.sum(), y)
        assert grad.any()
    for function, sign in ((torch.add, 1), (torch.sub, -1)):
        with pytest.warns(UserWarning, match="deprecated"):
            assert function(2, 3, x).tolist() == [2 + sign * 3 * value for value in x.tolist()]
        for other in (x, 1, 1.5):
            with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) takes 2 positional arguments but 3 were"):
                function(x, x, other)
    with pytest.raises(TypeError, match=r"^add_\(\) takes 1 positional argument but 2 were given"):
        x.add_(x, 2)
    with pytest.raises(TypeError, match=r"^addcmul\(\) takes 3 positional arguments but 4 were given"):
        torch.addcmul(x, x, x, 2)
    for call in (lambda: torch.add(x, x, other=x), lambda: torch.add(x, 2, other=x, alpha=3)):
        with pytest.raises(TypeError, match=r"^add\(\) got multiple values for argument 'other'"):
            call()


@pytest.mark.parametrize(
    ("name", "shapes", "product"),
    [
        ("addmm", ((2, 2), (2, 2), (2, 2)), 8),
        ("addmv", ((2,), (2, 2), (2,)), 8),
        ("addr", ((2, 2), (2,), (2,)), 4),
        ("addbmm", ((2, 2), (3, 2, 2), (3, 2, 2)), 24),
        ("baddbmm", ((3, 2, 2), (3, 2, 2), (3, 2, 2)), 8),
    ],
)
def test_factors_before_products_as_in_early_pytorch(name, shapes, product):
    base, a, c = (torch.full(shape, 2.0, requires_grad=True) for shape in shapes)
    function, method, in_place = getattr(torch, name), getattr(base, name), getattr(base * 1, name + "_")
    names = inspect.signature(function).parameters
    first, second = [given for given in names if given not in ("input", "beta", "alpha", "out")]
    for call, expected in (
        (lambda: function(3, base, **{second: c, first: a}), 6 + product),
        (lambda: method(3, 5, a, **{second: c}), 6 + 5 * product),
        (lambda: function(3, base, a, c), 6 + product),
        (lambda: function(3, base, 5, a, c), 6 + 5 * product),
        (lambda: method(3, a, c), 6 + product),
        (lambda: method(3, 5, a, c), 6 + 5 * product),
        (lambda: in_place(0.5, 5, a, c), 1 + 5 * product),
    ):
        with pytest.warns(UserWarning, match=rf"^This overload of {name}_? is deprecated:\n\t{name}_?\(") as caught:
            result = call()
        assert result.unique().tolist() == [expected] and caught[0].filename == __file__
    (grad,) = torch.autograd.grad(result.sum(), base)
    assert grad.unique().tolist() == [0.5]
    for wrong in (
        lambda: function(base, 2, a, c),
        lambda: function(2, base, a, 3),
        lambda: function(2, 3, base, a, c),
    ):
        with pytest.raises(TypeError, match=rf"^{name}\(\) "):
            wrong()


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda x: torch.mul(), ["input", "other"]),
        (lambda x: torch.mul(x), ["other"]),
        (lambda x: torch.mul(other=x), ["input"]),
        (lambda x: torch.mul(x, foo=1), ["other"]),
        (lambda x: x.mul(), ["other"]),
        (lambda x: torch.sin(), ["input"]),
        (lambda x: torch.transpose(x), ["dim0", "dim1"]),
        (lambda x: x.transpose(dim1=0), ["dim0"]),
        (lambda x: torch.chunk(x), ["chunks"]),
        (lambda x: x.matmul(), ["other"]),
    ],
)
def test_missing_arguments_are_named(call, names):
    plural = "s" if len(names) == 1 else ""  # PyTorch's plural
    quoted = ", ".join(f'"{name}"' for name in names)
    with pytest.raises(
        TypeError, match=rf"\w+\(\) missing {len(names)} required positional argument{plural}: {quoted}$"
    ):
        call(torch.ones(2, 2))
    assert torch.mul(other=torch.tensor(2.0), input=torch.tensor(3.0)) == 6
    assert torch.transpose(torch.ones(2, 3), dim1=0, dim0=1).shape == (3, 2)


def test_numpys_names_and_numbers():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert torch.var_mean(x, axis=1, keepdims=True)[1].tolist() == [[1.5], [3.5]]
    assert torch.fft.fft(x, axis=0).shape == x.kthvalue(1, axis=0).values.unsqueeze(0).expand(2, 2).shape
    assert torch.eq(x1=x, x2=np.int64(2)).tolist() == [[False, True], [False, False]]
    squares = torch.pow(x, np.float32(2))
    assert squares.tolist() == [[1, 4], [9, 16]] and squares.grad_fn.name() == "PowBackward0"
    assert torch.dist(x, torch.zeros(2, 2), torch.tensor(1)).item() == 10
    for call, text in (
        (lambda: torch.gather(x, 0), 'gather() missing 1 required positional arguments: "index"'),
        (lambda: torch.kthvalue(x, 1, q=3), "kthvalue() got an unexpected keyword argument 'q'"),
        (lambda: torch.kthvalue(x, 1, axis=0, dim=0), "kthvalue() got an unexpected keyword argument 'axis'"),
        (lambda: torch.fft.fft(x, q=3), "fft_fft() got an unexpected keyword argument 'q'"),
        (lambda: torch.renorm(x, np.str_("a"), 0, 1.0), "renorm(): argument 'p' (position 2) must be Number"),
    ):
        with pytest.raises(TypeError, match=rf"^{re.escape(text)}"):
            call()


def test_power_modulo_is_refused():
    with pytest.raises(TypeError, match="unsupported operand"):
        pow(torch.tensor([2]), 3, 5)


def test_out_is_taken_by_keyword_alone():
    x, y = torch.tensor([4.0]), torch.tensor([1.0])
    for call, text in (
        (lambda: torch.sqrt(x, y), r"sqrt\(\) takes 1 positional argument but 2 were given"),
        (lambda: x.sqrt(y), r"TensorBase\.sqrt\(\) takes no arguments \(1 given\)"),
        (lambda: torch.sqrt_(x, y), r"sqrt_\(\) takes 1 positional argument but 2 were given"),
        (lambda: torch.mul(x, x, y), r"mul\(\) takes 2 positional arguments but 3 were given"),
        (lambda: torch.sin(*[x, y]), r"takes 1 positional"),
        (lambda: torch.sin(x, y), "positional"),
        (lambda: torch.cat([x], 0, y), r"cat\(\) takes from 1 to 2 positional arguments but 3 were given"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
    assert x.item() == 4 and y.item() == 1
    assert torch.sqrt(x, out=y) is y and torch.sqrt(input=x, out=y).item() == 2
    assert list(map(torch.sqrt, [x])) == [2]


@pytest.mark.parametrize("number", [np.float32, np.float64, np.int64])
def test_numbers_of_numpy_are_numbers(number):
    x, one = torch.tensor([-2.0, 0.5, 3.0]), number(1)
    assert x.clamp(-one, one).tolist() == torch.clamp(x, min=-one).clamp_max(one).tolist() == [-1, 0.5, 1]
    assert x.clone().clamp_(min=number(0)).tolist() == x.clamp_min(number(0)).tolist() == [0, 0.5, 3]
    assert torch.mul(x, number(2)).tolist() == x.clone().mul_(number(2)).tolist() == torch.add(x, x).tolist()
    assert torch.div(x, number(2)).tolist() == [-1, 0.25, 1.5] and torch.div(x, number(2)).dtype is torch.float32
    assert x.masked_fill(x > 0, number(7)).tolist() == [-2, 7, 7] and torch.zeros(2).fill_(one).tolist() == [1, 1]


def test_lerp_by_a_complex_number():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.lerp(x, 3 * x, torch.tensor(1 + 2j))
    assert y.dtype is torch.complex128 and y.tolist() == [3 + 4j, 6 + 8j]
    y.real.sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast to the desired output type Float"):
        torch.ones(2).lerp_(torch.ones(2), torch.tensor(1j))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
def test_exponents_have_gradients_in_the_precision_of_the_result(dtype):
    base, exponent = torch.tensor([2, 3], dtype=dtype), leaf(2.0, 0.5, dtype=torch.float64)
    (grad,) = torch.autograd.grad((base**exponent).sum(), exponent)
    np.testing.assert_allclose(grad.numpy(), [4 * math.log(2), math.sqrt(3) * math.log(3)], rtol=1e-14)


def test_exponent_of_an_integer_that_has_no_float32():
    base, exponent = torch.tensor([2**24 + 1, 10**17]), leaf(1.0, 1.0, dtype=torch.float64)
    (grad,) = torch.autograd.grad((base**exponent).sum(), exponent)
    np.testing.assert_allclose(grad.numpy(), [n * math.log(n) for n in base.tolist()], rtol=1e-15)


def test_gradients_by_large_powers_of_two():
    """The gradients are products with a power that may not be representable in float32."""
    x = torch.tensor([1e-30, 0.0], dtype=torch.float64, requires_grad=True)
    for power in (127, 128, 1023, -1070):
        (gradient,) = torch.autograd.grad(torch.ldexp(x, torch.tensor([power])).sum(), x, create_graph=True)
        assert gradient.tolist() == [2.0**power] * 2
    y = torch.tensor(3.0, requires_grad=True)
    torch.ldexp(y, torch.tensor(140)).backward(torch.tensor(2.0**-100))
    assert y.grad == 2.0**40


def test_gradient_of_atan2_of_an_integer():
    """The integer's square would wrap around in its own type."""
    x = scalar(2.0)
    torch.atan2(torch.tensor(100, dtype=torch.uint8), x).backward()
    assert x.grad.item() == pytest.approx(-100 / (100**2 + 2**2))


def test_in_place_forms_take_no_out():
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"clamp_\(\) got an unexpected keyword argument 'out'"):
        x.clamp_(0, 1, out=x)
    assert torch.relu_(input=x) is x
    for call in (lambda: torch.relu_(), lambda: torch.relu_(3)):
        with pytest.raises(TypeError, match=r"relu_\(\)"):
            call()


@pytest.mark.parametrize("name", ["erfc", "erfinv", "lgamma", "digamma", "i0", "complex", "polar"])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_results_lie_in_memory_as_the_operand_does(name, order):
    x = (torch.arange(24.0).reshape(2, 3, 4) / 25).permute(order)
    operands = (x, x) if name in ("complex", "polar") else (x,)
    found, expected = getattr(torch, name)(*operands), getattr(torch, name)(*[t.contiguous() for t in operands])
    assert found.stride() == x.stride() and found.equal(expected)
    apart = getattr(torch, name)(*[t[:, ::2] for t in operands])
    assert apart.equal(expected[:, ::2])


@pytest.mark.parametrize("op", [torch.add, torch.sub])
def test_alpha_has_the_kind_of_the_result(op):
    for operands in ((1, 1), (torch.ones(2), 1), (1.5, torch.tensor(2))):
        with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results."):
            op(*operands, alpha=True)
    for alpha in (1.0, 2.5, 2j):
        with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not be a floating"):
            op(torch.tensor([1]), 1, alpha=alpha)
    assert torch.add(torch.tensor(True), torch.tensor(True), alpha=True).item() is True


TWO = torch.tensor([2.0])
SCALED = {
    "add": lambda factor: torch.add(TWO, TWO, alpha=factor),
    "sub": lambda factor: TWO.sub(TWO, alpha=factor),
    "add_": lambda factor: TWO.clone().add_(TWO, alpha=factor),
    "rsub": lambda factor: torch.rsub(TWO, TWO, alpha=factor),
    "addcmul": lambda factor: torch.addcmul(TWO, TWO, TWO, value=factor),
    "addcdiv": lambda factor: TWO.addcdiv(TWO, TWO, value=factor),
    "addmm": lambda factor: torch.addmm(TWO, TWO[None], TWO[None], alpha=factor),
    "addmv": lambda factor: torch.addmv(TWO, TWO[None], TWO, beta=factor),
    "baddbmm": lambda factor: torch.baddbmm(TWO, TWO[None, None], TWO[None, None], beta=factor),
}


@pytest.mark.parametrize("name", SCALED)
def test_factors_are_numbers_and_have_no_gradient(name):
    scaled = SCALED[name]
    assert scaled(torch.tensor(3.0)).equal(scaled(3.0))
    for factor in (torch.tensor(3.0, requires_grad=True), torch.tensor([3.0])):
        with pytest.raises(TypeError, match="must be Number, not Tensor|received an invalid combination of arguments"):
            scaled(factor)


def test_a_tensor_as_alpha_has_the_kind_of_the_result():
    with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not be a floating"):
        torch.add(torch.tensor([1]), 1, alpha=torch.tensor(2.0))
