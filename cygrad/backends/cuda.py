"""Settings of products of matrices on GPUs, which cuBLAS computes.

`matmul.allow_tf32` (False): float32 is rounded to TF32, with 10 bits after the point, and is many times as fast.
`set_float32_matmul_precision("high")` is the same. Convolutions and recurrent layers are products here, and follow it.
`matmul.allow_fp16_reduced_precision_reduction`, `..bf16..` (True): parts of long sums may be added in half precision.
`matmul.allow_fp16_accumulation` (False): products of float16 may be added up in float16.

>>> import cygrad
>>> cygrad.backends.cuda.matmul.allow_tf32 = True
>>> cygrad.get_float32_matmul_precision()
'high'
>>> cygrad.backends.cuda.matmul.allow_tf32 = False
"""

import cygrad
from cygrad._core.settings import matmul_settings as matmul

__all__ = ["is_built", "matmul"]


def is_built():
    """Whether cygrad can use a GPU of NVIDIA here."""
    return cygrad.cuda.is_available()
