"""`gradcheck` compares gradients with finite differences; `gradgradcheck` does the same for second derivatives.

Derivatives with respect to a complex number z = x + iy are df/dx + i df/dy, as in PyTorch; the real and the imaginary
part of a complex result are checked one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.engine.backward import grad
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.random.random import randn
from cygrad.autograd import _gradcheck_further as further
from cygrad.autograd import _gradcheck_report as reports
from cygrad.autograd import _jacobians as jacobians
from cygrad.autograd._gradcheck_report import GradcheckError
from cygrad.autograd._jacobian_names import _get_numerical_jacobian as _get_numerical_jacobian
from cygrad.autograd._jacobian_names import _iter_tensors as _iter_tensors
from cygrad.autograd._jacobian_names import get_analytical_jacobian, get_numerical_jacobian
from cygrad.autograd._movable import is_dense

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck", "gradgradcheck"]

_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}."
)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func(*inputs)` agree with central differences with step `eps`.

    An entry agrees if |analytic - numeric| <= atol + rtol |numeric|. Inputs that require grad should be double or
    complex double; they are changed and restored. Also checks that backward returns the same result twice (up to
    `nondet_tol`), is linear in the incoming gradient, and accepts missing gradients (`check_undefined_grad`);
    optionally also `is_grads_batched` (`check_batched_grad`) and forward mode (`check_forward_ad`). `fast_mode`
    compares one random combination of all entries. Of sparse inputs all elements are changed, or with `masked` only
    those that they store. Outputs must be dense.

    With `raise_exception`, a disagreement raises a GradcheckError, which reports the worst entry, its error at other
    steps, and a diagnosis: a wrong formula, a kink, too low a precision, or a nondeterministic function.

    >>> import cygrad
    >>> x = cygrad.tensor([0.5, 2.0], dtype=cygrad.double, requires_grad=True)
    >>> cygrad.autograd.gradcheck(lambda x: (x ** 3).sum(), x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    case = jacobians.Case(func, inputs, eps, bool(masked))
    _check_inputs(case.inputs)
    _check_numbers(eps, atol, rtol, nondet_tol)
    try:
        outputs = case.outputs()
        _check_outputs(outputs)
        if not outputs:
            _check_no_gradient(case)
            return True
        compare = _compare_fast if fast_mode else _compare
        if check_backward_ad:
            compare(case, outputs, _Backward(case, nondet_tol), atol, rtol)
        if check_forward_ad:
            compare(case, outputs, _Forward(case), atol, rtol)
            if check_undefined_grad:
                further.check_undefined_forward(case)
            if check_batched_forward_grad:
                further.check_batched_forward(case)
        if check_backward_ad:
            if check_batched_grad:
                further.check_batched(case, outputs)
            further.check_linear(case, outputs)
            if check_grad_dtypes:
                further.check_dtypes(case, outputs)
            if check_undefined_grad:
                further.check_undefined(case)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of the gradients of `func(*inputs)` agree with differences; see `gradcheck`.

    The gradients are computed with `grad_outputs`, by default random ones, and differentiated with respect to the
    inputs and to `grad_outputs`.

    >>> import cygrad
    >>> x = cygrad.tensor([0.5, 2.0], dtype=cygrad.double, requires_grad=True)
    >>> cygrad.autograd.gradgradcheck(lambda x: (x ** 3).sum(), x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    case = jacobians.Case(func, inputs, eps)
    if grad_outputs is None:
        outputs = case.outputs()
        grad_outputs = tuple(_random_like(out, gen_non_contig_grad_outputs) for out in outputs)
    elif isinstance(grad_outputs, Tensor):
        grad_outputs = (grad_outputs,)
    grad_outputs = tuple(grad_outputs)
    n = len(grad_outputs)

    def gradients(*args):
        args, incoming = args[: len(args) - n], args[len(args) - n :]
        inputs = tuple(args[k] if args[k].requires_grad else args[k].requires_grad_() for k in case.positions)
        outputs = jacobians.Case(func, args, eps).outputs()
        found = grad(outputs, inputs, incoming, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        case.inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _random_like(out, scattered):
    """Return a random gradient for an output; with `scattered` one that is not contiguous in memory."""
    dtype = out.dtype if out.dtype.is_floating_point or out.dtype.is_complex else None
    if not scattered:
        return randn(out.shape, dtype=dtype, device=out.device, requires_grad=True)
    return randn((*out.shape, 2), dtype=dtype, device=out.device)[..., 0].detach().requires_grad_()


# -- argument checks --


def _check_inputs(inputs):
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        if x.dtype.name not in ("float64", "complex128"):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if is_dense(x) and any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )


def _check_outputs(outputs):
    if not all(map(is_dense, outputs)):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of "
            "fn for gradcheck."
        )


def _check_numbers(eps, atol, rtol, nondet_tol):
    """Raise for values that PyTorch's operations reject; NumPy's would accept them or raise different errors."""
    for operator, between, value in (("-", "for -:", eps), (">", "between instances of", nondet_tol)):
        if not isinstance(value, (float, int, np.number, Tensor)):
            what = "unsupported operand type(s)" if operator == "-" else "'>' not supported"
            raise TypeError(f"{what} {between} 'Tensor' and '{type(value).__name__}'")
    for name, place, value in (("rtol", 3, rtol), ("atol", 4, atol)):
        if not isinstance(value, (float, int, np.number)):
            raise messages.wrong_type("allclose", name, place, "float", value)
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")


def _check_no_gradient(case):
    """Check, if no output requires grad, that the outputs do not depend on the inputs."""
    outputs = case.all_outputs()
    for i, out in enumerate(outputs):
        if array_of(out).dtype.kind == "b":
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                f"`logical_xor()` operator instead.\n  output {i} is boolean, and booleans have no differences"
            )
    for (_, o), row in zip(case.parts(outputs), case.numeric(outputs), strict=True):
        for jacobian in row:
            if array_of(outputs[o]).dtype.kind in "fc" and np.any(jacobian != 0):  # integers may jump
                raise GradcheckError("Numerical gradient for function expected to be zero")


# -- comparison --


def _agrees(analytic, numeric, atol, rtol):
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.abs(analytic - numeric) <= atol + rtol * np.abs(numeric)))


class _Backward:
    """Derivatives by backward, each computed twice."""

    is_forward = False

    def __init__(self, case, nondet_tol):
        self.case, self.nondet_tol = case, nondet_tol

    def jacobians(self, o, part, rows=None):
        """Return the Jacobians of a part of output `o`, one per variable; or their combination by `rows`."""
        first, second = (jacobians.backward(self.case, o, part, rows) for _ in range(2))
        for a, b in zip(first, second, strict=True):
            if a.size and np.any(np.abs(a - b) > self.nondet_tol):
                raise reports.not_deterministic(self.case, _NOT_REENTRANT.format(self.nondet_tol), a, b)
        return first

    def combined(self, o, part, directions, rows):
        """Return, for each variable, the derivative along its direction of the outputs' combination by `rows`."""
        movables = self.case.movables
        return [
            float(np.real(np.sum(np.conj(direction) * movable.of(row))))
            for direction, movable, row in zip(directions, movables, self.jacobians(o, part, rows), strict=True)
        ]


