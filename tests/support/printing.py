"""Helpers shared by the tests of tensor reprs."""

import numpy as np
import pytest

from cygrad._core.tensor import tensor_str as module
from cygrad._core.tensor.tensor_str import set_printoptions


@pytest.fixture(autouse=True)
def sealed_options():
    """Restore print options after each test."""
    yield
    set_printoptions(profile="default")


def text_of(array, **kwargs):
    """The text of a plain tensor of these elements, formatted without creating a tensor."""
    array = np.asarray(array)
    names = {"dtype_name": f"torch.{array.dtype.name}", "default_dtype_name": "torch.float32"}
    return module.tensor_str(array, **(names | kwargs))
