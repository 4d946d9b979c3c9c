"""The dtype of half of float32's bits, for which NumPy needs the package ml_dtypes; imported when first used."""

from cygrad._core.types.dtypes import bfloat16_dtype

bfloat16 = bfloat16_dtype()
