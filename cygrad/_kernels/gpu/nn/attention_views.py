"""Where the matrices of attention's heads are in memory, for its kernels."""

from functools import lru_cache

import numpy as np

VIEWS = """
// Where a matrix of each head is: steps between the outer and the inner heads, the rows and the columns, in elements.
struct View { whole outer, inner, row, column; };
struct Views { whole heads; View at[8]; };  // of the inner heads
template <typename P> __device__ inline P* matrix(P* from, const Views& v, int which, whole head) {
    return from + head / v.heads * v.at[which].outer + head % v.heads * v.at[which].inner;
}
"""
# What the kernels of attention get besides arrays: they follow the results.
ARGUMENTS = """const T* mask, Views v, double scale, whole causal, whole queries, whole keys,
    whole size, whole width"""


@lru_cache(256)
def views(inner, leading, given):
    """Return the content of `Views`; each of `given` is (strides, itemsize) of an array, or None."""
    numbers = [inner, *(step for one in given for step in _steps(one, leading))]
    numbers += [0] * (33 - len(numbers))
    return np.array(numbers, np.int64).view([("numbers", np.int64, (33,))])


def _steps(given, leading):
    """Return strides in elements: of outer heads, inner heads, rows, columns; zeros for None."""
    if given is None:
        return 0, 0, 0, 0
    strides, itemsize = given
    *heads, row, column = (step // itemsize for step in strides)
    return (*([*heads, 0] if leading != 2 else heads)[:2], row, column) if heads else (0, 0, row, column)
