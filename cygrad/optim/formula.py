"""FormulaOptimizer: base of optimizers that only define the update of a single parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import array_of, arrays_for_update, memory_of
from cygrad._core.replay.numbers import numbers_of
from cygrad._kernels.optimizer_steps import (
    FORMULA_OPTIONS,
    any_sparse,
    counted_step,
    counts_on_gpu,
    formula_in_place,
    formula_step,
    keep_for_graphs,
    shared_numbers,
)
from cygrad.optim._state import as_real, count_on_gpu, is_half, state_dtype, widened
from cygrad.optim.optimizer import Optimizer, loss_of, recording

__all__ = ["FormulaOptimizer"]


class FormulaOptimizer(Optimizer):
    """An optimizer defined by the state of a parameter and an update formula.

    Subclasses define `_first_state` and `_change`. The formula is written once, with in-place
    operators: it runs on arrays, or with `differentiable` on tensors, recorded.

    >>> import cygrad
    >>> from cygrad.optim.formula import FormulaOptimizer
    >>> issubclass(cygrad.optim.RMSprop, FormulaOptimizer)
    True
    """

    _counts_in_tensors = True
    # Names of the elementwise state, and of numbers besides, if there is a form in C and for GPUs.
    _of_elements: ClassVar[tuple[str, ...] | None] = None
    _of_scalars: ClassVar[tuple[str, ...]] = ("step",)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.RMSprop([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> bool(w < 1)
        True
        """
        loss = loss_of(closure)
        rows: list[Any] = []
        counted: list[Any] = []
        if "capturable" in self.defaults:
            self._check_capture()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if any_sparse((memory_of(param.grad),)):
                    self._step_sparse(param, group)
                    continue
                state = self.state[param]
                if not state:
                    state.update(self._first_state(param, group))
                    if group.get("capturable") and param.is_cuda:
                        count_on_gpu(state, param)
                if group["differentiable"]:
                    with recording():
                        self._step_recorded(param, state, group)
                elif not self._goes_along(counted if group.get("capturable") else rows, param, state, group):
                    self._step_arrays(param, state, group)
        if rows:
            formula_step(self._owner().__name__, rows)
        if counted:
            counted_step(self._owner().__name__, counted)
        return loss

    def _step_sparse(self, param: Tensor, group: dict[str, Any]) -> None:
        """Update a parameter whose gradient is sparse."""
        raise RuntimeError(
            f"{self._owner().__name__} does not support sparse gradients\n"
            "  SGD, Adagrad and SparseAdam do; or make the gradient dense: leave sparse=False in the embedding"
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return the state before the first step; its `"step"` entry counts the steps."""
        raise NotImplementedError

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        """Update `p` and `state` in place, in step `t` (a GPU array if `capturable` on a GPU).

        `xp` is NumPy or cygrad and determines the kind of the other arguments: the parameter, its
        gradient (with `maximize` and `weight_decay` applied) and the state. `o` holds the group's options.
        """
        raise NotImplementedError

    def _owner(self) -> type:
        """Return the class that defines the formula, since a subclass may override it."""
        return next(owner for owner in type(self).__mro__ if "_change" in vars(owner))

    def _parts(self, state: dict[str, Any], group: dict[str, Any]) -> list[Any] | None:
        """Return the elementwise state for the form in C and the GPU's, or None if there is no such form."""
        names = vars(self._owner()).get("_of_elements")
        return None if names is None else [state[name] for name in names]

    def _goes_along(self, rows: list[Any], param: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> bool:
        """Add the update to `rows`, which are done together on a GPU; return False if that is impossible.

        Rows of groups that are `capturable` leave the numbers which all elements share to the GPU.
        """
        if not param.is_cuda or "_of_elements" not in vars(self._owner()) or param.grad is None:
            return False
        rate, is_counted = rate_of(group), group.get("capturable")
        scalars = [state[scalar] for scalar in self._of_scalars]
        if not (counts_on_gpu([memory_of(t) for t in scalars]) if is_counted else isinstance(rate, float)):
            return False
        p, *arrays = arrays_for_update([param, *state.values()])
        values = dict(zip(state, arrays))
        if is_counted:
            options = [option for name in FORMULA_OPTIONS[self._owner().__name__][1:] for option in flat(group[name])]
            flags = bool(group["maximize"]), bool(group.get("decoupled_weight_decay", False))
            own = [values[scalar] for scalar in self._of_scalars]
            rows.append((p, array_of(param.grad), self._parts(values, group), own, rate, options, *flags))
            return True
        numbers = shared_numbers(*self._arguments(values, group))
        rows.append((p, array_of(param.grad), self._parts(values, group), numbers))
        return True

    def _arguments(self, values: dict[str, Any], group: dict[str, Any]) -> tuple[Any, ...]:
        """Return what determines the numbers that all elements share: name, options, scalars of the state, flags."""
        name = self._owner().__name__
        options = numbers_of(group, *FORMULA_OPTIONS[name])
        scalars = [values[scalar] for scalar in self._of_scalars]
        return name, options, scalars, bool(group["maximize"]), bool(group.get("decoupled_weight_decay", False))

    def _step_arrays(self, param: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
        given = [*arrays_for_update([param, *state.values()]), array_of(param.grad)]
        keep_for_graphs(given)
        p, *arrays, grad = [as_real(a) for a in given]
        values = dict(zip(state, arrays))
        parts = self._parts(values, group)
        if parts is not None and formula_in_place(p, grad, parts, lambda: self._arguments(values, group)):
            return
        wide = [wide_array(a) for a in (p, grad, *arrays)]
        with np.errstate(all="ignore"):  # infinities and NaN pass silently, as in all ops
            self._advance(np, wide[0], wide[1], dict(zip(state, wide[2:])), {**group, "lr": rate_of(group)})
            for array, found in zip((p, *arrays), (wide[0], *wide[2:])):
                if found is not array:
                    array[...] = found.astype(array.dtype)

    def _step_recorded(self, param: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError(f"{type(self).__name__} supports complex parameters only if differentiable is False")
        for name, tensor in state.items():  # the graph keeps the previous step's tensors
            state[name] = tensor.clone()
        if not is_half(param):
            self._advance(cygrad, param, param.grad, state, group)
            return
        assert param.grad is not None
        wide = {name: widened(tensor) for name, tensor in state.items()}
        found = param.float()
        self._advance(cygrad, found, param.grad.float(), wide, group)
        param.copy_(found)
        for name, tensor in wide.items():
            state[name] = tensor.to(state[name].dtype)

    def _advance(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any]) -> None:
        steps = state["step"]
        steps += 1
        if o["maximize"]:
            g = -g
        decay = o.get("weight_decay", 0)
        if decay and o.get("decoupled_weight_decay", False):
            p *= 1 - o["lr"] * decay
        elif decay:
            g = g + decay * p
        on_gpu = not isinstance(steps, (np.ndarray, Tensor))
        self._change(xp, p, g, state, o, steps.astype("float64") if on_gpu else float(steps.item()))


def zeros(param: Tensor, *names: str) -> dict[str, Tensor]:
    """Return an initial state: a step counter, and zeros like the parameter under these names."""
    values = {name: cygrad.zeros_like(param.detach(), dtype=state_dtype(name, param)) for name in names}
    return {"step": cygrad.tensor(0.0, device="cpu"), **values}


def wide_array(array: Any) -> Any:
    """Convert an array of half precision to float32; return others as they are."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def flat(option: Any) -> tuple[Any, ...]:
    """Return the numbers of an option: itself, or the parts of a tuple."""
    return tuple(option) if isinstance(option, (tuple, list)) else (option,)


def rate_of(group: dict[str, Any]) -> Any:
    """Return the learning rate: a number, or an array if it is a GPU tensor, which a graph rereads on each replay."""
    lr = group["lr"]
    return array_of(lr).reshape(()) if isinstance(lr, Tensor) and lr.is_cuda else float(lr)
