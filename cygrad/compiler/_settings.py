"""What holds for all compiled functions: the stance, the list of them, and whether this thread is traced."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING

import cygrad

if TYPE_CHECKING:
    from cygrad.compiler._step import Step


class _Stance:
    name = "default"


stance = _Stance()
# Guards read dictionaries while nothing else runs, so that Pythons without the global lock replay nothing.
has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
steps: weakref.WeakSet[Step] = weakref.WeakSet()


def modes() -> tuple[object, ...]:
    """Return all modes of this thread and settings that a call could change and leave changed."""
    device = "cpu"
    return (
        *(cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled(), cygrad.is_anomaly_enabled()),
        *(cygrad.is_autocast_enabled(device), cygrad.get_autocast_dtype(device), cygrad.is_autocast_cache_enabled()),
        *(cygrad.get_default_dtype(), cygrad.get_num_threads(), cygrad.get_default_device()),
        *(cygrad.are_deterministic_algorithms_enabled(), cygrad.get_float32_matmul_precision()),
        len(cygrad.overrides._get_current_function_mode_stack()),
    )


def is_traced() -> bool:
    """Whether a profiler of Python sees what runs, which a watch would push aside."""
    return sys.getprofile() is not None


def set_stance(name: str) -> str:
    """Set what is done with calls that have no plan, and return what was done before."""
    before, stance.name = stance.name, name
    for step in list(steps):
        step.plans.open = name != "force_eager"
    return before


def is_running() -> bool:
    """Whether a compiled function is running in this thread."""
    plans = sys.modules.get("cygrad._core.replay.calls.plans")  # imported by the first function that is compiled
    return plans is not None and plans.is_running()
