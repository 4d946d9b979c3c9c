"""State that a checkpoint's recomputation must restore: random number generators and autocast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.registry import autocast
from cygrad.func.trees import flatten

of_thread = autocast.state


class DefaultDeviceType:
    """The default device type of `set_device_states`: "cuda" if there is a GPU.

    >>> from cygrad.utils.checkpoint import DefaultDeviceType
    >>> before = DefaultDeviceType.get_device_type()
    >>> DefaultDeviceType.set_device_type("cpu")
    >>> DefaultDeviceType.get_device_type()
    'cpu'
    >>> DefaultDeviceType.set_device_type(before)
    """

    _type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the default device type."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the default device type."""
        return DefaultDeviceType._type or ("cuda" if cygrad.cuda.is_available() else "cpu")


def _infer_device_type(*args: Any) -> str:
    """Return the kind of device of the tensors among the arguments that are not on the CPU, or else the default one."""
    kinds = [leaf.device.type for leaf in flatten(args)[0] if isinstance(leaf, Tensor) and leaf.device.type != "cpu"]
    return ("cuda" if "cuda" in kinds else kinds[0]) if kinds else DefaultDeviceType.get_device_type()


def _get_device_module(device: str = "cuda") -> Any:
    """Return the module of a kind of device, `cygrad.cuda` for example."""
    return cygrad.device("meta") if device == "meta" else getattr(cygrad, device)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the GPU indices of the tensors among the arguments, and the states of their generators.

    >>> import cygrad
    >>> cygrad.utils.checkpoint.get_device_states(cygrad.ones(2))  # no tensor on a GPU
    ([], [])
    """
    leaves = flatten(args)[0]
    devices = [leaf.get_device() for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_cuda]
    return devices, [cygrad.cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Restore the generator states returned by `get_device_states`.

    >>> import cygrad
    >>> from cygrad.utils.checkpoint import get_device_states, set_device_states
    >>> devices, states = get_device_states(cygrad.ones(2))
    >>> set_device_states(devices, states)
    """
    if (device_type or DefaultDeviceType.get_device_type()) == "meta":
        return
    for device, state in zip(devices, states, strict=False):
        cygrad.cuda.set_rng_state(state, device)


class Surroundings:
    """This thread's autocast state and, if `preserve` is true, the generators of the CPU and the arguments' GPUs."""

    def __init__(self, preserve: bool, args: Any = ()) -> None:
        place = of_thread.__dict__
        self.autocast = {key: place[key] for key in ("cpu", "cuda", "cache_enabled", "nesting", "keeper")}
        self.generator = cygrad.random.get_rng_state() if preserve else None
        self.devices, self.states = get_device_states(*args) if preserve else ([], [])

    def restore(self) -> None:
        """Restore the recorded state. May be called again after an interruption."""
        autocast.note_user(True)
        of_thread.__dict__.update(self.autocast)
        autocast.note_user()
        if not of_thread.nesting:
            autocast.clear_cache()
        if self.generator is not None:
            cygrad.random.set_rng_state(self.generator)
            set_device_states(self.devices, self.states, device_type="cuda")

    def run(self, context: AbstractContextManager[Any], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function in this state and the context, then restore the previous state, even on KeyboardInterrupt."""
        here = Surroundings(self.generator is not None)
        here.devices = self.devices
        here.states = [cygrad.cuda.get_rng_state(device) for device in self.devices]
        try:
            self.restore()
            with context:
                return function(*args, **kwargs)
        finally:
            try:
                here.restore()
            except KeyboardInterrupt:
                here.restore()
                raise
