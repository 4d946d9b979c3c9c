"""Samples for unfold and fold, pixel shuffle, and interpolation."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers


def samples():
    image = grid(2, 2, 4, 5)
    pairs = ((4, 5), (2, 3), (1, 2), (1, 0), (2, 1))
    columns = grid(2, 12, 3)
    return {
        "im2col": [
            Sample((image, *pairs)),
            Sample((image[0], *pairs)),
            Sample((complex_grid(1, 1, 3, 2), (3, 2), (2, 1), (1, 1), (0, 1), (1, 1))),
            Sample((image, (4, 5), (1, 1), (1, 1), (0, 0), (1, 1)), numpy=lambda x, *_: x.reshape(2, 2, 20)),
        ],
        "col2im": [
            Sample((columns, *pairs)),
            Sample((columns[0], *pairs)),
            Sample((grid(1, 20), (4, 5), (1, 1), (1, 1), (0, 0), (1, 1)), numpy=lambda x, *_: x.reshape(1, 4, 5)),
        ],
        "fold": [
            Sample((grid(2, 8, 6), (3, 4), 2)),
            Sample((grid(4, 6), (3, 4), 2), {"dilation": 1, "padding": 0, "stride": [1, 1]}),
            Sample((columns, (4, 5), (2, 3)), {"dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}),
            Sample((np.zeros((0, 8, 6)), (3, 4), 2)),
            Sample((booleans(4, 1), 2, 2)),
        ],
        "pixel_shuffle": [
            Sample((grid(2, 8, 2, 3), 2), numpy=shuffled),
            Sample((grid(9, 1, 2), 3), numpy=shuffled),
            Sample((grid(2, 1, 4, 2, 1), 2), numpy=shuffled),
            Sample((integers(4, 2, 2), 2), numpy=shuffled),
            Sample((np.zeros((0, 4, 2, 2)), 2), oracle_grad=False),  # PyTorch's gradient has a different shape
        ],
        "pixel_unshuffle": [
            Sample((grid(2, 2, 4, 2), 2)),
            Sample((grid(1, 3, 6), 3)),
            Sample((integers(2, 1, 1, 4, 2), 2)),
        ],
        "interpolate": interpolations(),
        **sampling(),
    }


def shuffled(x, r):
    """Pixel shuffle, element by element."""
    *others, channels, height, width = x.shape
    out = np.empty((*others, channels // r**2, height * r, width * r), x.dtype)
    for c, y, z in np.ndindex(channels, height, width):
        out[..., c // r**2, y * r + c // r % r, z * r + c % r] = x[..., c, y, z]
    return out


def sampling():
    image, volume = grid(2, 2, 3, 4), grid(1, 1, 3, 2, 4)
    points, deep = 0.7 * grid(2, 3, 2, 2), 0.7 * grid(1, 1, 2, 2, 3)
    theta = grid(2, 2, 3)

    def how(mode, padding, align_corners, smooth=True):  # PyTorch has no second gradients
        return Sample((image, points, mode, padding, align_corners), smooth=smooth, oracle_grad=False)

    places = np.array([[0, 2, 2], [3, 1, 0]])
    return {
        "grid_sampler_2d": [
            *[how(mode, padding, bool(mode) == bool(padding)) for mode in (0, 1, 2) for padding in (0, 1, 2)],
            Sample((image, np.zeros((2, 1, 1, 2)), 0, 0, True), numpy=middle, smooth=False, oracle_grad=False),
            Sample((image[:0], points[:0], 0, 0, False), oracle_grad=False),
        ],
        "grid_sampler_3d": [
            Sample((volume, deep, mode, padding, False), oracle_grad=False) for mode in (0, 1) for padding in (0, 1, 2)
        ],
        "grid_sampler": [how(0, 0, True), Sample((volume, deep, 0, 0, False), oracle_grad=False)],
        "grid_neighbourhoods": [Sample((points, (3, 4), "bilinear", "zeros", True), grad=False)],
        "take_columns": [Sample((grid(2, 3, 4), places), numpy=taken)],
        "add_columns": [Sample((grid(2, 3, 3), places, 4))],
        "affine_grid_generator": [
            Sample((theta, (2, 1, 3, 4), True)),
            Sample((theta, [2, 1, 1, 2], False)),
            Sample((grid(1, 3, 4), (1, 2, 2, 1, 3), False)),
        ],
    }


def middle(x, *_):
    """The mean of the two central pixels of 3 x 4 images."""
    return x[:, :, 1:2, 1:3].mean(3, keepdims=True)


def taken(x, places):
    return np.take_along_axis(x, np.broadcast_to(places[:, None], (2, 3, 3)), 2)


def interpolations():
    line, image, volume = grid(2, 2, 5), grid(1, 2, 4, 5), grid(1, 1, 3, 2, 4)
    linear = {line.ndim: "linear", image.ndim: "bilinear", volume.ndim: "trilinear"}
    found = []
    for x, size in ((line, 8), (image, (7, 3)), (volume, (2, 5, 4))):
        for mode in ("nearest", "nearest-exact", "area", linear[x.ndim]):
            found.append(Sample((x, size), {"mode": mode}))
            found.append(Sample((x,), {"scale_factor": 1.7, "mode": mode}))
        found.append(Sample((x, size), {"mode": linear[x.ndim], "align_corners": True}))
    for mode in ("bilinear", "bicubic", "lanczos"):
        for size in ((2, 3), (7, 2)):
            found.append(Sample((image, size), {"mode": mode, "antialias": True}))
    return [
        *found,
        Sample((image,), {"scale_factor": 2}, numpy=lambda x, **_: x.repeat(2, 2).repeat(2, 3)),
        Sample((image, (3, 9)), {"mode": "bicubic"}),
        Sample((image, (3, 9)), {"mode": "bicubic", "align_corners": True}),
        Sample((image,), {"scale_factor": (0.5, 2.5), "mode": "bicubic"}),
        Sample((image,), {"scale_factor": 1.3, "mode": "bilinear", "recompute_scale_factor": True}),
        Sample((image, (1, 1)), {"mode": "bilinear", "align_corners": True}),
        Sample((image, (4, 5)), {"mode": "bilinear"}, numpy=lambda x, *_, **__: x),
        Sample((np.zeros((0, 2, 3, 3)), 2)),
        Sample((integers(1, 1, 3, 4, low=0, high=255).astype(np.uint8), (5, 2)), {"mode": "nearest"}),
        Sample((integers(1, 1, 3, 4, low=0, high=255).astype(np.uint8), (5, 2)), {"mode": "bicubic"}),
    ]


def errors():
    x = grid(2, 3, 4, 4)

    def calls(*cases):
        return [Sample(case[:-1], case[-1]) for case in cases]

    return {
        "fold": calls(
            (grid(2, 12, 9), (5, 4), 2, {}),
            (grid(2, 12, 9), (4, 4, 1), 2, {}),
            (grid(2, 13, 9), (4, 4), 2, {}),
            (grid(2, 12, 9, 1), (4, 4), 2, {}),
            (grid(2, 12, 9), (4, 4), 0, {}),
            (grid(2, 12, 9), (4, 4), 2, {"stride": 0}),
            (grid(2, 12, 9), (4, 4), 2, {"dilation": 0}),
            (grid(2, 12, 9), (4, 4), 2, {"padding": -1}),
            (integers(2, 12, 9), (4, 4), 2, {}),
            (3, (4, 4), 2, {}),
        ),
        "grid_sampler": calls(
            (x, grid(1, 2, 2, 2), 0, 0, True, {}),
            (x, grid(2, 2, 2, 1), 0, 0, True, {}),
            (x, grid(2, 2, 2), 0, 0, True, {}),
            (x[0], grid(2, 2, 2, 2), 0, 0, True, {}),
            (x, grid(2, 2, 2, 2).astype(np.float32), 0, 0, True, {}),
            (x[:, :, :0], grid(2, 2, 2, 2), 0, 0, True, {}),
            (grid(2, 1, 2, 2, 2), grid(2, 1, 2, 2, 3), 2, 0, True, {}),
            (integers(2, 3, 4, 4), grid(2, 2, 2, 2), 0, 0, True, {}),
            (x, 3, 0, 0, True, {}),
        ),
        "affine_grid_generator": calls((grid(2, 2, 3), (3, 1, 2, 2), True, {})),
        "pixel_shuffle": calls((x, 2, {}), (x[0, 0], 2, {}), (x, 0, {}), (x, 2.0, {}), (x, -1, {})),
        "pixel_unshuffle": calls((x, 3, {}), (x[0, 0], 2, {}), (x, 0, {})),
        "interpolate": calls(
            (x, {}),
            (x, 3, 2, {}),
            (x, (3, 2, 2), {}),
            (x, (3,), {}),
            (x, (3.5, 2), {}),
            (x, 0, {}),
            (x, -1, {}),
            (x, {"scale_factor": (2, 2, 2)}),
            (x, {"scale_factor": 0.01}),
            (x, 3, {"align_corners": True}),
            (x, 3, {"antialias": True}),
            (x, 3, {"recompute_scale_factor": True}),
            (x, 3, {"mode": "linear"}),
            (x, 3, {"mode": "trilinear"}),
            (x, 3, {"mode": "lanczos"}),
            (x, 3, {"mode": "lanczos", "antialias": True, "align_corners": True}),
            (x, 3, {"mode": "other"}),
            (x[0, 0], 3, {}),
            (x[:, :0], 3, {}),
            (x[:, :, :0], 3, {}),
            (integers(2, 3, 4, 4), 3, {}),
            (complex_grid(2, 3, 4, 4), 3, {}),
        ),
    }
