"""`gradcheck` against PyTorch's: which functions pass, and the type and first line of the errors."""

import sys

import pytest

import cygrad
from helpers import class_of

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:Input #0 requires gradient", "ignore:.torch.jit.script. is deprecated"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support", "ignore:Sparse invariant checks"),
]


def custom(torch, forward, backward):
    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, grad):
            return backward(ctx.saved_tensors[0], grad)

    return Given.apply


def pushed(torch, factor):
    """Twice its input, with a forward-mode derivative scaled by `factor`."""

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * factor

    return Given.apply


def cases(torch):
    """Return (check, arguments, options) by name."""
    module = sys.modules[f"{torch.autograd.__name__}.gradcheck"]
    check, second = module.gradcheck, module.gradgradcheck
    kinds = {"dtype": torch.double, "requires_grad": True}
    x = torch.tensor([0.4, -0.9, 2.0], **kinds)
    z = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.cdouble, requires_grad=True)
    forward = {"check_forward_ad": True, "check_backward_ad": False}
    half = custom(torch, lambda x: x**2, lambda x, g: g * x)
    matrix = torch.tensor([[1.0, 0, 2], [0, 0, 3]], dtype=torch.double)
    sparse, rows = (make().requires_grad_() for make in (matrix.to_sparse, matrix.to_sparse_csr))
    return {
        "sparse": (check, lambda s: s.to_dense() ** 2, sparse, {"masked": True}),
        "sparse, fast": (check, lambda s: s.to_dense() ** 2, sparse, {"masked": True, "fast_mode": True}),
        "sparse, not masked": (check, lambda s: s.to_dense() ** 2, sparse, {}),
        "sparse rows": (check, lambda s: s.to_dense() ** 2, rows, {"masked": True}),
        "sparse rows, not masked": (check, lambda s: s.to_dense(), rows, {}),
        "sparse gradient everywhere": (check, torch.sum, sparse, {}),
        "sparse result": (check, lambda s: s * 2, sparse, {"raise_exception": False}),
        "sparse gradient": (check, custom(torch, lambda x: x * 1, lambda x, g: g.to_sparse()), x, {}),
        "sparse, twice": (second, lambda s: s.to_dense() ** 2, sparse, {"masked": True}),
        "shape by value": (check, lambda y: torch.cat([y, y]) if y[1] >= -0.9 else y, x, {}),
        "dtype by value": (check, lambda y: y.float() if y[1] >= -0.9 else y, x, {}),
        "right": (check, lambda x: x.sin(), (x,), {}),
        "no tuple": (check, lambda x: [x * 2, x.sum()], x, {"fast_mode": True}),
        "wrong": (check, half, x, {}),
        "wrong, no exception": (check, half, x, {"raise_exception": False}),
        "wrong, fast": (check, half, x, {"fast_mode": True}),
        "wrong, complex": (check, custom(torch, lambda z: z**2, lambda z, g: g * 2 * z), z, {}),
        "complex": (check, lambda z: z.abs() * z, z, {}),
        "adds": (check, custom(torch, lambda x: x * 1, lambda x, g: g + 1e-7), x, {}),
        "no gradient asked": (check, lambda x: x, torch.ones(2), {}),
        "float32": (check, lambda x: x**2, torch.ones(2, requires_grad=True), {}),
        "not differentiable": (check, lambda x: x.argmax(), x, {}),
        "detached": (check, lambda x: x.detach() * 2, x, {}),
        "stride 0": (check, lambda x: x * x, x.detach()[0].expand(3, 3).requires_grad_(), {}),
        "no direction": (check, lambda x: x, x, {"check_backward_ad": False}),
        "batched forward": (check, lambda x: x, x, {"check_batched_forward_grad": True}),
        "empty": (check, lambda x: x * 2, torch.zeros(0, **kinds), {}),
        "number": (check, lambda x: 5, x, {}),
        "other inputs": (check, lambda x, *rest: x * x, (x, "a", None), {}),
        "the input itself": (check, lambda x: (x,), x, {}),
        "float inside": (check, lambda x: x.float() * 3, x, {}),
        "everything": (
            check,
            lambda x: (x * x, x.sum()),
            x,
            {"check_undefined_grad": True, "check_grad_dtypes": True, "check_batched_grad": True},
        ),
        "no masks": (check, lambda x: x * x, x, {"masked": True, "fast_mode": True}),
        "forward": (check, lambda x: (x.sin() * x, x.sum()), x, {"check_forward_ad": True}),
        "forward alone": (check, lambda z: z.exp() * z.abs(), z, {**forward, "fast_mode": True}),
        "forward, no jvp": (check, half, x, {"check_forward_ad": True}),
        "forward, wrong": (check, pushed(torch, 3), x, {"check_forward_ad": True}),
        "forward, wrong, fast": (check, pushed(torch, 3), x, {"check_forward_ad": True, "fast_mode": True}),
        "forward, right": (check, pushed(torch, 2), x, {"check_forward_ad": True, "check_batched_forward_grad": True}),
        "forward, batched": (check, half, x, {**forward, "check_undefined_grad": False, "check_batched_grad": True}),
        "forward over reverse": (second, lambda x: x**3, x, {"check_fwd_over_rev": True}),
        "forward over reverse alone": (
            second,
            lambda x: x**3,
            x,
            {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False},
        ),
        "nothing over reverse": (second, lambda x: x**3, x, {"check_rev_over_rev": False}),
        "undefined without reverse": (second, half, x, {"check_fwd_over_rev": True, "check_rev_over_rev": False}),
        "second": (second, lambda x: x**3, x, {}),
        "second of linear": (second, lambda x: x * 3, x, {}),
        "second, given": (second, lambda x: x**3, (x,), {"grad_outputs": (torch.ones(3, **kinds),)}),
        "second, wrong": (second, custom(torch, lambda x: x**2, lambda x, g: g * 2 * x.detach()), x, {}),
        "second, complex": (second, lambda z: z**3, z, {}),
    }


def outcome(case):
    check, func, inputs, options = case
    try:
        return check(func, inputs, **options)
    except Exception as error:
        return class_of(error), str(error).split("\n")[0]


@pytest.mark.parametrize("name", cases(cygrad))
def test_same_outcome(name):
    import torch

    assert outcome(cases(cygrad)[name]) == outcome(cases(torch)[name])
