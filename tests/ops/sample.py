"""Samples: the inputs on which the generic tests run every op.

A file `ops/samples/<family>.py` has a function `samples()` that returns `{name: [Sample, ...]}`, keyed by row name. A
row named 'sum.dim' is called as `sum`, with arguments that select that row. Functions without a row (composed of
other ops) are included by their names. A function `errors()` returns samples of invalid input in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Sample:
    """One call of an op.

    args, kwargs
        the arguments; NumPy arrays (also in lists and tuples) become tensors, and leaves that require grad if they have
        a floating-point or complex dtype
    numpy
        a function of the same arguments that returns the expected result, or None
    grad
        whether the op can be differentiated here (provided its row has a rule)
    smooth
        whether finite differences give the derivatives: False at kinks, ties and steps
    single
        whether single-precision inputs give a single-precision result
    oracle_grad
        whether PyTorch's gradients are right here
    unique
        whether PyTorch's result is uniquely defined: False for eigenvectors, whose signs are arbitrary, and where
        PyTorch reads uninitialized memory
    any_layout
        whether the operands may have any memory layout
    """

    args: tuple
    kwargs: dict = field(default_factory=dict)
    numpy: Callable | None = None
    grad: bool = True
    smooth: bool = True
    single: bool = True
    oracle_grad: bool = True
    unique: bool = True
    any_layout: bool = True

    @cached_property
    def _text(self):
        return repr(self)

    def __str__(self):
        return self._text  # in the message of every comparison, and NumPy takes long to print arrays


def grid(*shape, low=-2.0, high=2.0):
    """float64 numbers spread evenly over [low, high], shuffled: all distinct, none 0."""
    size = int(np.prod(shape))
    values = low + (high - low) * (np.arange(size) + 0.37) / max(size, 1)
    return np.random.default_rng(size + len(shape)).permutation(values).reshape(shape)


def positive(*shape):
    """float64 numbers between 0.3 and 2.3."""
    return grid(*shape, low=0.3, high=2.3)


def complex_grid(*shape):
    """complex128 numbers with both parts between -2 and 2."""
    return grid(*shape) + 0.7j * grid(*shape)[..., ::-1] if shape else np.asarray(0.7 - 1.1j)


def integers(*shape, low=-4, high=5):
    """int64 numbers from `low` to `high` - 1, both inclusive."""
    return np.random.default_rng(7).integers(low, high, shape)


def booleans(*shape):
    """Boolean values."""
    return np.random.default_rng(5).random(shape) < 0.5
