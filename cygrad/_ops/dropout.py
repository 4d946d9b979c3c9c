"""Dropout: setting elements to zero at random, in training.

Under the signatures of nn.functional; the package has `dropout(input, p, train)` and `dropout_`.
"""

import numpy as np

from cygrad._core import messages
from cygrad._core.access import array_of, tensor_of
from cygrad._core.opdef import named
from cygrad._ops.arguments import require
from cygrad._ops.arithmetic import mul
from cygrad._ops.random import keep_mask


def dropout(input, p=0.5, training=True, inplace=False):
    """In training, sets each element to zero with probability p and divides the others by 1 - p; else does nothing.

    So the expected value stays. Gradient: g times what the element was multiplied by. Raises ValueError for a p outside
    [0, 1].

    >>> import cygrad
    >>> cygrad.nn.functional.dropout(cygrad.ones(2), p=1.0)
    tensor([0., 0.])
    >>> cygrad.nn.functional.dropout(cygrad.ones(2), training=False)
    tensor([1., 1.])
    """
    probability = float(p)
    if not 0 <= probability <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or probability == 0:
        return require(input, "dropout")
    array = array_of(require(input, "dropout"))
    if array.dtype.kind in "biu":
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.type_name}\n"
            "  dropout scales what it keeps: convert integers with .float() first"
        )
    if probability == 1:
        factors = np.zeros((), array.dtype)
    else:
        factors = keep_mask(array.shape, 1 - probability, None) * array.dtype.type(1 / (1 - probability))
    return mul(input, tensor_of(np.asarray(factors)), out=input if inplace else None)


@named("dropout")
def dropout_of_package(input, p, train):
    """In training, sets each element to zero with probability p and divides the others by 1 - p; else does nothing.

    Gradient: g times what the element was multiplied by. Raises ValueError for a p outside [0, 1].
    """
    return dropout(input, p, _flag(train, "dropout"))


def dropout_(input, p, train):
    """`dropout`, which overwrites `input` and returns it."""
    return dropout(input, p, _flag(train, "dropout_"), True)


def _flag(train, function):
    if not isinstance(train, bool):
        raise messages.wrong_type(function, "train", 3, "bool", train)
    return train


functions = {"dropout": dropout_of_package, "dropout_": dropout_}
