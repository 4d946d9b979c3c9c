"""What follows the numbers that optimizers compute in main memory, while a step is captured on a GPU.

See Note [Host numbers] in `_kernels/gpu/optim/host_numbers.py`.
"""

from typing import Any

import numpy as np

_work: Any = None  # a `HostWork`


def follow(work):
    """Have `work` follow what optimizers of this thread compute, or nothing any more; return what did before."""
    global _work
    former, _work = _work, work
    return former


def current_work():
    """Return what follows the optimizers of this thread, or None."""
    return _work if _work is not None and _work.is_here() else None


def following(arrays, number=0.0):
    """Return what follows this thread's optimizers, if these arrays or this number may be followed."""
    is_plain = not arrays or arrays[0] is None or type(arrays[0]) is np.ndarray
    return None if is_plain and type(number) is float else current_work()


def is_followed():
    """Whether a compiled step is being captured, whose numbers each launch of the graph reads anew."""
    return current_work() is not None
