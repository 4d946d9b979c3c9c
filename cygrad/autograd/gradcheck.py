"""`gradcheck` compares gradients with finite differences; `gradgradcheck` does the same for second derivatives.

Derivatives with respect to a complex number z = x + iy are df/dx + i df/dy, as in PyTorch; the real and the imaginary
part of a complex result are checked one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.engine.backward import grad
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import strided
from cygrad._ops.random.random import randn, randn_like
from cygrad.autograd import _gradcheck_report as reports
from cygrad.autograd import _jacobians as jacobians
from cygrad.autograd._gradcheck_report import GradcheckError
from cygrad.autograd._jacobians import values_of

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}."
)
_UNDEFINED = (
    "Expected backward function to handle undefined output grads. Please look at 'Notes about undefined output "
    "gradients' in 'tools/autograd/derivatives.yaml'"
)
_NOT_ZERO = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at "
    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
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
    compares one random combination of all entries. Sparse inputs need `masked`: only the values that they store are
    changed and compared.

    With `raise_exception`, a disagreement raises a GradcheckError, which reports the worst entry, its error at other
    steps, and a diagnosis: a wrong formula, a kink, too low a precision, or a nondeterministic function.

    >>> import cygrad
    >>> x = cygrad.tensor([0.5, 2.0], dtype=cygrad.double, requires_grad=True)
    >>> cygrad.autograd.gradcheck(lambda x: (x ** 3).sum(), x)
    True
    """
    options = {name: value for name, value in locals().items() if name not in ("func", "inputs", "masked")}
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    case = jacobians.Case(func, inputs, eps)
    if any(isinstance(x, Tensor) and x.layout is not strided for x in case.inputs):
        return _check_stored_values(func, case.inputs, masked, options)
    _check_inputs(case.inputs)
    _check_numbers(eps, atol, rtol, nondet_tol)
    try:
        outputs = case.outputs()
        if not outputs:
            _check_no_gradient(case)
            return True
        compare = _compare_fast if fast_mode else _compare
        if check_backward_ad:
            compare(case, outputs, jacobians.backward, atol, rtol, nondet_tol)
        if check_forward_ad:
            compare(case, outputs, jacobians.forward, atol, rtol, nondet_tol)
            if check_batched_forward_grad:
                _check_batched_forward(case, outputs)
        if check_backward_ad:
            _check_linear(case, outputs)
            if check_grad_dtypes:
                _check_dtypes(case, outputs)
            if check_undefined_grad:
                _check_undefined(case)
            if check_batched_grad:
                _check_batched(case, outputs)
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
        outputs = jacobians.Case(func, args, eps).outputs()
        inputs = tuple(x for x in args if isinstance(x, Tensor) and x.requires_grad)
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


def _check_stored_values(func, inputs, masked, options):
    from cygrad.sparse import as_sparse_gradcheck  # which few programs need, and which imports the package

    if not masked:
        raise ValueError(
            "gradcheck expects all tensor inputs are dense when masked is set to False.\n"
            "  with masked=True it changes the values that sparse tensors store, and no other elements"
        )
    return as_sparse_gradcheck(gradcheck)(func, inputs, **options)


def _check_inputs(inputs):
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        if array_of(x).dtype.name not in ("float64", "complex128"):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
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


def _compare(case, outputs, method, atol, rtol, nondet_tol):
    """Compare every entry of every Jacobian."""
    numeric = case.numeric(outputs)
    for (part, o), row in zip(case.parts(outputs), numeric, strict=True):
        analytic = _deterministic(case, functools.partial(method, case, o, part), nondet_tol)
        for i, (a, n) in enumerate(zip(analytic, row, strict=True)):
            if not _agrees(a, n, atol, rtol):
                raise reports.mismatch(case, (o, part, i), a, n, (atol, rtol), method is jacobians.forward)


def _compare_fast(case, outputs, method, atol, rtol, nondet_tol):
    """Compare one random combination of the entries of each Jacobian."""
    rng = np.random.default_rng(0)
    for part, o in case.parts(outputs):
        size = array_of(outputs[o]).size
        rows = rng.random(size)
        analytic = _deterministic(case, functools.partial(method, case, o, part, rows), nondet_tol)
        for i, a in enumerate(analytic):
            columns = case.direction(i, rng)
            found = float(np.real(np.sum(np.conj(columns) * a.reshape(columns.shape))))
            expected = float(rows @ case.along(o, part, i, columns))
            if not _agrees(found, expected, atol, rtol):
                slow = functools.partial(method, case, o, part)()
                numeric = case.numeric(outputs)[list(case.parts(outputs)).index((part, o))]
                where, is_forward = (o, part, i), method is jacobians.forward
                raise reports.mismatch(case, where, slow[i], numeric[i], (atol, rtol), is_forward, (found, expected))


