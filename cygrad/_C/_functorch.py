"""What `torch._C._functorch` tells of tensors inside `vmap`, `grad` and the like.

In cygrad, tensors are not wrapped there: those that differ between samples are noted at the level of the transform.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from cygrad._core.transforms import forward_mode
from cygrad._core.transforms.vmap_levels import Batch

__all__ = ["TransformType", "get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor"]
__all__ += ["is_gradtrackingtensor", "maybe_current_level", "maybe_get_bdim", "maybe_get_level", "unwrap_if_dead"]


class TransformType(Enum):
    """The transforms of functions."""

    Torch, Vmap, Grad, Jvp, Functionalize = range(5)


@contextmanager
def _DisableFuncTorch() -> Iterator[None]:
    """In the block, the transforms that are running see no ops."""
    forward_mode.flush()
    outer = forward_mode.levels()
    if forward_mode.in_transform():  # else the levels, if any, are those of `forward_ad`
        forward_mode.open_only(())
    try:
        yield
    finally:
        forward_mode.flush()
        forward_mode.open_only(outer)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor differs between the samples of an enclosing `vmap`."""
    return forward_mode.has_samples(tensor)


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether a tensor is wrapped by `grad` or `jvp`: never, since they record on the tensor itself."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """Whether a tensor is wrapped by `functionalize`: never."""
    return False


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether a tensor stands for others inside a transform."""
    return is_batchedtensor(tensor)


def maybe_current_level() -> int | None:
    """Return the number of enclosing transforms, or None if there are none."""
    return len(forward_mode.levels()) or None


def maybe_get_level(tensor: Any) -> int:
    """Return the level of the transform that a tensor stands for others in, or -1."""
    return (maybe_current_level() or -1) if is_batchedtensor(tensor) else -1


def maybe_get_bdim(tensor: Any) -> int:
    """Return the dimension of the samples in memory, or -1: they come first."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Any) -> Any:
    """Raise RuntimeError: no tensor is wrapped."""
    raise RuntimeError("No wrappers present!")


def _batch(level: int) -> Any:
    """Return the batch of a `vmap` by the number of its level, from 1. Raises RuntimeError if it is not one."""
    levels = forward_mode.levels()
    batch = levels[level - 1] if 0 < level <= len(levels) else None
    if not isinstance(batch, Batch):
        raise RuntimeError(f"level {level} is not that of a running vmap\n  {len(levels)} transforms are running")
    return batch


def _add_batch_dim(self: Any, batch_dim: int, level: int) -> Any:
    """Return a tensor that stands for the samples of another, which lie along a dimension, inside `vmap`."""
    return _batch(level).first(self.movedim(batch_dim, 0))


def _remove_batch_dim(self: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """Return the samples that a tensor stands for, along a dimension; copies of the tensor if it stands for none."""
    batch = _batch(level)
    forward_mode.flush()
    samples = batch.samples(self)
    if samples is None:
        samples = self.unsqueeze(0).expand(batch_size, *self.shape)
    return samples.movedim(0, out_dim)


def unwrap_if_dead(tensor: Any) -> Any:
    """Return the tensor, which is not wrapped."""
    return tensor


def peek_interpreter_stack() -> None:
    """Return the innermost interpreter of transforms: None, since there are none."""


def get_interpreter_stack() -> None:
    """Return the interpreters of transforms: None, since there are none."""


def _is_vmap_fallback_enabled() -> bool:
    """Whether `vmap` calls ops without a rule sample by sample: always."""
    return True


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Do nothing: that is not warned of."""
