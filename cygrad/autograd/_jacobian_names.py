"""Names for Jacobians that PyTorch once had beside `gradcheck`, some of them deprecated there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from cygrad._core.engine.backward import grad
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.device.cupy_library import beside
from cygrad.autograd import _jacobians as jacobians

_DEPRECATED = (
    "`{}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
    "in a future version of PyTorch."
)


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """Yield the tensors in nested lists and tuples, or only those that require grad."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, Iterable) and not isinstance(x, str):
        for each in x:
            yield from _iter_tensors(each, only_requiring_grad)


def _check_real(outputs, function):
    if any(out.is_complex() for out in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {function} no longer supports functions that return complex outputs."
        )


def _check_old_call(function, grad_out):
    warn(_DEPRECATED.format(function), FutureWarning)
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {function} no longer supports values of grad_out != 1.0.\n  it is {grad_out}"
        )


def _floating(func):
    """Return the function with only those results that have derivatives, without history."""

    def results(*inputs):
        found = func(*inputs)
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        return tuple(out.detach() for out in found if out.is_floating_point() or out.is_complex())

    return results


def _get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """Return Jacobians by central differences: for each tensor that requires grad a tuple with one per output.

    A Jacobian has a row for each element of the tensor. The tensors are those in `target`, by default `inputs`; they
    are changed and restored. `outputs` may hold the results of `fn(*inputs)`. Raises ValueError for complex outputs
    unless `is_forward_ad` is set.
    """
    variables = list(_iter_tensors(inputs if target is None else target, True))
    case = jacobians.Case(_floating(fn), inputs, eps, masked=True, variables=variables)
    results = case.all_outputs() if outputs is None else _floating(lambda: outputs)()
    if not is_forward_ad:
        _check_real(results, "get_numerical_jacobian")
    return [_by_differences(case, i, results) for i in range(len(variables))]


def _by_differences(case, i, outputs):
    """Return the Jacobians of all outputs with respect to variable `i`."""
    x = case.variables[i]
    found = [
        np.zeros((x.numel(), out.numel()), np.complex128 if x.is_complex() or out.is_complex() else np.float64)
        for out in outputs
    ]
    for column in case.movables[i].columns():
        along = case.difference(i, column, case.eps)
        across = case.difference(i, column, 1j * case.eps) if x.is_complex() else None
        for o, jacobian in enumerate(found):
            jacobian[column] = along[o].reshape(-1)
            if across is not None:
                jacobian[column] += 1j * across[o].reshape(-1)
    return tuple(_tensor_like(x, jacobian) for jacobian in found)


def _tensor_like(x, jacobian):
    """Return a Jacobian as a tensor in the precision, and on the device, of a variable."""
    found = tensor_of(beside(jacobian, jacobians.array_of(x.detach().new_zeros(0))))
    return found.to(x.dtype if x.is_complex() or not found.is_complex() else x.dtype.to_complex())


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """Return the Jacobians of the first output of `fn(inputs)`, which takes its inputs as one tuple, by differences.

    Deprecated, as in PyTorch: use `gradcheck`, or `func.jacrev`. Raises ValueError if `grad_out` is not 1.

    >>> import cygrad, warnings
    >>> from cygrad.autograd.gradcheck import get_numerical_jacobian
    >>> x = cygrad.ones(2, dtype=cygrad.double, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     get_numerical_jacobian(lambda inputs: 2 * inputs[0], (x,))[0].round().tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    _check_old_call("get_numerical_jacobian", grad_out)
    found = _get_numerical_jacobian(lambda *inputs: fn(inputs), inputs, None, target, eps)
    return tuple(of_outputs[0] for of_outputs in found)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Return the Jacobians of `output` by backward, with a row for each element of an input, and three checks.

    These are: whether two passes agree up to `nondet_tol`, and whether the gradients have the sizes and the dtypes of
    their inputs. Deprecated, as in PyTorch: use `gradcheck`, or `func.jacrev`. Raises ValueError if `output` is complex
    or `grad_out` is not 1.

    >>> import cygrad, warnings
    >>> from cygrad.autograd.gradcheck import get_analytical_jacobian
    >>> x = cygrad.ones(2, dtype=cygrad.double, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     get_analytical_jacobian((x,), 2 * x)[0][0].tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    _check_old_call("get_analytical_jacobian", grad_out)
    _check_real((output,), "get_analytical_jacobian")
    variables = list(_iter_tensors(inputs, True))
    case = jacobians.Case(None, (), 0.0, variables=variables)
    first, second = (jacobians.rows_of(case, output, "") for _ in range(2))
    is_same = all(not a.size or np.abs(a - b).max() <= nondet_tol for a, b in zip(first, second, strict=True))
    seed = output.detach() * 0
    grads = grad(output, variables, seed, retain_graph=True, allow_unused=True)
    pairs = [(g, x) for g, x in zip(grads, variables, strict=True) if g is not None]
    sizes_fit = all(g.shape == x.shape for g, x in pairs)
    dtypes_fit = all(g.dtype == x.dtype for g, x in pairs)
    found = tuple(_tensor_like(x, jacobian.T) for x, jacobian in zip(variables, first, strict=True))
    return found, is_same, sizes_fit, dtypes_fit
