"""Writes TensorBoard logs through the package tensorboardX."""

from cygrad.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
