"""Layers that resize images."""

from __future__ import annotations

from typing import Any

from cygrad.nn.modules._function_module import UnaryFunctionModule

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(UnaryFunctionModule):
    """Resizes to `size` or by `scale_factor`, with the modes of `F.interpolate`.

    Each length of the result is floor(length * scale_factor).

    >>> import cygrad
    >>> cygrad.nn.Upsample(scale_factor=2)(cygrad.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    _function = "interpolate"
    _settings = ("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def extra_repr(self) -> str:
        """Return the size or the factor, and the mode.

        >>> from cygrad import nn
        >>> nn.Upsample(scale_factor=2).extra_repr()
        "scale_factor=2.0, mode='nearest'"
        """
        how = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by repeating the nearest pixel.

    >>> import cygrad
    >>> cygrad.nn.UpsamplingNearest2d(scale_factor=2)(cygrad.ones(1, 1, 2, 3)).shape
    torch.Size([1, 1, 4, 6])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images by bilinear interpolation with aligned corners.

    >>> import cygrad
    >>> cygrad.nn.UpsamplingBilinear2d(size=(1, 3))(cygrad.tensor([[[[0.0, 2.0]]]]))
    tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
