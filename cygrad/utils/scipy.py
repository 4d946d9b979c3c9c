"""Minimization with SciPy's optimizers, using exact gradients and Hessians."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.nn import Module

__all__ = ["minimize"]

# Derivatives that each method needs; all others take a gradient. trust-constr also takes products.
_VALUE_ALONE = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_MATRIX = {"dogleg", "trust-exact"}


def minimize(
    fun: Callable[..., Tensor],
    x0: Tensor | Sequence[Tensor] | Module,
    method: str | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimize `fun` over `x0` in place with `scipy.optimize.minimize`; return SciPy's result.

    x0: a tensor, tensors, or a module, whose parameters that require grad are optimized; any real floating-point dtype.
    fun: called with the tensor, the tensors, or the module; returns a tensor of one element.
    method: any of SciPy's, by default SciPy's choice. Methods that use gradients, Hessian-vector products
    (`"newton-cg"`, `"trust-ncg"`, `"trust-krylov"`, `"trust-constr"`) or the full Hessian (`"trust-exact"`, `"dogleg"`)
    get exact ones.
    bounds: as for SciPy, for all elements in order, or one pair for all. constraints: SciPy's; their functions are
    called like `fun`, return tensors, and need no `jac`. tol, callback, options: passed through.

    Everything is computed in float64: `fun` receives float64 tensors, and a module is converted to float64 during the
    call, including its buffers (so its data should be float64 too). The minimizer is finally written to `x0`, in its
    own dtype; after an error `x0` is unchanged. `x` in the result and in callbacks holds the elements of all tensors in
    order.

    Raises TypeError if there are no real floating-point parameters or `fun` does not return such a tensor,
    ImportError without SciPy.

    >>> import cygrad
    >>> from cygrad.utils.scipy import minimize
    >>> x = cygrad.tensor([3.0, -1.0])
    >>> result = minimize(lambda x: ((x - 1) ** 2).sum(), x, "newton-cg")
    >>> x, result.success
    (tensor([1., 1.]), True)
    """
    try:
        from scipy import optimize  # optional
    except ImportError:
        raise ImportError(
            "cygrad.utils.scipy.minimize needs SciPy, which is not installed\n  pip install scipy"
        ) from None
    kind = "" if method is None else method.lower() if isinstance(method, str) else "custom"
    with _in_double(x0) as (arguments, leaves):
        at = _Position(leaves)
        objective = _Objective(fun, arguments, at)
        found = optimize.minimize(
            objective.value if kind in _VALUE_ALONE else objective.value_and_gradient,
            at.x.copy(),
            method=method,
            jac=None if kind in _VALUE_ALONE else True,
            hess=objective.hessian if kind in _MATRIX else None,
            hessp=objective.product if kind in _PRODUCTS else None,
            bounds=_for_all(bounds, at.x.size),
            constraints=_with_tensors(constraints, arguments, at, optimize),
            tol=tol,
            callback=callback,
            options=options,
        )
        at.move(found.x)
    return found


# -- Parameters --


@contextmanager
def _in_double(x0: Any) -> Iterator[tuple[tuple[Any, ...], list[Tensor]]]:
    """Yield the arguments of `fun` and their float64 leaves; write the values back unless an error occurs."""
    if isinstance(x0, Module):
        leaves: list[Tensor] = [p for p in x0.parameters() if p.requires_grad]
        others: list[Tensor] = [p for p in x0.parameters() if not p.requires_grad]
        buffers: list[Tensor] = [b for b in x0.buffers() if b.is_floating_point()]
        tensors = [*leaves, *others, *buffers]
    else:
        tensors = leaves = [x0] if isinstance(x0, Tensor) else list(x0)
    if not leaves or not all(isinstance(t, Tensor) and t.is_floating_point() for t in leaves):
        raise TypeError("minimize needs a real floating-point tensor, a sequence of them, or a module that has them")
    if not isinstance(x0, Module):
        doubles = [t.detach().double().clone().requires_grad_() for t in leaves]
        yield tuple(doubles), doubles
        with cygrad.no_grad():
            for tensor, double in zip(leaves, doubles):
                tensor.copy_(double)
        return
    memory = [tensor.data for tensor in tensors]
    try:
        for tensor in tensors:
            tensor.data = tensor.data.double().clone()
        yield (x0,), leaves
        for own, tensor in zip(memory, tensors):
            own.copy_(tensor.data)
    finally:
        for own, tensor in zip(memory, tensors):
            tensor.data = own


