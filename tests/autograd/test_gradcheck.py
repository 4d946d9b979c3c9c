"""`gradcheck` and `gradgradcheck`: what they accept, the errors they find, and their messages."""

import itertools
import re
import tracemalloc

import pytest

import cygrad as torch
from cygrad.autograd import GradcheckError, gradcheck, gradgradcheck
from helpers import fails, first_line


def doubles(*values):
    return torch.tensor(values, dtype=torch.double, requires_grad=True)


def function(forward, backward):
    """A custom function of one tensor."""

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, grad):
            return backward(ctx.saved_tensors[0], grad)

    return Given.apply


def failure(*args, check=gradcheck, **options):
    with pytest.raises(GradcheckError) as caught:
        check(*args, **options)
    return caught.value


MISMATCH = "Jacobian mismatch for output 0 with respect to input 0,"

# ------------------------------------------------------------------ correct functions


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "func",
    [
        lambda x, z: x.sin() * x,
        lambda x, z: (x.sum(), x[:, 0] * 2, x.argmax()),
        lambda x, z: z.abs(),
        lambda x, z: z * z,
        lambda x, z: z.conj() * x[0, 0],
        lambda x, z: torch.complex(x, x * 2).exp(),
        lambda x, z: x[:0],
        lambda x, z: x.sum() * torch.ones((), dtype=torch.double),
    ],
)
def test_right_gradients_pass(func, fast_mode):
    x = torch.randn(2, 3, dtype=torch.double, requires_grad=True)
    z = torch.randn(3, dtype=torch.cdouble, requires_grad=True)
    before = x.tolist(), z.tolist()
    options = {"check_grad_dtypes": True, "check_batched_grad": True, "fast_mode": fast_mode}
    assert gradcheck(func, (x, z), **options)
    assert gradgradcheck(func, (x, z), fast_mode=fast_mode)
    assert (x.tolist(), z.tolist()) == before
    assert x.grad is None
    assert x._version == 0


def test_second_gradients_with_given_and_scattered_gradients():
    x = doubles(0.5, 2.0)
    assert gradgradcheck(lambda x: x**3, x, doubles(1.0, 2.0))
    assert gradgradcheck(lambda x: x**3, x, gen_non_contig_grad_outputs=True)
    assert gradgradcheck(lambda x: x * 3, x)


# ------------------------------------------------------------------ eight seeded faults


def noisy():
    calls = itertools.count()
    return lambda x: x * 2 + next(calls) * 1e-7


FAULTS = {
    "factor": ("wrong formula", function(lambda x: x**2, lambda x, g: g * x), lambda: doubles(0.7, 2.0)),
    "sign": ("wrong formula", function(torch.cos, lambda x, g: g * x.sin()), lambda: doubles(0.7, 2.0)),
    "one entry": (
        "wrong formula",
        function(lambda x: x**3, lambda x, g: g * 3 * x.clamp(max=1) ** 2),
        lambda: doubles(0.7, 2.0),
    ),
    "conjugate": (
        "wrong formula",
        function(lambda z: z**2, lambda z, g: g * 2 * z),
        lambda: torch.tensor([1 + 2j], dtype=torch.cdouble, requires_grad=True),
    ),
    "leaky branch": ("kink in the function", lambda x: torch.where(x > 0, 3 * x, x), lambda: doubles(1.0, 0.0)),
    "relu at 0": ("kink in the function", torch.relu, lambda: doubles(0.0, 3.0)),
    "jump": ("kink in the function", lambda x: x.floor() + x, lambda: doubles(1.0, 0.5)),
    "jump from 0": ("kink in the function", lambda x: torch.where(x > 0, 3.0, 0.0) * x.exp(), lambda: doubles(0.0)),
    "float32": ("precision too low", torch.exp, lambda: torch.tensor([0.3, 2.0], requires_grad=True)),
    "float32 inside": ("precision too low", lambda x: x.float().exp().double(), lambda: doubles(0.3, 2.0)),
    "noise": ("not deterministic", noisy(), lambda: doubles(0.3, 2.0)),
}


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient")
@pytest.mark.parametrize("name", FAULTS)
def test_verdict(name):
    verdict, func, make = FAULTS[name]
    x = make()
    error = failure(func, x, atol=1e-6)
    assert error.verdict == verdict, str(error)
    assert f"verdict: {verdict}" in str(error)
    assert not gradcheck(func, x, atol=1e-6, raise_exception=False)


