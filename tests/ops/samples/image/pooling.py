"""Samples for max and average pooling."""

import math

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers, positive

NAN, INF = math.nan, math.inf


def samples():
    line, image, volume = grid(2, 2, 7), grid(2, 2, 5, 6), grid(1, 2, 4, 3, 4)
    ties = np.array([[[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, NAN], [-INF, -INF, 2.0, 3.0], [-INF, -INF, 3.0, 3.0]]])
    wide = {"kernel_size": 3, "stride": 2, "padding": 1}
    uneven = {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 0)}
    whole = integers(2, 1, 4, 4)

    def largest(one):
        return [Sample((one, 2)), Sample((one, 2, 1, 1, 2)), Sample((one,), {**wide, "ceil_mode": True})]

    def average(one):
        return [
            Sample((one, 2)),
            Sample((one,), wide),
            Sample((one,), {**wide, "ceil_mode": True}),
            Sample((one,), {**wide, "count_include_pad": False, "ceil_mode": True}),
            Sample((one[0], 3)),
        ]

    def adaptive(one, *sizes):
        return [Sample((one, size)) for size in sizes] + [Sample((one[0], sizes[0]))]

    def norms(one):
        return [
            Sample((abs(one), 2, 2)),
            Sample((abs(one), 3.0, 2, 1)),
            Sample((abs(one), 2.0, 3), {"ceil_mode": True}),
        ]

    largest_of_image = [
        Sample((image, 2), numpy=lambda x, k: by_windows(np.max, x)),
        *largest(image),
        Sample((image,), uneven),
        Sample((image[0], 2)),
        Sample((ties, 2), smooth=False),
        Sample((np.full((1, 3, 3), NAN), 2, 1), smooth=False),
        Sample((whole, 2)),
        Sample((np.zeros((0, 2, 4, 4)), 2)),
    ]

    def with_indices(given):
        return [Sample(s.args, s.kwargs, smooth=s.smooth) for s in given]

    return {
        "max_pool1d": [*largest(line), Sample((line[0], 3))],
        "max_pool1d_with_indices": largest(line),
        "max_pool2d": largest_of_image,
        "max_pool2d_with_indices": with_indices(largest_of_image),
        "max_pool3d": largest(volume),
        "max_pool3d_with_indices": largest(volume),
        "adaptive_max_pool1d": adaptive(line, 3, 7, 1),
        "adaptive_max_pool1d_with_indices": adaptive(line, 3),
        "adaptive_max_pool2d": adaptive(image, 2, (5, 3), (None, 8), 1),
        "adaptive_max_pool2d_with_indices": adaptive(image, (2, 4), (5, 2)) + [Sample((ties, 3), smooth=False)],
        "adaptive_max_pool3d": adaptive(volume, 2, (1, 3, 3)),
        "adaptive_max_pool3d_with_indices": adaptive(volume, (3, 2, 2)),
        "avg_pool1d": average(line),
        "avg_pool2d": [
            Sample((image, 2), numpy=lambda x, k: by_windows(np.mean, x)),
            *average(image),
            Sample((image,), {**uneven, "divisor_override": 5}),
            Sample((whole, 2)),
            Sample((np.zeros((0, 2, 4, 4)), 2)),
        ],
        "avg_pool3d": average(volume)[:3],
        "adaptive_avg_pool1d": adaptive(line, 3, 7, 1, 9),
        "adaptive_avg_pool2d": [
            *adaptive(image, 2, (5, 3), (None, 8), 1, (1, 4)),
            Sample((image, 0), oracle_grad=False),  # not differentiable in PyTorch
        ],
        "adaptive_avg_pool3d": adaptive(volume, 2, (1, 3, 3), 1),
        "lp_pool1d": norms(line),
        "lp_pool2d": norms(image),
        "lp_pool3d": norms(volume)[:1],
        "resample": resampling(),
        **fractional(),
        **unpooling(),
    }


def fractional():
    """Samples whose window positions do not depend on the random numbers."""
    image, volume = grid(2, 2, 6, 7), grid(1, 2, 6, 4, 4)
    return {
        "fractional_max_pool2d_with_indices": [
            Sample((image, 2, (3, 6))),
            Sample((image, (2, 3)), {"output_ratio": (0.5, 0.5)}),
            Sample((image[0], 2, 1)),
        ],
        "fractional_max_pool3d_with_indices": [
            Sample((volume, 2, (3, 2, 1))),
            Sample((volume[0], (2, 1, 2)), {"output_ratio": (0.5, 0.5, 0.5)}),
        ],
    }


def unpooling():
    line, image = grid(2, 2, 3), grid(2, 1, 2, 3)
    places = np.array([[[0, 3, 5], [1, 2, 4]], [[5, 0, 1], [4, 3, 2]]])
    flat = np.array([[[[0, 7, 11], [3, 23, 16]]], [[[1, 2, 3], [23, 22, 21]]]])
    return {
        "max_unpool1d": [Sample((line, places, 2)), Sample((line, places, 2), {"output_size": (7,)})],
        "max_unpool2d": [
            Sample((image, flat, 2)),
            Sample((image[0], flat[0], (2, 2), 2)),
            Sample((image, flat, 2), {"output_size": (2, 1, 5, 7)}),
            Sample((image, flat, 3, 2, 0)),
            Sample((np.zeros((0, 1, 2, 3)), flat[:0], 2)),
        ],
        "max_unpool3d": [
            Sample((grid(1, 2, 1, 1, 2), np.array([0, 5, 3, 2]).reshape(1, 2, 1, 1, 2), (1, 2, 2))),
            Sample((grid(2, 1, 1, 2), np.array([0, 5, 3, 2]).reshape(2, 1, 1, 2), (1, 2, 2))),
        ],
    }