class _Forward:
    """Derivatives by forward mode."""

    is_forward = True

    def __init__(self, case):
        self.pushed = jacobians.Pushed(case)
        self.jacobians = self.pushed.jacobians

    def combined(self, o, part, directions, rows):
        """Return, for each variable, the derivative along its direction of the outputs' combination by `rows`."""
        return self.pushed.combined(o, part, directions, rows)


def _compare(case, outputs, method, atol, rtol):
    """Compare every entry of every Jacobian."""
    numeric = case.numeric(outputs)
    for (part, o), row in zip(case.parts(outputs), numeric, strict=True):
        for i, (a, n) in enumerate(zip(method.jacobians(o, part), row, strict=True)):
            if not _agrees(a, n, atol, rtol):
                raise reports.mismatch(case, (o, part, i), a, n, (atol, rtol), method.is_forward)


def _compare_fast(case, outputs, method, atol, rtol):
    """Compare one random combination of the entries of each Jacobian."""
    rng = np.random.default_rng(0)
    directions = [case.direction(i, rng) for i in range(len(case.variables))]
    for part, o in case.parts(outputs):
        rows = rng.random(outputs[o].numel())
        for i, found in enumerate(method.combined(o, part, directions, rows)):
            expected = float(rows @ case.along(o, part, i, directions[i]))
            if not _agrees(found, expected, atol, rtol):
                slow = method.jacobians(o, part)
                numeric = case.numeric(outputs)[list(case.parts(outputs)).index((part, o))]
                where = (o, part, i)
                raise reports.mismatch(
                    case, where, slow[i], numeric[i], (atol, rtol), method.is_forward, (found, expected)
                )
