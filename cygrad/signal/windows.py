"""Window functions, under the names of PyTorch's `torch.signal.windows`."""

from cygrad._ops.signal.window_functions import (
    bartlett,
    blackman,
    cosine,
    exponential,
    gaussian,
    general_cosine,
    general_hamming,
    hamming,
    hann,
    kaiser,
    nuttall,
)

__all__ = [name for name in dir() if not name.startswith("_")]
