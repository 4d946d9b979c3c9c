"""Comparison of results in tests, random test tensors, and checks of texts."""

from cygrad.testing._closeness import assert_allclose, assert_close
from cygrad.testing._file_check import FileCheck
from cygrad.testing._random_tensors import make_tensor

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