def _deterministic(case, compute, nondet_tol):
    """Return the Jacobians from `compute()`, checking that two calls agree."""
    first, second = compute(), compute()
    for a, b in zip(first, second, strict=True):
        if a.size and np.any(np.abs(a - b) > nondet_tol):
            raise reports.not_deterministic(case, _NOT_REENTRANT.format(nondet_tol), a, b)
    return first


# -- further checks of backward --


def _check_linear(case, outputs):
    """Check that gradients of zero are zero."""
    incoming = [out.detach() * 0 for out in outputs]
    for i, g in enumerate(grad(outputs, case.variables, incoming, retain_graph=True, allow_unused=True)):
        if g is not None and np.any(values_of(g) != 0):
            raise GradcheckError(
                "backward not multiplied by grad_output\n"
                f"  with incoming gradients of zero, the gradient of input {i} is not zero: backward adds something, "
                "or ignores the incoming gradient"
            )


def _check_dtypes(case, outputs):
    """Check that gradients have the dtype of their tensors."""
    incoming = [randn_like(out) for out in outputs]
    grads = grad(outputs, case.variables, incoming, retain_graph=True, allow_unused=True)
    for x, g in zip(case.variables, grads, strict=True):
        if g is not None and g.dtype != x.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch\n  {g.dtype} for a tensor of {x.dtype}")


def _check_undefined(case):
    """Check that missing gradients count as zero: for all outputs at once, and for each one."""
    outputs = case.outputs()
    missing = [range(len(outputs))] + ([[i] for i in range(len(outputs))] if len(outputs) > 1 else [])
    for chosen in missing:
        outputs = case.outputs()
        stopped = [jacobians.Stop.apply(out) if i in chosen else out for i, out in enumerate(outputs)]
        incoming = [out.detach() * 0 for out in outputs]
        try:
            found = grad(stopped, case.variables, incoming, allow_unused=True)
        except RuntimeError as error:
            text = f"{_UNDEFINED}\n  backward without a gradient for outputs {list(chosen)}: {error}"
            raise GradcheckError(text) from error
        if any(g is not None and np.any(values_of(g) != 0) for g in found):
            raise GradcheckError(f"{_NOT_ZERO}\n  it is not zero without a gradient for outputs {list(chosen)}")


def _check_batched_forward(case, outputs):
    """Check that `vmap` over the tangents of an input gives the same results as separate tangents."""
    from cygrad.func import jvp, vmap  # deferred: built on `autograd`

    for i, (x, position) in enumerate(zip(case.variables, case.positions, strict=True)):

        def along(tangent, x=x, position=position):
            def of_one(value):
                inputs = [*case.inputs[:position], value, *case.inputs[position + 1 :]]
                return jacobians.Case(case.func, inputs, case.eps).outputs()

            return jvp(of_one, (x.detach().requires_grad_(),), (tangent,))[1]

        rows = randn((2, *x.shape), dtype=x.dtype, device=x.device)
        together = vmap(along)(rows)
        one_by_one = [along(row) for row in rows]
        for o, at_once in enumerate(together):
            if not all(
                np.allclose(values_of(a), values_of(row[o])) for a, row in zip(at_once, one_by_one, strict=True)
            ):
                raise GradcheckError(
                    "gradcheck or gradgradcheck failed while testing batched forward-mode gradient computation of "
                    f"input {i}"
                )


def _check_batched(case, outputs):
    """Check that several incoming gradients at once give the same results as separate ones."""
    for out in outputs:
        rows = randn((2, *out.shape), dtype=out.dtype, device=out.device)
        keep = {"retain_graph": True, "allow_unused": True}
        at_once = grad(out, case.variables, rows, is_grads_batched=True, **keep)
        one_by_one = [grad(out, case.variables, row, **keep) for row in rows]
        for i, together in enumerate(at_once):
            alone = [row[i] for row in one_by_one]
            if together is not None and not all(
                np.allclose(values_of(a), values_of(b)) for a, b in zip(together, alone, strict=True)
            ):
                raise GradcheckError(
                    f"gradcheck or gradgradcheck failed while testing batched gradient computation of input {i}"
                )