class _Position:
    """The values of the leaves, as one vector `x`."""

    def __init__(self, leaves: list[Tensor]) -> None:
        self.leaves = leaves
        self.x = _joined([leaf.detach().numpy() for leaf in leaves])

    def move(self, x: np.ndarray) -> None:
        """Set the leaves to `x`."""
        if np.array_equal(x, self.x):
            return
        self.x = np.array(x, np.float64)
        with cygrad.no_grad():
            for leaf, part in zip(self.leaves, self.parts(x)):
                leaf.copy_(part)

    def parts(self, x: np.ndarray) -> list[Tensor]:
        """Split a vector into tensors of the leaves' shapes."""
        ends = np.cumsum([leaf.numel() for leaf in self.leaves])
        pieces = np.split(np.array(x, np.float64), ends[:-1])
        return [cygrad.from_numpy(piece.reshape(leaf.shape)) for piece, leaf in zip(pieces, self.leaves)]

    def gradient(self, y: Tensor, with_graph: bool) -> tuple[Tensor, ...]:
        """Return the gradient of a scalar; zeros for leaves it does not depend on."""
        if not y.requires_grad:
            return tuple(map(cygrad.zeros_like, self.leaves))
        return cygrad.autograd.grad(
            y, self.leaves, create_graph=with_graph, retain_graph=True, allow_unused=True, materialize_grads=True
        )

    def jacobian(self, y: Tensor) -> np.ndarray:
        """Return the Jacobian, one row per element of y."""
        rows = [self.gradient(element, False) for element in y.reshape(-1)]
        return np.stack([_joined([g.numpy() for g in row]) for row in rows])


def _joined(arrays: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel() for array in arrays])


# -- Callbacks for SciPy --


class _Objective:
    """Value, gradient and curvature at the points that SciPy requests."""

    def __init__(self, fun: Callable[..., Tensor], arguments: tuple[Any, ...], at: _Position) -> None:
        self.fun, self.arguments, self.at = fun, arguments, at
        self.gradient: tuple[Tensor, ...] = ()  # for the last product, recorded
        self.x: np.ndarray | None = None  # the point of `gradient`

    def _call(self, x: np.ndarray) -> Tensor:
        self.at.move(x)
        with cygrad.enable_grad():
            y = self.fun(*self.arguments)
        if not isinstance(y, Tensor) or y.numel() != 1 or not y.is_floating_point():
            found = f"a tensor of shape {tuple(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise TypeError(f"fun must return a real tensor of one element, computed from its arguments, not {found}")
        return y

    def value(self, x: np.ndarray) -> float:
        """Return f(x)."""
        return self._call(x).item()

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f(x) and its gradient."""
        y = self._call(x)
        return y.item(), _joined([g.numpy() for g in self.at.gradient(y, False)])

    def product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the Hessian at x times v: the gradient of the dot product of the recorded gradient and v."""
        self.at.move(x)
        if self.x is not self.at.x:  # a move modifies the graph's saved tensors, which invalidates it
            self.gradient = self.at.gradient(self._call(x), True)
            self.x = self.at.x
        along = sum((g * part).sum() for g, part in zip(self.gradient, self.at.parts(v)))
        assert isinstance(along, Tensor)
        return _joined([g.numpy() for g in self.at.gradient(along, False)])

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the full Hessian, column by column."""
        return np.stack([self.product(x, unit) for unit in np.eye(x.size)])


def _for_all(bounds: Any, size: int) -> Any:
    """Expand a single pair of numbers to bounds for every element; return other bounds unchanged."""
    is_pair = (
        isinstance(bounds, (tuple, list)) and len(bounds) == 2 and all(b is None or np.ndim(b) == 0 for b in bounds)
    )
    return [tuple(bounds)] * size if is_pair else bounds


def _with_tensors(constraints: Any, arguments: tuple[Any, ...], at: _Position, optimize: Any) -> Any:
    """Convert constraints on tensors to SciPy's form, with exact Jacobians."""

    def functions(fun: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
        def call(x: np.ndarray) -> Tensor:
            at.move(x)
            with cygrad.enable_grad():
                return fun(*arguments).reshape(-1)

        return lambda x, *_: call(x).detach().numpy(), lambda x, *_: at.jacobian(call(x))

    def one(constraint: Any) -> Any:
        if isinstance(constraint, dict):
            values, jacobian = functions(constraint["fun"])
            return {**constraint, "fun": values, "jac": jacobian}
        if isinstance(constraint, optimize.NonlinearConstraint):
            values, jacobian = functions(constraint.fun)
            return optimize.NonlinearConstraint(
                values, constraint.lb, constraint.ub, jacobian, constraint.hess, constraint.keep_feasible
            )
        return constraint

    return [one(c) for c in constraints] if isinstance(constraints, (list, tuple)) else one(constraints)
