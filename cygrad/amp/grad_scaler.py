"""GradScaler: scales the loss so that small gradients do not underflow in float16."""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from enum import Enum
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, arrays_for_update, tensor_of
from cygrad._core.types.device import device as device_of
from cygrad._kernels.gpu.optim import grad_scaling, optim

__all__ = ["GradScaler", "OptState"]

_USED_SCALE = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
_HOPELESS = 2.0**-24  # no float16 gradient needs a smaller scale


class OptState(Enum):
    """What a scaler has done for an optimizer since the last `update`.

    >>> from cygrad.amp.grad_scaler import OptState
    >>> [state.name for state in OptState]
    ['READY', 'UNSCALED', 'STEPPED']
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "nonfinite": None}


class GradScaler:
    """Scales the loss, unscales the gradients, and skips steps whose gradients are infinite or NaN.

    Each iteration: `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, `scaler.update()`. If a gradient is not
    finite, the step is skipped and the scale multiplied by `backoff_factor`; after `growth_interval` successful steps
    it is multiplied by `growth_factor`. To clip gradients, call `scaler.unscale_(optimizer)` first.

    On a GPU there is no synchronization, and everything can be captured in a graph, with SGD, and with Adam if it is
    `capturable`; other optimizers synchronize once per step.

    With `enabled=False` everything is passed through, and `step` is `optimizer.step`. Calls in the wrong order raise
    errors that state which call came when.

    >>> import cygrad
    >>> w = cygrad.nn.Parameter(cygrad.ones(1))
    >>> optimizer, scaler = cygrad.optim.SGD([w], lr=0.5), cygrad.amp.GradScaler("cpu")
    >>> scaler.scale(w * 2).backward()
    >>> _ = scaler.step(optimizer)
    >>> scaler.update()
    >>> w, scaler.get_scale()
    (Parameter containing:
    tensor([0.], requires_grad=True), 65536.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device_of(device).type
        self._enabled = enabled
        if enabled and self._device == "cuda" and not cygrad.cuda.is_available():
            warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.\n"
                'cygrad runs on the CPU: use GradScaler("cpu").'
            )
            self._enabled = False
        if not self._enabled:
            return
        if not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None  # a tensor after the first call of `scale`
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker: Any = 0  # steps since the scale changed or a gradient was not finite
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    # Iteration

    def scale(self, outputs: Any) -> Any:
        """Return the loss, or the losses in nested lists and tuples, times the scale.

        >>> import cygrad
        >>> scaler = cygrad.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(cygrad.tensor(0.5))
        tensor(4.)
        """
        if not self._enabled:
            return outputs
        return self._scaled(outputs)

    def _scaled(self, outputs: Any) -> Any:
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = cygrad.full((), float(self._init_scale), dtype=cygrad.float32, device=outputs.device)
            return outputs * (self._scale if self._scale.is_cpu else self._scale.to(outputs.device))
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self._scaled(each) for each in outputs])
        if hasattr(outputs, "__iter__"):
            return map(self._scaled, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, before its `step`.

        Raises `RuntimeError` when called twice in one iteration, or after `step`.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> scaler = cygrad.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(w.sum()).backward()
        >>> scaler.unscale_(cygrad.optim.SGD([w], lr=0.5))
        >>> w.grad
        tensor([1.])
        """
        if not self._enabled:
            return
        scale = self._check_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] == OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] == OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype == cygrad.float16 for grad in grads):
            raise ValueError(
                "Attempting to unscale FP16 gradients.\n"
                "Keep the parameters in float32, and run the forward pass in cygrad.autocast."
            )
        state["stage"] = OptState.UNSCALED
        if scale.is_cuda and grads and all(grad.device == scale.device for grad in grads):
            state["nonfinite"] = tensor_of(grad_scaling.unscale(arrays_for_update(grads), array_of(scale)))
            return
        from cygrad._core.replay.decisions import decide  # few programs need it

        finite = []
        with cygrad.no_grad():
            factor = scale.double().reciprocal()
            for grad in grads:
                grad.mul_(factor)
                finite.append((grad._values() if grad.is_sparse else grad).isfinite().all())
            state["nonfinite"] = not decide(cygrad.stack(finite).all()) if grads else None

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `optimizer.step(*args, **kwargs)` unless a gradient is infinite or NaN; unscale first if necessary.

        Returns the result of the step, or None if it is skipped.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.SGD([w], lr=0.5)
        >>> scaler = cygrad.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(w.sum()).backward()
        >>> scaler.step(optimizer)
        >>> w.detach()
        tensor([0.5000])
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._hand_over(optimizer, state, args, kwargs)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] == OptState.READY:
            self.unscale_(optimizer)
        if state["nonfinite"] is None:
            raise AssertionError(
                "No inf checks were recorded for this optimizer.\n"
                "None of its parameters has a gradient: was scaler.scale(loss).backward() called, after zero_grad()?"
            )
        state["stage"] = OptState.STEPPED
        found = state["nonfinite"]
        if isinstance(found, Tensor) and optimizer._can_leave_out(found.device):
            with optim.unless(array_of(found)):
                return optimizer.step(*args, **kwargs)
        return None if found else optimizer.step(*args, **kwargs)

    def _hand_over(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Call the step of an optimizer that unscales gradients and skips steps itself, and tell it what it needs."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale = self._check_scale("step")
        if state["stage"] == OptState.READY:
            grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            finite = [(g._values() if g.is_sparse else g).isfinite().all().to(scale.device) for g in grads]
            state["nonfinite"] = cygrad.stack(finite).all().logical_not() if grads else None
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        else:
            optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
        found = bool(state["nonfinite"])
        optimizer.found_inf = cygrad.full((), float(found), dtype=cygrad.float32, device=scale.device)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Adapt the scale, or set it to `new_scale`, at the end of each iteration.

        >>> import cygrad
        >>> scaler = cygrad.GradScaler("cpu", init_scale=8.0)
        >>> loss = scaler.scale(cygrad.tensor(1.0))
        >>> scaler.update(2.0)
        >>> scaler.get_scale()
        2.0
        """
        if not self._enabled:
            return
        scale = self._check_scale("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [s["nonfinite"] for s in self._per_optimizer_states.values() if s["nonfinite"] is not None]
            if not found:
                raise AssertionError(
                    "No inf checks were recorded prior to update.\nCall scaler.step(optimizer) first in each iteration."
                )
            self._adapt(scale, found)
        self._per_optimizer_states.clear()

    def _adapt(self, scale: Tensor, found: list[Any]) -> None:
        if not isinstance(self._growth_tracker, Tensor):
            self._growth_tracker = cygrad.full((), self._growth_tracker, dtype=cygrad.int32, device=scale.device)
        if scale.is_cuda and all(isinstance(each, Tensor) for each in found):
            largest = functools.reduce(cygrad.maximum, found)
            own, steps = arrays_for_update([scale, self._growth_tracker])
            numbers = self._growth_factor, self._backoff_factor, self._growth_interval
            grad_scaling.adapt(own, steps, array_of(largest), *numbers)
            return
        if any(found):
            from cygrad._core.replay.decisions import decide  # few programs need it

            before = scale.clone()
            scale.mul_(self._backoff_factor)
            self._growth_tracker.zero_()
            if decide((scale < _HOPELESS) & (before >= _HOPELESS)):
                warn(
                    f"the scale of GradScaler has fallen to {scale.item():.1e}, because gradients were repeatedly "
                    "infinite or NaN, and no step was made.\n"
                    "No scale helps: the loss itself or the inputs are infinite or NaN. "
                    "`with cygrad.autograd.detect_anomaly():` names the line that made the first NaN in backward."
                )
            return
        steps = self._growth_tracker.add_(1)  # without a condition in Python, so that a compiled step does the same
        grows, grown = steps == self._growth_interval, scale * self._growth_factor
        scale.copy_(cygrad.where(grows & grown.isfinite(), grown, scale))
        steps.mul_(grows.logical_not())

    def _set_scale(self, scale: Tensor, new_scale: Any) -> None:
        if not isinstance(new_scale, Tensor):
            scale.fill_(float(new_scale))
        elif new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                "requires_grad=False."
            )
        else:
            scale.copy_(new_scale.reshape(()))

    def _check_scale(self, name: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  {_USED_SCALE}")
        return self._scale

    # Options and state

    def _steps(self) -> int:
        return int(self._growth_tracker)

    @property
    def _init_growth_tracker(self) -> int:
        return self._steps()

    @_init_growth_tracker.setter
    def _init_growth_tracker(self, steps: int) -> None:
        self._growth_tracker = steps

    def get_scale(self) -> float:
        """Return the scale; 1.0 if disabled.

        >>> import cygrad
        >>> cygrad.GradScaler("cpu", init_scale=8.0).get_scale()
        8.0
        """
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows.

        >>> import cygrad
        >>> cygrad.GradScaler("cpu").get_growth_factor()
        2.0
        """
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows.

        >>> import cygrad
        >>> scaler = cygrad.GradScaler("cpu")
        >>> scaler.set_growth_factor(4.0)
        >>> scaler.get_growth_factor()
        4.0
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor applied to the scale after an infinite or NaN gradient.

        >>> import cygrad
        >>> cygrad.GradScaler("cpu").get_backoff_factor()
        0.5
        """
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor applied to the scale after an infinite or NaN gradient.

        >>> import cygrad
        >>> scaler = cygrad.GradScaler("cpu")
        >>> scaler.set_backoff_factor(0.25)
        >>> scaler.get_backoff_factor()
        0.25
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps after which the scale grows.

        >>> import cygrad
        >>> cygrad.GradScaler("cpu").get_growth_interval()
        2000
        """
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps after which the scale grows.

        >>> import cygrad
        >>> scaler = cygrad.GradScaler("cpu")
        >>> scaler.set_growth_interval(100)
        >>> scaler.get_growth_interval()
        100
        """
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether scaling is enabled.

        >>> import cygrad
        >>> cygrad.GradScaler("cpu").is_enabled()
        True
        """
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return scale, options, and the number of steps since the scale changed; empty if disabled.

        >>> import cygrad
        >>> cygrad.GradScaler("cpu", init_scale=8.0).state_dict()["scale"]
        8.0
        """
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._steps(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`, including that of PyTorch's scaler.

        Raises RuntimeError for an empty state.

        >>> import cygrad
        >>> scaler = cygrad.GradScaler("cpu")
        >>> scaler.load_state_dict(cygrad.GradScaler("cpu", init_scale=8.0).state_dict())
        >>> scaler.get_scale()
        8.0
        """
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state.update(_init_scale=self.get_scale(), _scale=None, _growth_tracker=self._steps())
        return state
