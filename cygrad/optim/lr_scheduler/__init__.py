"""Learning rate schedules."""

from cygrad.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from cygrad.optim.lr_scheduler.base import LRScheduler
from cygrad.optim.lr_scheduler.base import _enable_get_lr_call as _enable_get_lr_call
from cygrad.optim.lr_scheduler.base import _initial_mode as _initial_mode
from cygrad.optim.lr_scheduler.base import _LRScheduler as _LRScheduler
from cygrad.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from cygrad.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from cygrad.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from cygrad.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from cygrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from cygrad.utils.naming import name_initialisers

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

name_initialisers([LambdaLR, MultiplicativeLR])
