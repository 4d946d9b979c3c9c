"""Rows that can not be computed on GPUs, as CuPy has nothing for them: tests/cuda/test_ops.py."""

MISSING = {
    "airy_ai",
    "airy_ai_slope",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
    "spherical_bessel",
    "spherical_bessel_j0",
}
