"""L-BFGS: quasi-Newton steps based on recent changes of the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.optim._checks import check_learning_rate
from cygrad.optim._state import widened
from cygrad.optim.optimizer import Optimizer

__all__ = ["LBFGS"]

# Parameters of the strong Wolfe conditions, and the minimum length of the search interval.
_DECREASE, _CURVATURE, _SHORTEST = 1e-4, 0.9, 1e-9


class LBFGS(Optimizer):
    """Quasi-Newton steps with an inverse Hessian estimated from the last `history_size` steps.

    With g the gradient, and s and y the changes of the parameters and of g in a past step, H starts as the
    identity times (s^T y) / (y^T y) of the newest pair, and each pair updates it, the oldest first:

        r = 1 / (y^T s)
        H = (1 - r s y^T) H (1 - r y s^T) + r s s^T
        parameters -= lr * H g

    `step(closure)` performs up to `max_iter` iterations and `max_eval` evaluations of the closure,
    which clears the gradients, computes the loss and calls `backward`. It stops early if no
    element of the gradient exceeds `tolerance_grad`, or if steps or changes of the loss are within
    `tolerance_change`. Step lengths are `lr`, or with `line_search_fn="strong_wolfe"` satisfy the
    strong Wolfe conditions.

    See J. Nocedal and S. Wright, "Numerical Optimization", algorithms 7.4, 3.5 and 3.6. A step
    with a non-finite loss is treated as too long.

    Raises `ValueError` for a negative `lr` and for more than one parameter group.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 2) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(26., grad_fn=<SumBackward0>)
    >>> w
    tensor([2.0000, 2.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_learning_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Iterate, and return the initial loss.

        `closure` recomputes the loss and its gradients, and returns the loss.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 3) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure)
        tensor(4., grad_fn=<SumBackward0>)
        >>> w.detach()
        tensor([3.])
        """
        with cygrad.no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        o, state = self.param_groups[0], self.state[self._params[0]]
        search = o["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        with cygrad.enable_grad():
            first_loss = closure()
        loss, grad = _number(first_loss), self._flat_grad()
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        evaluations = 1
        if _largest(grad) <= o["tolerance_grad"]:
            return first_loss
        for i in range(1, o["max_iter"] + 1):
            state["n_iter"] += 1
            _find_direction(state, grad, o["history_size"])
            direction = state["d"]
            length, before = float(o["lr"]), loss
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(grad.abs().sum()))
            state.update(prev_flat_grad=grad.clone(), prev_loss=loss, t=length)
            slope = float(grad.dot(direction))
            if slope > -o["tolerance_change"]:
                break
            done = 0
            if search is not None:
                line = _Line(self, closure, direction, slope, loss, grad)
                length, loss, grad = line.search(length, o["max_eval"] - evaluations)
                done = line.evaluations
            else:
                self._move(length, direction)
                if i != o["max_iter"]:
                    loss, grad = self._evaluate(closure)
                    done = 1
            state["t"] = length
            state["func_evals"] += done
            evaluations += done
            if (
                evaluations >= o["max_eval"]
                or _largest(grad) <= o["tolerance_grad"]
                or _largest(direction) * length <= o["tolerance_change"]
                or (done and abs(loss - before) < o["tolerance_change"])
            ):
                break
        return first_loss

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[float, Tensor]:
        with cygrad.enable_grad():
            loss = _number(closure())
        return loss, self._flat_grad()

    def _flat_grad(self) -> Tensor:
        """Concatenate the gradients of all parameters, with zeros where there are none."""
        grads = [cygrad.zeros_like(p) if p.grad is None else p.grad.to_dense() for p in self._params]
        return cygrad.cat([widened(_as_real(g).reshape(-1)) for g in grads])

    def _move(self, length: float, direction: Tensor) -> None:
        """Add `length` times the direction to the parameters."""
        start = 0
        for param in self._params:
            real = _as_real(param)
            real.add_(length * direction[start : start + real.numel()].reshape(real.shape))
            start += real.numel()


def _number(loss: Any) -> float:
    return float(loss.item() if isinstance(loss, Tensor) else loss)


def _as_real(tensor: Tensor) -> Tensor:
    return cygrad.view_as_real(tensor) if tensor.is_complex() else tensor


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().max())


def _find_direction(state: dict[str, Any], grad: Tensor, history: int) -> None:
    """Store this iteration's direction in `state["d"]`, computed from recent changes (algorithm 7.4)."""
    if state["n_iter"] == 1:
        state.update(d=-grad, old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return
    changes, steps, factors = state["old_dirs"], state["old_stps"], state["ro"]
    change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(step)
    if float(curvature) > 1e-10:
        if len(changes) == history:
            for oldest in (changes, steps, factors):
                oldest.pop(0)
        changes.append(change)
        steps.append(step)
        factors.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change)
    direction = -grad
    weights: list[Tensor] = []
    for change, step, factor in reversed(list(zip(changes, steps, factors, strict=True))):
        weights.append(step.dot(direction) * factor)
        direction = direction - weights[-1] * change
    direction = direction * state["H_diag"]
    for change, step, factor, weight in zip(changes, steps, factors, reversed(weights), strict=True):
        direction = direction + step * (weight - change.dot(direction) * factor)
    state["d"] = direction
    state["al"] = [*reversed(weights), *[None] * (history - len(weights))]  # as PyTorch keeps them


