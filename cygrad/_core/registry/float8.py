"""Refuses numbers of 8 bits where PyTorch's kernel does not take them: they are for storage.

Ops that move elements take them. Ops that compute by NumPy's loops refuse them there; the rows of all others say in
`float8=` which kernel of PyTorch's does not take them.
"""

from functools import cache

from cygrad._core.graph.opdef import facts_of
from cygrad._core.registry.out_dtypes import name_of
from cygrad._kernels.cpu.base.numpy_fallback import refuse_float8


@cache
def _kernel_of(op):
    """Return PyTorch's name of the kernel that refuses such operands of an op; None if the op takes them."""
    return facts_of["float8"].get(name_of(op))


def refuse(op, dtype):
    """Raise NotImplementedError if the op of a row does not take operands of this type of 8 bits."""
    kernel = _kernel_of(op)
    if kernel is not None:
        refuse_float8(dtype, kernel)
