"""Codes of integers: one-hot rows."""

import numpy as np

from cygrad._core.access import array_of
from cygrad._core.opdef import ELSEWHERE, NONDIFF, declare, publish
from cygrad._core.record import record_n
from cygrad._ops.arguments import integer, require

# -- one_hot -----------------------------------------------------------------------------------------------


def one_hot_array(a, num_classes):
    """int64, of one dimension more: 1 at the class, 0 elsewhere."""
    return np.asarray(a[..., None] == np.arange(num_classes)).astype(np.int64)


ONE_HOT = declare("one_hot", flags=NONDIFF | ELSEWHERE, kernel=one_hot_array, inputs="self")


def one_hot(tensor, num_classes=-1):
    """For each class index in `tensor` (int64) a row of zeros with a one at that place; one dimension more.

    There are as many classes as the largest index says, unless `num_classes` does.
    Raises RuntimeError for negative indices, for those beyond `num_classes`, and for other types.

    >>> import cygrad
    >>> cygrad.nn.functional.one_hot(cygrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    array = array_of(require(tensor, "one_hot"))
    classes = integer(num_classes, "one_hot", "num_classes", 2)
    if array.dtype != np.int64:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor.\n"
            f"  this one is {tensor.dtype}: convert it with .long()"
        )
    if array.size == 0:
        if classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    else:
        if array.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if classes == -1:
            classes = int(array.max()) + 1
        elif array.max() >= classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    return record_n(ONE_HOT, one_hot_array(array, classes), (tensor,), (classes,))


functions = publish(globals())