def test_backward_that_is_not_deterministic():
    calls = itertools.count()
    func = function(lambda x: x * 2, lambda x, g: g * (2 + next(calls) * 1e-8))
    error = failure(func, doubles(1.0))
    assert error.verdict == "not deterministic"
    assert first_line(error).startswith("Backward is not reentrant, i.e., running backward with same input")
    assert gradcheck(func, doubles(1.0), nondet_tol=1e-3)


def test_step_that_is_too_small():
    error = failure(torch.exp, doubles(1.0), eps=1e-14)
    assert error.verdict == "precision too low"
    assert re.search(r"a step of \S+ agrees: pass eps=", str(error))


def test_report_names_the_worst_entry():
    func = function(lambda x: x**2, lambda x, g: g * x)
    error = failure(func, torch.tensor([[0.5, 3.0]], dtype=torch.double, requires_grad=True))
    assert first_line(error) == MISMATCH
    assert error.index == ((0, 1), (0, 1))
    text = str(error)
    assert "worst entry: d output[0, 1] / d input[0, 1]" in text
    assert re.search(r"analytic 3, numeric (6|5\.9999\d+), error 3, relative 0.5", text)
    assert "which is 2 times the analytic value" in text
    assert re.search(r"error by step: 1e-01 \d.*, 1e-10 \d", text)


def test_fast_mode_reports_the_entries_too():
    text = str(failure(function(lambda x: x**2, lambda x, g: g * x), doubles(0.5, 3.0), fast_mode=True))
    assert text.startswith(MISMATCH)
    assert "worst entry: d output[1] / d input[1]" in text


def test_fast_mode_makes_no_jacobian():
    x = torch.linspace(0, 1, 4000, dtype=torch.float64, requires_grad=True)
    tracemalloc.start()
    try:
        assert gradcheck(torch.sin, x, fast_mode=True)
        assert tracemalloc.get_traced_memory()[1] < 32 * 1024**2  # a Jacobian has 128 MB
    finally:
        tracemalloc.stop()


def test_second_gradients_that_are_wrong():
    func = function(lambda x: x**2, lambda x, g: g * 2 * x.detach())
    assert gradcheck(func, doubles(0.5, 3.0))
    assert failure(func, doubles(0.5, 3.0), check=gradgradcheck).verdict == "wrong formula"


def test_missing_gradients_are_zero():
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            if g is None and h is None:
                raise RuntimeError("no gradient at all")
            return (0 if g is None else g * 2) + (0 if h is None else h * 3)

    with pytest.warns(UserWarning, match="New undefined gradient support checking feature is enabled by default"):
        error = failure(Sum.apply, doubles(1.0))
    assert first_line(error).startswith("Expected backward function to handle undefined output grads.")
    assert "no gradient at all" in str(error)
    assert gradcheck(Sum.apply, doubles(1.0), check_undefined_grad=False)


def test_inputs_are_put_back_after_an_error():
    x = doubles(1.0, 2.0)
    calls = itertools.count()

    def fails_later(x):
        if next(calls) == 3:
            raise ZeroDivisionError
        return x * 2

    with pytest.raises(ZeroDivisionError):
        gradcheck(fails_later, x)
    assert x.tolist() == [1.0, 2.0]
    assert torch.is_grad_enabled()


def test_is_of_the_module_of_its_name():
    import sys

    assert sys.modules["cygrad.autograd.gradcheck"].gradcheck is torch.autograd.gradcheck
    assert issubclass(GradcheckError, RuntimeError)


@pytest.mark.parametrize(
    ("arguments", "error", "line"),
    [
        ({"eps": None}, TypeError, "unsupported operand type(s) for -: 'Tensor' and 'NoneType'"),
        ({"eps": "a"}, TypeError, "unsupported operand type(s) for -: 'Tensor' and 'str'"),
        ({"nondet_tol": []}, TypeError, "'>' not supported between instances of 'Tensor' and 'list'"),
        ({"rtol": "a"}, TypeError, "allclose(): argument 'rtol' (position 3) must be float, not str"),
        ({"atol": None}, TypeError, "allclose(): argument 'atol' (position 4) must be float, not NoneType"),
        ({"rtol": -1}, RuntimeError, "rtol must be greater than or equal to zero, but got -1"),
        ({"atol": -0.5}, RuntimeError, "atol must be greater than or equal to zero, but got -0.5"),
    ],
)
def test_numbers_that_are_none(arguments, error, line):
    for check in (gradcheck, gradgradcheck):
        with fails(error, line):
            check(torch.sin, doubles(1.0), **arguments)


