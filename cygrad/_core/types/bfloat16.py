"""The bfloat16 dtype, for which NumPy needs the package ml_dtypes; imported on first use."""

from cygrad._core.types.dtypes import bfloat16_dtype

bfloat16 = bfloat16_dtype()
