"""Orthogonal polynomials of `cygrad.special`, which are differentiable here, unlike in PyTorch."""

from cygrad._core.graph.opdef import (
    ELEMENTWISE,
    FLOAT_RESULT,
    FUNCTION_ONLY,
    IN0,
    IN1,
    METHOD_ONLY,
    PRIVATE,
    declare,
    publish,
)
from cygrad._core.graph.record import apply_n
from cygrad._kernels.cpu.elementwise import polynomials as kernels
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.checks.common import require_broadcast, require_operands, require_real
from cygrad._ops.elementwise.binary import as_tensors

DOC = """{what} of degree `n` at `x`; 0 for negative degrees. Degrees are rounded toward 0.

    {formula}

    Either may be a number. Saves both. The gradient of `x` is g times the derivative; `n` has none.

    >>> import cygrad
    >>> cygrad.special.{name}(cygrad.tensor([0.5, 2.0]), 2)
    tensor([{example}])
    """


def rule(n, g):
    family, order = n.args
    return (mul(g, polynomial_derivative(n.saved(0), n.saved(1), family, order + 1)) if n.needs(0) else None), None


DERIVATIVE = declare(
    "polynomial_derivative",
    rule,
    saves=(IN0 | IN1, 0),
    flags=ELEMENTWISE | PRIVATE,
    kernel=kernels.polynomial,
    inputs="x n",
)


def polynomial_derivative(x, degree, family, order):
    """Return the derivative of the given order of a polynomial."""
    return apply_n(DERIVATIVE, (x, degree), (family, order))


def polynomial(name, what, formula, family, example):
    """Declare the row of a family of polynomials and return its function."""
    row = declare(
        name,
        rule,
        saves=(IN0 | IN1, 0),
        flags=ELEMENTWISE | FLOAT_RESULT | FUNCTION_ONLY | METHOD_ONLY,  # both: found only in cygrad.special
        kernel=kernels.polynomial,
        inputs="x n",
        overloads="",
    )

    def function(x, n, *, out=None):
        require_operands(f"special_{name}", x, n)
        require_real(row, x, n)
        hint = x, n
        x, n = as_tensors(row, x, n)
        require_broadcast(x, n)
        return apply_n(row, (x, n), (family, 0), out, hint)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = DOC.format(what=what, name=name, formula=formula, example=example)
    return function


chebyshev_polynomial_t = polynomial(
    "chebyshev_polynomial_t",
    "The Chebyshev polynomial of the first kind",
    "T_n(cos t) = cos(n t).",
    kernels.CHEBYSHEV_T,
    "-0.5000,  7.0000",
)
chebyshev_polynomial_u = polynomial(
    "chebyshev_polynomial_u",
    "The Chebyshev polynomial of the second kind",
    "U_n(cos t) = sin((n + 1) t) / sin(t).",
    kernels.CHEBYSHEV_U,
    " 0., 15.",
)
chebyshev_polynomial_v = polynomial(
    "chebyshev_polynomial_v",
    "The Chebyshev polynomial of the third kind",
    "V_n(cos t) = cos((n + 1 / 2) t) / cos(t / 2).",
    kernels.CHEBYSHEV_V,
    "-1., 11.",
)
chebyshev_polynomial_w = polynomial(
    "chebyshev_polynomial_w",
    "The Chebyshev polynomial of the fourth kind",
    "W_n(cos t) = sin((n + 1 / 2) t) / sin(t / 2).",
    kernels.CHEBYSHEV_W,
    " 1., 19.",
)
shifted_chebyshev_polynomial_t = polynomial(
    "shifted_chebyshev_polynomial_t",
    "The Chebyshev polynomial of the first kind, shifted to [0, 1],",
    "It is T_n(2 x - 1), where T_n(cos t) = cos(n t).",
    kernels.SHIFTED_T,
    "-1., 17.",
)
shifted_chebyshev_polynomial_u = polynomial(
    "shifted_chebyshev_polynomial_u",
    "The Chebyshev polynomial of the second kind, shifted to [0, 1],",
    "It is U_n(2 x - 1), where U_n(cos t) = sin((n + 1) t) / sin(t).",
    kernels.SHIFTED_U,
    "-1., 35.",
)
shifted_chebyshev_polynomial_v = polynomial(
    "shifted_chebyshev_polynomial_v",
    "The Chebyshev polynomial of the third kind, shifted to [0, 1],",
    "It is V_n(2 x - 1), where V_n(cos t) = cos((n + 1 / 2) t) / cos(t / 2).",
    kernels.SHIFTED_V,
    "-1., 29.",
)
shifted_chebyshev_polynomial_w = polynomial(
    "shifted_chebyshev_polynomial_w",
    "The Chebyshev polynomial of the fourth kind, shifted to [0, 1],",
    "It is W_n(2 x - 1), where W_n(cos t) = sin((n + 1 / 2) t) / sin(t / 2).",
    kernels.SHIFTED_W,
    "-1., 41.",
)
hermite_polynomial_h = polynomial(
    "hermite_polynomial_h",
    "The physicist's Hermite polynomial",
    "H_n(x) = (-1)^n exp(x^2) times the n-th derivative of exp(-x^2).",
    kernels.HERMITE_H,
    "-1., 14.",
)
hermite_polynomial_he = polynomial(
    "hermite_polynomial_he",
    "The probabilist's Hermite polynomial",
    "He_n(x) = (-1)^n exp(x^2 / 2) times the n-th derivative of exp(-x^2 / 2).",
    kernels.HERMITE_HE,
    "-0.7500,  3.0000",
)
laguerre_polynomial_l = polynomial(
    "laguerre_polynomial_l",
    "The Laguerre polynomial",
    "L_n(x) = exp(x) / n! times the n-th derivative of x^n exp(-x).",
    kernels.LAGUERRE,
    " 0.1250, -1.0000",
)
legendre_polynomial_p = polynomial(
    "legendre_polynomial_p",
    "The Legendre polynomial",
    "P_n(x) = 1 / (2^n n!) times the n-th derivative of (x^2 - 1)^n.",
    kernels.LEGENDRE,
    "-0.1250,  5.5000",
)

functions = publish(globals())
