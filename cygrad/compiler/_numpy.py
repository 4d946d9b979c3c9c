"""Functions on NumPy arrays as functions on tensors."""

from __future__ import annotations

import functools
from typing import Any


def wrap_numpy(fn: Any) -> Any:
    """Return a function that takes and returns tensors, from one of NumPy arrays.

    Arrays among the arguments and results may be in tuples, lists and dictionaries. Gradients do not pass through.

    >>> import cygrad, numpy
    >>> twice = cygrad.compiler.wrap_numpy(lambda array: numpy.concatenate([array, array]))
    >>> twice(cygrad.ones(1))
    tensor([1., 1.])
    """
    import numpy as np  # needed only here

    import cygrad  # which imports this module
    from cygrad.func.trees import mapped  # needed only here

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        def to_array(x):
            return x.numpy() if isinstance(x, cygrad.Tensor) else x

        def to_tensor(x):
            return cygrad.as_tensor(x) if isinstance(x, np.ndarray | np.generic) else x

        return mapped(to_tensor, fn(*mapped(to_array, args), **mapped(to_array, kwargs)))

    return wrapped
