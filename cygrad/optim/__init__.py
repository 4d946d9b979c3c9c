"""Optimizers, which update parameters along their gradients."""

import sys as _sys

from cygrad.optim import (
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    asgd,
    lbfgs,
    lr_scheduler,
    muon,
    nadam,
    optimizer,
    radam,
    rmsprop,
    rprop,
    sgd,
    sparse_adam,
    swa_utils,
)
from cygrad.optim.adadelta import Adadelta
from cygrad.optim.adafactor import Adafactor
from cygrad.optim.adagrad import Adagrad
from cygrad.optim.adam import Adam, AdamW
from cygrad.optim.adamax import Adamax
from cygrad.optim.asgd import ASGD
from cygrad.optim.lbfgs import LBFGS
from cygrad.optim.muon import Muon
from cygrad.optim.nadam import NAdam
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.radam import RAdam
from cygrad.optim.rmsprop import RMSprop
from cygrad.optim.rprop import Rprop
from cygrad.optim.sgd import SGD
from cygrad.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "adadelta",
    "adafactor",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "LBFGS",
    "lbfgs",
    "lr_scheduler",
    "muon",
    "nadam",
    "optimizer",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
    "swa_utils",
]

adamw = _sys.modules[f"{__name__}.adamw"] = adam  # PyTorch has a module for each class