def by_windows(function, x):
    """Max pooling of images with 2 x 2 windows."""
    x = x[..., : x.shape[-2] // 2 * 2, : x.shape[-1] // 2 * 2]
    rows, columns = x.shape[-2] // 2, x.shape[-1] // 2
    return function(x.reshape(*x.shape[:-2], rows, 2, columns, 2), (-3, -1))


def resampling():
    from cygrad._kernels.cpu.image.resampling import Table

    weighted = Table(4, [[0, 1], [3, 2], [1, 1]], [2, 2, 1], np.array([[0.5, 2.0], [1.5, -1.0], [3.0, 0.0]]))
    sums = Table(9, [[0, 1, 2, 3, 4, 5, 6, 7, 8]])
    dense = {
        weighted: np.array([[0.5, 2, 0, 0], [0, 0, -1, 1.5], [0, 3, 0, 0]]),
        sums: np.ones((1, 9)),
        weighted.transposed: np.array([[0.5, 2, 0, 0], [0, 0, -1, 1.5], [0, 3, 0, 0]]).T,
    }

    def by_matrices(x, tables, divisor=None, back=False):
        first, second = (dense[table].T if back else dense[table] for table in tables)
        y = x if divisor is None or not back else x / divisor
        y = first @ y @ second.T
        return y if divisor is None or back else y / divisor

    return [
        Sample((grid(2, 4, 9), (weighted, sums)), numpy=by_matrices),
        Sample((grid(3, 4), (weighted.transposed, weighted)), numpy=by_matrices),
        Sample((grid(3, 1), (weighted, sums), None, True), numpy=by_matrices),
    ]


def errors():
    x = grid(2, 3, 8, 8)

    def calls(*cases):
        return [Sample(case[:-1], case[-1]) for case in cases]

    def pooling():
        return calls(
            (x, (2, 3, 4), {}),
            (x, 2, (1, 2, 3), {}),
            (x, 2, None, 2, {}),
            (x, 2, None, -1, {}),
            (x, 0, {}),
            (x, 2, 0, {}),
            (x, 9, {}),
            (x[:, :, :0], 2, {}),
            (3, 2, {}),
            (x, "a", {}),
            (x, 2.5, {}),
        )

    z = complex_grid(2, 3, 8, 8)
    return {
        "max_pool2d": [
            *pooling(),
            *calls((x[0, 0], 2, {}), (x, 2, 1, 2, 3, {}), (x, 2, {"dilation": 0}), (x > 0, 2, {}), (z, 2, {})),
        ],
        "max_pool1d": calls(
            (x, 2, {}),
            (x[0], 9, {}),
            (x[0], 2, None, 2, {}),
            (x[0], 0, {}),
            (x[0], 2, 0, {}),
            (x[0], 2, {"dilation": 0}),
            (integers(2, 3, 4), 2, {}),
        ),
        "avg_pool2d": [*pooling(), *calls((x, 2, {"divisor_override": 0}), (z, 2, {}))],
        "max_pool3d": calls((x[:, None], 2, 1, 2, 3, {})),
        "avg_pool1d": calls((x, 2, {}), (x[0], 9, {})),
        "avg_pool3d": calls((x[0], 2, {})),
        "adaptive_avg_pool2d": calls((x, (3,), {}), (x, -1, {}), (integers(2, 3, 8, 8), 3, {}), (x[0, 0], 2, {})),
        "adaptive_max_pool2d": calls(
            (integers(2, 3, 8, 8), 3, {}), (x[0, 0], 3, {}), (x, (1, 2, 3), {}), (x[:, :, :0], 3, {})
        ),
        "max_unpool2d": calls(
            (x, np.zeros(x.shape), 2, {}),
            (x, np.zeros((1, 3, 8, 8), int), 2, {}),
            (x, np.full(x.shape, -1), 2, {}),
            (x, np.full(x.shape, 1000), 2, {}),
            (x, np.zeros(x.shape, int), 2, {"output_size": (19, 16)}),
            (x, np.zeros(x.shape, int), 2, {"output_size": (16,)}),
        ),
        "fractional_max_pool2d_with_indices": calls(
            (x, 2, {}),
            (x, 2, 8, {}),
            (x, 2, {"output_ratio": (1.5, 1.5)}),
            (x[0, 0], 2, 3, {}),
            (integers(2, 3, 8, 8), 2, 3, {}),
            (x, 2, 3, {"_random_samples": positive(2, 3, 3)}),
            (x, 2, 3, {"_random_samples": positive(2, 3, 2).astype(np.float32)}),
        ),
    }
