"""Settings of products on GPUs, which are not in use.

>>> import cygrad
>>> cygrad.backends.cuda.matmul.allow_tf32 = True
"""

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built():
    """Whether cygrad can use GPUs of NVIDIA: no."""
    return False
