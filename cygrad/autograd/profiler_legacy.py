"""PyTorch's profiler before Kineto, which is the same as `autograd.profiler.profile` here."""

from __future__ import annotations

from typing import Any

from cygrad.autograd import profiler

__all__ = ["profile"]


class profile(profiler.profile):
    """`autograd.profiler.profile` with the arguments of the older one, which takes no `use_device` and the like.

    >>> import cygrad
    >>> with cygrad.autograd.profiler_legacy.profile() as prof:
    ...     total = cygrad.ones(3).sum()
    >>> [event.name for event in prof.function_events]
    ['aten::ones', 'aten::sum']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:
        options: dict[str, Any] = {"use_cuda": use_cuda, "record_shapes": record_shapes, "with_flops": with_flops}
        options |= {"profile_memory": profile_memory, "with_stack": with_stack, "with_modules": with_modules}
        super().__init__(enabled, **options)
