"""Optimizers: they change parameters along their gradients."""

from cygrad.optim import adam, optimizer, sgd
from cygrad.optim.adam import Adam, AdamW
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "adam", "optimizer", "sgd"]
