"""Pooling, patches, resizing and padding of images, with their gradients."""

from cygrad._ops.image import (
    average_pooling,
    folding,
    fractional_pooling,
    interpolation,
    max_pooling,
    max_unpooling,
)
from cygrad._ops.shape.padding import pad
from cygrad.ops._aten.backward import pulled_back
from cygrad.ops._aten.table import aten, own


def _average_pool(name):
    pool = getattr(average_pooling, name)

    def average_pool(
        self,
        kernel_size,
        stride=(),
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        return pool(self, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override)

    average_pool.__name__ = average_pool.__qualname__ = name
    average_pool.__doc__ = f"Return `{name}`; no stride stands for the kernel's size."
    aten(average_pool)


_average_pool("avg_pool2d")
_average_pool("avg_pool3d")


for _name in ("adaptive_avg_pool2d", "adaptive_avg_pool3d"):
    own[_name] = own[f"_{_name}"] = getattr(average_pooling, _name)


def _max_pool(name, module):
    def pool(self, *args):
        return getattr(module, f"{name}_with_indices")(self, *args)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"Return the maxima of `{name}`, and their indices."
    aten(pool)


_max_pool("adaptive_max_pool2d", max_pooling)
_max_pool("adaptive_max_pool3d", max_pooling)


def _fractional(name):
    def pool(self, kernel_size, output_size, random_samples):
        found = getattr(fractional_pooling, f"{name}_with_indices")
        return found(self, kernel_size, output_size, _random_samples=random_samples)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"Return the maxima of `{name}`, and their indices."
    aten(pool)


_fractional("fractional_max_pool2d")
_fractional("fractional_max_pool3d")


@aten
def max_unpool2d(self, indices, output_size):
    """Return zeros of the size of the result, with the elements of `self` at `indices`."""
    return max_unpooling.unpool(2, self, indices, list(output_size))


@aten
def max_unpool3d(self, indices, output_size, stride, padding):
    """Return zeros of the size of the result, with the elements of `self` at `indices`."""
    return max_unpooling.unpool(3, self, indices, list(output_size), (stride, padding))


@aten
def im2col(self, kernel_size, dilation, padding, stride):
    """Return the patches of images as columns."""
    return folding.unfold(self, kernel_size, dilation, padding, stride)


@aten
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    """Return images that are the sums of patches."""
    return folding.fold(self, output_size, kernel_size, dilation, padding, stride)


_PADDING = ("reflect", "replicate", "circular", "constant")


@aten
def _pad_enum(self, pad, mode, value=None):
    """Pad the last dimensions by the mode with this number."""
    return _pad(self, list(pad), _PADDING[mode], value)


_pad = pad


@aten
def max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """Return the gradient of `max_pool2d_with_indices`: each element of `grad_output` goes to its index."""
    flat = self.new_zeros(*self.shape[:-2], self.shape[-2] * self.shape[-1])
    return flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(self.shape)


@aten
def avg_pool2d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    """Return the gradient of `avg_pool2d`."""
    how = kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
    return pulled_back(lambda x: average_pooling.avg_pool2d(x, *how), grad_output, self)[0]


@aten
def avg_pool3d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    """Return the gradient of `avg_pool3d`."""
    how = kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
    return pulled_back(lambda x: average_pooling.avg_pool3d(x, *how), grad_output, self)[0]


@aten
def _adaptive_avg_pool2d_backward(grad_output, self):
    """Return the gradient of `adaptive_avg_pool2d`."""
    size = grad_output.shape[-2:]
    return pulled_back(lambda x: average_pooling.adaptive_avg_pool2d(x, size), grad_output, self)[0]


@aten
def _adaptive_avg_pool3d_backward(grad_output, self):
    """Return the gradient of `adaptive_avg_pool3d`."""
    size = grad_output.shape[-3:]
    return pulled_back(lambda x: average_pooling.adaptive_avg_pool3d(x, size), grad_output, self)[0]


def _upsampling(name: str, mode: str, is_linear: bool) -> None:
    """Add the function that resizes images, and the one of its gradient."""

    def resized(x, size, how):
        align_corners, factors = (how[0], how[1:]) if is_linear else (None, how)
        if len(factors) == 1 and isinstance(factors[0], (list, tuple)):  # of the overload `vec`
            factors = factors[0]
        factors = list(factors) if factors and None not in factors else None
        if size is None or (factors and [int(n * f) for n, f in zip(x.shape[2:], factors)] == list(size)):
            return interpolation.interpolate(x, None, factors, mode, align_corners)
        return interpolation.interpolate(x, list(size), None, mode, align_corners)

    def forward(self, output_size, *how, **named):
        return resized(self, output_size, (*how, *named.values()))

    def backward(grad_output, output_size, input_size, *how, **named):
        x, how = grad_output.new_zeros(input_size), (*how, *named.values())
        return pulled_back(lambda x: resized(x, output_size, how), grad_output, x)[0]

    arguments = "output_size, align_corners, *scales" if is_linear else "output_size, *scales"
    forward.__doc__ = f"Resize images to `output_size` by the mode {mode!r}; the arguments are ({arguments})."
    backward.__doc__ = f"Return the gradient of `{name}` for images of `input_size`."
    for function, title in ((forward, name), (backward, f"{name}_backward")):
        function.__name__ = function.__qualname__ = title
        aten(function)


for _name, _mode in {
    "upsample_nearest1d": "nearest",
    "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest",
    "_upsample_nearest_exact1d": "nearest-exact",
    "_upsample_nearest_exact2d": "nearest-exact",
    "_upsample_nearest_exact3d": "nearest-exact",
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "bilinear",
    "upsample_bicubic2d": "bicubic",
    "upsample_trilinear3d": "trilinear",
}.items():
    _upsampling(_name, _mode, "nearest" not in _mode)


def _smoothing(mode: str) -> None:
    def forward(self, output_size, align_corners, *scales, **named):
        factors = [*scales, *named.values()]
        if len(factors) == 1 and isinstance(factors[0], (list, tuple)):
            factors = list(factors[0])
        if output_size is None or (factors and None not in factors):
            return interpolation.interpolate(self, None, factors, mode, align_corners, antialias=True)
        return interpolation.interpolate(self, list(output_size), None, mode, align_corners, antialias=True)

    forward.__name__ = forward.__qualname__ = f"_upsample_{mode}2d_aa"
    forward.__doc__ = f"Resize images by the mode {mode!r}, with antialiasing."
    aten(forward)


for _mode in ("bilinear", "bicubic", "lanczos"):
    _smoothing(_mode)


def _padding(name: str, mode: str) -> None:
    """Add the function that pads, and the one of its gradient."""

    def forward(self, padding):
        return pad(self, list(padding), mode)

    def backward(grad_output, self, padding):
        return pulled_back(lambda x: pad(x, list(padding), mode), grad_output, self)[0]

    forward.__doc__ = f"Pad the last dimensions by the mode {mode!r}."
    backward.__doc__ = f"Return the gradient of `{name}`."
    for function, title in ((forward, name), (backward, f"{name}_backward")):
        function.__name__ = function.__qualname__ = title
        aten(function)


for _mode, _word in (("reflect", "reflection"), ("replicate", "replication")):
    for _dims in (1, 2, 3):
        _padding(f"{_word}_pad{_dims}d", _mode)
