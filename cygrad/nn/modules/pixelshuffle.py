"""Layers that rearrange elements between channels and pixels, or among channels."""

from __future__ import annotations

from cygrad.nn.modules._function_module import UnaryFunctionModule

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(UnaryFunctionModule):
    """Rearranges channels into blocks of pixels: (*, C * r**2, H, W) to (*, C, H * r, W * r), as `F.pixel_shuffle`.

    out[c, r i + k, r j + l] = x[r^2 c + r k + l, i, j], with r the `upscale_factor`.

    >>> import cygrad
    >>> cygrad.nn.PixelShuffle(3)(cygrad.ones(1, 9, 4, 4)).shape
    torch.Size([1, 1, 12, 12])
    """

    _function = "pixel_shuffle"
    _settings = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor


class PixelUnshuffle(UnaryFunctionModule):
    """The inverse of `PixelShuffle`, as `F.pixel_unshuffle`.

    out[r^2 c + r k + l, i, j] = x[c, r i + k, r j + l], with r the `downscale_factor`.

    >>> import cygrad
    >>> cygrad.nn.PixelUnshuffle(3)(cygrad.ones(1, 1, 12, 12)).shape
    torch.Size([1, 9, 4, 4])
    """

    _function = "pixel_unshuffle"
    _settings = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor


class ChannelShuffle(UnaryFunctionModule):
    """Interleaves the channels of `groups` groups, as `F.channel_shuffle`.

    >>> import cygrad
    >>> cygrad.nn.ChannelShuffle(2)(cygrad.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    _function = "channel_shuffle"
    _settings = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups
