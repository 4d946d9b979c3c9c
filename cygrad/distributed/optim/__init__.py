"""Optimizers for parameters spread over processes."""

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.optim import _optimizers, _zero
from cygrad.distributed.optim._optimizers import DistributedOptimizer, PostLocalSGDOptimizer
from cygrad.distributed.optim._optimizers import _apply_optimizer_in_backward as _apply_optimizer_in_backward
from cygrad.distributed.optim._optimizers import _get_in_backward_optimizers as _get_in_backward_optimizers
from cygrad.distributed.optim._zero import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

also_named(
    __name__,
    apply_optimizer_in_backward=_optimizers,
    optimizer=_optimizers,
    post_localSGD_optimizer=_optimizers,
    zero_redundancy_optimizer=_zero,
)
