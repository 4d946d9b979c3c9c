"""Fractional max pooling: the maxima of randomly placed windows."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn.modules._function_module import FunctionModule
from cygrad.nn.modules._sizes import repeated

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]


class _FractionalMaxPool(FunctionModule):
    _settings = ("kernel_size", "output_size", "output_ratio", "return_indices", "_random_samples")
    dims = 0

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else repeated(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, self.dims)
        if output_size is None and output_ratio is None:
            name = f"FractionalMaxPool{self.dims}d"
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, and with `return_indices` their indices."""
        return self._call(input)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of image windows drawn at random so that the output has the requested size.

    As `F.fractional_max_pool2d`. Raises `ValueError` unless one of `output_size` and `output_ratio` is given.

    >>> import cygrad
    >>> cygrad.nn.FractionalMaxPool2d(2, output_ratio=0.5)(cygrad.ones(1, 3, 8, 6)).shape
    torch.Size([1, 3, 4, 3])
    """

    dims = 2
    _function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of volume windows drawn at random so that the output has the requested size.

    >>> import cygrad
    >>> cygrad.nn.FractionalMaxPool3d(2, output_size=3)(cygrad.ones(1, 3, 8, 6, 6)).shape
    torch.Size([1, 3, 3, 3, 3])
    """

    dims = 3
    _function = "fractional_max_pool3d"
