"""Samples images at arbitrary points on GPUs; takes the arguments of `_kernels/cpu/image/grid_sampling.py`."""

import math

from cygrad._kernels.cpu.image.grid_sampling import WEIGHTS, axes, corners
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.base.arrays import zeros
from cygrad._kernels.gpu.indexing.scatter import add_rows
from cygrad._kernels.gpu.launch.program import Program

_SAMPLE = Program(
    "sample",
    """
// Adds what one combination of taps gives to the results (images, channels, points).
extern "C" __global__ void sample(const T* images, const whole* places, const bool* inside, const T* weights, T* out,
                                  whole channels, whole size, whole points, whole first, whole total) {
    EACH_OF(i, total) {
        whole n = i / (channels * points), at = n * points + i % points, plane = i / points;
        W v = inside[at] ? W(images[plane * size + places[at]]) : W(0);
        if (weights) v *= W(weights[at]);
        out[i] = T(first ? v : v + W(out[i]));
    }
}
""",
)


@half_as_float32
def sample(x, grid, mode, padding, align_corners):
    """Sample the images at the points of the grid."""
    sizes = x.shape[2:]
    points = axes(grid, sizes, mode, padding, align_corners)
    weights = [[weight and weight(axis.share) for _, weight, _ in WEIGHTS[mode]] for axis in points]
    x, count = dense(x), points[0].share.shape[1]
    out = cupy().empty((*x.shape[:2], count), x.dtype)
    for number, (taps, places, inside) in enumerate(corners(points, sizes)):
        weight = None
        for d, tap in enumerate(taps):
            if weights[d][tap] is not None:
                weight = weights[d][tap] if weight is None else weight * weights[d][tap]
        args = x, dense(places), dense(inside), None if weight is None else dense(weight), out
        numbers = x.shape[1], math.prod(sizes), count, int(number == 0), out.size
        _SAMPLE.over(x.dtype, out.size, (*args, *numbers))
    return out.reshape(*x.shape[:2], *grid.shape[1:-1])


def take_columns(x, places):
    """Gather from x (n, channels, size) at places (n, count), giving (n, channels, count)."""
    return cupy().take_along_axis(x, places[:, None], 2)


def add_columns(g, places, size):
    """Transpose of `take_columns`: scatter-add g (n, channels, count) into zeros (n, channels, size)."""
    n, channels, count = g.shape
    out = zeros(g, (n, channels, size), g.dtype)
    rows = cupy().arange(n * channels).reshape(n, channels, 1) * size + places[:, None]
    add_rows(out.reshape(-1, 1), rows.reshape(-1), g.reshape(-1, 1))
    return out
