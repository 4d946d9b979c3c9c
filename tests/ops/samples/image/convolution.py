"""Samples for convolutions and transposed convolutions."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers


def samples():
    line, filters, bias = grid(2, 2, 5), grid(4, 2, 3), grid(4)
    image, square = grid(2, 2, 5, 4), grid(2, 2, 3, 2)
    volume, cube = grid(1, 2, 3, 2, 3), grid(2, 2, 2, 1, 2)
    wide = {"padding": (1, 2), "stride": (2, 1), "dilation": (1, 2)}
    z, z_filters = complex_grid(1, 2, 4), complex_grid(2, 2, 2)
    channels = {"groups": 2}
    return {
        "convolution": [
            Sample((image, square, grid(2), [2, 1], [1, 1], [1, 2], False, [0, 0], 1)),
            Sample((image, square, grid(2), [2, 1], [1, 1], [1, 2], True, [1, 0], 1)),
            Sample((image, square, None, [1], [0], [1], False, [0], 1)),
            Sample((np.zeros((0, 2, 5)), filters, bias, [1], [0], [1], False, [0], 1)),
        ],
        "filter_gradient": [
            Sample((image, grid(2, 3, 4, 3), (2, 2), (1, 1), (0, 0), (1, 1), 1)),
            Sample((image, grid(2, 4, 3, 4), (3, 1), (2, 1), (1, 0), (1, 2), 2)),
            Sample((image, grid(2, 2, 4, 3), (2, 2), (1, 1), (0, 0), (1, 1), 2)),
            Sample((complex_grid(1, 2, 4), complex_grid(1, 2, 3), (2,), (1,), (0,), (1,), 1)),
        ],
        "conv1d": [
            Sample((line, filters, bias), numpy=by_sums),
            Sample((line, filters, bias, 2, 3, 2)),
            Sample((line, filters), {"padding": "same", "dilation": 2}),
            Sample((line, grid(4, 2, 2)), {"padding": "same"}),
            Sample((line, filters), {"padding": "valid"}),
            Sample((line, grid(4, 1, 2)), channels),
            Sample((line, grid(2, 1, 2)), channels),
            Sample((line, grid(2, 1, 2)), {"groups": 2, "stride": 2, "padding": 1}),
            Sample((line[0], filters, bias)),
            Sample((line, grid(4, 2, 1), bias), numpy=by_sums),
            Sample((integers(2, 2, 5), integers(4, 2, 3)), numpy=by_sums),
            Sample((z, z_filters, complex_grid(2)), numpy=by_sums, oracle_grad=False),  # real ones in PyTorch
        ],
        "conv2d": [
            Sample((image, square, grid(2)), numpy=by_sums),
            Sample((image, square), wide),
            Sample((image, square, None, 1, "same")),
            Sample((image, grid(2, 1, 3, 3), grid(2)), {"groups": 2, "padding": 1}),
            Sample((image, grid(2, 1, 2, 2), grid(2)), {"groups": 2, "stride": 2}),
            Sample((image[1], square)),
            Sample((np.zeros((0, 2, 5, 4)), square, grid(2))),
        ],
        "conv3d": [
            Sample((volume, cube, grid(2)), numpy=by_sums),
            Sample((volume, cube), {"stride": 2, "padding": (1, 0, 1)}),
            Sample((volume[0], cube), {"padding": "same"}),
        ],
        "conv_transpose1d": [
            Sample((line, grid(2, 3, 2), grid(3))),
            Sample((line, grid(2, 3, 2), grid(3)), {"stride": 3, "padding": 1, "output_padding": 2}),
            Sample((line, grid(2, 3, 2)), {"stride": 1, "dilation": 2, "output_padding": 1}),
            Sample((line, grid(2, 2, 2)), channels),
            Sample((line, grid(2, 1, 2)), {"groups": 2, "stride": 2}),
            Sample((line, grid(2, 1, 2)), channels),
            Sample((line[0], grid(2, 3, 2))),
            Sample((integers(2, 2, 5), integers(2, 3, 2))),
            Sample((z, z_filters, complex_grid(2), 2, 1), oracle_grad=False),
        ],
        "conv_transpose2d": [
            Sample((image, square, grid(2))),
            Sample((image, square), {"stride": (2, 1), "padding": 1, "output_padding": (1, 0)}),
            Sample((image[1], square)),
        ],
        "conv_transpose3d": [
            Sample((volume, cube, grid(2))),
            Sample((volume[0], cube), {"stride": 2, "output_padding": (1, 0, 1)}),
        ],
    }


def by_sums(x, w, b=None):
    """Convolve window by window, without padding and strides."""
    dims = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], dims)
    kernel = tuple(range(1, w.ndim))
    out = np.tensordot(windows, w, ([1, *range(x.ndim, windows.ndim)], kernel))
    out = np.moveaxis(out, -1, 1)
    return out if b is None else out + b.reshape((-1,) + (1,) * len(dims))


def errors():
    x, w, b = grid(2, 3, 5, 5), grid(4, 3, 3, 3), grid(4)
    turned = grid(3, 4, 3, 3)

    def calls(*cases):
        return [Sample(case[:-1], case[-1]) for case in cases]

    return {
        "convolution": calls(
            (x, w, None, 1, [0], [1], False, [0], 1, {}),
            (x[0], w, None, [1], [0], [1], False, [0], 1, {}),
        ),
        "conv2d": calls(
            (x, w.astype(np.float32), {}),
            (x.astype(np.float32), w, {}),
            (x, w, b.astype(np.float32), {}),
            (x, w, b[:3], {}),
            (x, w, b[None], {}),
            (x, w[:, :2], {}),
            (x, w, {"groups": 2}),
            (x, w, {"groups": 0}),
            (x, w, {"stride": 0}),
            (x, w, {"stride": (1, 2, 3)}),
            (x, w, {"padding": -1}),
            (x, w, {"padding": "same", "stride": 2}),
            (x, w, {"padding": "other"}),
            (x.astype(np.float32), w.astype(np.float32), {"dilation": 0}),
            (x, w, {"dilation": 8}),
            (x[0, 0], w, {}),
            (x[None], w, {}),
            (x, w[0], {}),
            (x, w[:0], {}),
            (x[:, :, :2], w, {}),
            (x[:, :, :0], w, {"padding": 3}),
            (x > 0, w > 0, {}),
            (3, w, {}),
            (x, 3, {}),
            (x, w, 3, {}),
        ),
        "conv_transpose2d": calls(
            (x, w, {}),
            (x, turned, {"output_padding": 1}),
            (x, turned, {"output_padding": -1}),
            (x, turned, {"padding": "same"}),
            (x, turned, b[:3], {}),
            (x, grid(3, 2, 3, 3), {"groups": 2}),
            (x[0, 0], turned, {}),
        ),
    }
