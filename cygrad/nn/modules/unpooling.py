"""Layers that undo max pooling."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn.modules._function_module import FunctionModule
from cygrad.nn.modules._sizes import repeated

__all__ = ["MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


class _MaxUnpoolNd(FunctionModule):
    _settings = ("kernel_size", "stride", "padding")
    dims = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.dims)
        self.stride = repeated(kernel_size if stride is None else stride, self.dims)
        self.padding = repeated(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Scatter the elements of `input` to `indices`, as returned by the pooling; zeros elsewhere."""
        return self._call(input, indices, output_size=output_size)

    def extra_repr(self) -> str:
        """Return the geometry of the windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Undoes `MaxPool1d`, with zeros for the elements that were not maxima, as `F.max_unpool1d`.

    Without `output_size`, the result has the length (length - 1) stride - 2 padding + kernel_size.

    >>> import cygrad
    >>> largest, places = cygrad.nn.MaxPool1d(2, return_indices=True)(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]))
    >>> cygrad.nn.MaxUnpool1d(2)(largest, places)
    tensor([[0., 3., 2., 0.]])
    """

    dims = 1
    _function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpoolNd):
    """Undoes `MaxPool2d`, with zeros for the elements that were not maxima, as `F.max_unpool2d`.

    Without `output_size`, each length of the result is (length - 1) stride - 2 padding + kernel_size.

    >>> import cygrad
    >>> largest, places = cygrad.nn.MaxPool2d(2, return_indices=True)(cygrad.ones(1, 4, 4))
    >>> cygrad.nn.MaxUnpool2d(2)(largest, places).shape
    torch.Size([1, 4, 4])
    """

    dims = 2
    _function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpoolNd):
    """Undoes `MaxPool3d`, with zeros for the elements that were not maxima, as `F.max_unpool3d`.

    Without `output_size`, each length of the result is (length - 1) stride - 2 padding + kernel_size.

    >>> import cygrad
    >>> largest, places = cygrad.nn.MaxPool3d(2, return_indices=True)(cygrad.ones(1, 4, 4, 4))
    >>> cygrad.nn.MaxUnpool3d(2)(largest, places).shape
    torch.Size([1, 4, 4, 4])
    """

    dims = 3
    _function = "max_unpool3d"
