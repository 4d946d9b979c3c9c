"""Whether what an optimizer computes in main memory is followed, for a graph that is being captured.

See Note [Host numbers] in `_kernels/gpu/optim/host_numbers.py`.
"""

import numpy as np

from cygrad._kernels.device.cupy_library import is_elsewhere


def following(arrays, number=0.0):
    """Return the `HostWork` that follows this thread's optimizers, if these arrays or this number may be followed."""
    if (not arrays or arrays[0] is None or type(arrays[0]) is np.ndarray) and type(number) is float:
        return None
    from cygrad._kernels.gpu.optim import host_numbers  # needed only for GPUs

    return host_numbers.following()


def is_followed():
    """Whether a compiled step is being captured, whose numbers each launch of the graph reads anew."""
    if not is_elsewhere():
        return False
    from cygrad._kernels.gpu.optim import host_numbers  # needed only for GPUs

    return host_numbers.following() is not None