def test_a_gradient_of_nothing_that_is_something():
    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(1, dtype=torch.double) if grad is None else grad * 2

    line = "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please ..."
    with pytest.warns(UserWarning, match="New undefined gradient"), fails(GradcheckError, line):
        gradcheck(One.apply, doubles(1.0))


def test_bools_have_no_differences():
    line = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` ..."
    with fails(RuntimeError, line):
        gradcheck(lambda x: x > 0, doubles(1.0))


def test_integers_that_jump_are_no_derivative():
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x.long(), x)
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: (x.long(), x.detach() * 2), x)


class _OfSamples(torch.autograd.Function):
    """Twice its input, but its batching rule returns three times the input."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, tangent):
        return _Doubled.apply(tangent)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x):
        return x * 3, in_dims[0]


def test_batched_tangents():
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    how = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
    assert gradcheck(lambda x: (x**2, x.sum()), x, check_batched_forward_grad=True, **how)
    assert gradcheck(_OfSamples.apply, x, **how)
    with pytest.raises(GradcheckError, match="testing batched forward-mode gradient"):
        gradcheck(_OfSamples.apply, x, check_batched_forward_grad=True, **how)


def test_forward_mode_sees_tangents_and_no_history():
    seen = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            if torch.autograd.forward_ad._current_level >= 0:
                seen.append(x.requires_grad or y.requires_grad)
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, x, y):
            return x, y

    x, y = doubles(1.0), doubles(2.0)
    how = {"check_forward_ad": True, "check_backward_ad": False}
    for fast_mode in (False, True):
        seen.clear()
        assert gradcheck(Counted.apply, (x, y), check_undefined_grad=False, fast_mode=fast_mode, **how)
        assert seen == [False, False]  # one call for each input, whose results serve for all outputs
        assert gradcheck(Counted.apply, (x, y), fast_mode=fast_mode, **how)
        assert len(seen) == 2 + 6 and not any(seen)


def test_a_missing_tangent_is_zero():
    class Careless(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx, x, y):
            return x * 2 if y is None else y * 3 if x is None else x + y

    how = {"check_forward_ad": True, "check_backward_ad": False}
    assert gradcheck(Careless.apply, (doubles(1.0), doubles(2.0)), check_undefined_grad=False, **how)
    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index: 0"):
        gradcheck(Careless.apply, (doubles(1.0), doubles(2.0)), **how)


def test_forward_mode_in_changed_functions():
    forward_ad = torch.autograd.forward_ad

    def wrong(x, y):
        if forward_ad._current_level >= 0:
            primal, tangent = forward_ad.unpack_dual(y)
            y = forward_ad.make_dual(primal, tangent * 1.1)
        return x + y, y

    line = "Jacobian computed with forward mode mismatch for output 0 with respect to input 1,"
    for fast_mode in (False, True):
        with fails(GradcheckError, line):
            gradcheck(wrong, (doubles(1.0), doubles(2.0)), check_forward_ad=True, fast_mode=fast_mode)


def test_functions_that_vmap_does_not_run():
    x = doubles(1.0, 2.0)
    with pytest.raises(GradcheckError, match="While computing batched gradients, got: vmap: "):
        gradcheck(lambda x: x * torch.rand_like(x).sign(), x, check_forward_ad=True, check_batched_forward_grad=True)


def test_kinds_of_outputs_that_depend_on_values():
    line = "Expected `func` to return outputs with the same {} when inputs are perturbed {}by {}, but got: {}"
    x = doubles(1.0)
    cases = [
        (lambda x: torch.cat([x, x]) if x >= 1 else x, "shape", "shapes torch.Size([1]) and torch.Size([2])."),
        (lambda x: x.float() if x >= 1 else x, "dtype", "dtypes torch.float64 and torch.float32."),
    ]
    for func, kind, kinds in cases:
        with fails(AssertionError, line.format(kind, "on index (0,) ", "1e-06", kinds)):
            gradcheck(func, x)
        with fails(AssertionError, line.format(kind, "", "1e-06", kinds)):
            gradcheck(func, x, fast_mode=True)