_Point = tuple[float, float, float, Tensor]  # a point on the line: length, loss, slope, gradient


class _Line:
    """The loss along a direction."""

    def __init__(
        self, optimizer: LBFGS, closure: Callable[..., Any], direction: Tensor, slope: float, loss: float, grad: Tensor
    ) -> None:
        self.optimizer, self.closure, self.direction = optimizer, closure, direction
        self.start = (0.0, loss, slope, grad)
        self.origin = [p.clone() for p in optimizer._params]
        self.evaluations = 0

    def _go_to(self, length: float) -> None:
        for param, origin in zip(self.optimizer._params, self.origin, strict=True):
            param.copy_(origin)
        self.optimizer._move(length, self.direction)

    def _point(self, length: float) -> _Point:
        self._go_to(length)
        loss, grad = self.optimizer._evaluate(self.closure)
        self.evaluations += 1
        return length, loss, float(grad.dot(self.direction)), grad

    def search(self, length: float, trials: int) -> tuple[float, float, Tensor]:
        """Move to a length that satisfies the conditions, or the best one after `trials` trials; return that point."""
        ends = self._bracket(length, trials)
        low, high = sorted(ends, key=lambda point: point[1] if math.isfinite(point[1]) else math.inf)
        if low is not high:
            low = self._narrowed(low, high, trials)
        self._go_to(low[0])
        return low[0], low[1], low[3]

    def _bracket(self, length: float, trials: int) -> tuple[_Point, _Point]:
        """Return two lengths that bracket one satisfying the conditions, or a satisfying one twice."""
        before, trial = self.start, self._point(length)
        while self.evaluations <= trials:
            if not self._decreases(trial) or (self.evaluations > 2 and trial[1] >= before[1]):
                return before, trial
            if abs(trial[2]) <= -_CURVATURE * self.start[2]:
                return trial, trial
            if trial[2] >= 0:
                return before, trial
            length = _between(before, trial, trial[0] + 0.01 * (trial[0] - before[0]), trial[0] * 10)
            before, trial = trial, self._point(length)
        return self.start, trial

    def _narrowed(self, low: _Point, high: _Point, trials: int) -> _Point:
        """Return the best point found while shrinking the interval between the two; `low` is the better one."""
        was_near_an_end = False
        while self.evaluations <= trials and abs(high[0] - low[0]) * _largest(self.direction) >= _SHORTEST:
            first, last = sorted((low[0], high[0]))
            margin = 0.1 * (last - first)
            length = _between(low, high, first, last)
            is_near_an_end = min(last - length, length - first) < margin
            if is_near_an_end and (was_near_an_end or not first < length < last):
                length = last - margin if last - length < length - first else first + margin
                is_near_an_end = False
            was_near_an_end = is_near_an_end
            trial = self._point(length)
            if not self._decreases(trial) or trial[1] >= low[1]:
                low, high = (trial, low) if trial[1] < low[1] else (low, trial)
                continue
            if abs(trial[2]) <= -_CURVATURE * self.start[2]:
                return trial
            if trial[2] * (high[0] - low[0]) >= 0:
                high = low
            low = trial
        return low

    def _decreases(self, trial: _Point) -> bool:
        """Whether the loss there is finite and has decreased sufficiently."""
        return math.isfinite(trial[1]) and trial[1] <= self.start[1] + _DECREASE * trial[0] * self.start[2]


def _between(a: _Point, b: _Point, least: float, most: float) -> float:
    """Return the minimizer of the cubic through both points, within bounds, or the midpoint if it has none."""
    (x, fx, dx, _), (y, fy, dy, _) = sorted((a, b), key=lambda point: point[0])
    mean = dx + dy - 3 * (fx - fy) / (x - y)
    square = mean * mean - dx * dy
    if not (square >= 0 and math.isfinite(square)):
        return (least + most) / 2
    root = math.sqrt(square)
    below = dy - dx + 2 * root
    place = y - (y - x) * (dy + root - mean) / below if below else math.nan
    return min(max(place, least), most) if math.isfinite(place) else (least + most) / 2
