"""Grid sampling: image positions and interpolation weights of grid points, for sampling images at arbitrary points.

A grid holds points (n, *places, dimensions) with coordinates from -1 to 1; the first coordinate belongs to the last
dimension of the image.
"""

import math
from itertools import product
from typing import Any

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense, new_array, zeros
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.indexing.scatter import add_rows
from cygrad._kernels.device.cupy_library import beside
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

SAMPLE, SAMPLE_GRADIENT = LOOPS.SAMPLE, LOOPS.SAMPLE_GRADIENT
MOST_POINTS = LOOP_SIZES.MOST_POINTS
PIECE = 1 << 13  # results per chunk
PADDINGS = ("zeros", "border", "reflection")  # as in grid_sampling.h, like the order of modes below
CUBIC = -0.75


def near(x):
    """The cubic convolution kernel at a distance below 1; for arrays and tensors."""
    return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1


def near_slope(x):
    return (3 * (CUBIC + 2) * x - 2 * (CUBIC + 3)) * x


def far(x):
    """The cubic convolution kernel at a distance between 1 and 2."""
    return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC


def far_slope(x):
    return (3 * CUBIC * x - 10 * CUBIC) * x + 8 * CUBIC


# For each mode and tap: (offset from the element before the point, weight, slope of the weight). Weight and slope are
# functions of the point's fractional position between its neighbors.
WEIGHTS: dict[str, list[tuple[int, Any, Any]]] = {
    "bilinear": [(0, lambda f: 1 - f, lambda f: f * 0 - 1), (1, lambda f: f, lambda f: f * 0 + 1)],
    "nearest": [(0, None, None)],
    "bicubic": [
        (-1, lambda f: far(f + 1), lambda f: far_slope(f + 1)),
        (0, near, near_slope),
        (1, lambda f: near(1 - f), lambda f: -near_slope(1 - f)),
        (2, lambda f: far(2 - f), lambda f: -far_slope(2 - f)),
    ],
}


class Axis:
    """Points along one image dimension: coordinate = slope * grid + an offset that is locally constant.

    `places` and `inside` hold, for each tap, the element index and whether it is inside the image; `share` is the
    point's fractional position between tap 0 and the next, and `is_lost` marks points that are not finite.
    """

    def __init__(self, grid, size, mode, padding, align_corners, is_of_volume=False):
        if align_corners:
            at, slope = (grid + 1) / 2 * (size - 1), (size - 1) / 2
        else:
            at, slope = ((grid + 1) * size - 1) / 2, size / 2
        slope = np.full_like(grid, slope)
        if mode != "bicubic":
            at, sign = padded(at, size, padding, align_corners, is_of_volume)
            slope = slope * sign
        self.is_lost = ~np.isfinite(at)
        if is_of_volume:  # non-finite points are far outside or at the last element, as in PyTorch
            at = np.where(self.is_lost, at.dtype.type(-2 if padding == "zeros" else size - 1), at)
        first = np.rint(at) if mode == "nearest" else np.floor(at)
        self.share, self.slope = at - first, slope
        self.places, self.inside = [], []
        for shift, _, _ in WEIGHTS[mode]:
            place = first + shift
            if mode == "bicubic":
                place, _ = padded(place, size, padding, align_corners)
            self.inside.append((place >= 0) & (place < size))
            self.places.append(np.fmin(np.fmax(place, 0), size - 1).astype(np.int64))  # 0 for NaN


def padded(at, size, padding, align_corners, keeps_nan=False):
    """Map coordinates into the image as `padding` requires; return them and their slopes."""
    sign: Any = 1
    if padding == "zeros":
        return at, sign
    if padding == "reflection":
        at, sign = reflected(at, *((0, size - 1) if align_corners else (-0.5, size - 0.5)))
    if not keeps_nan:
        at = np.where(np.isnan(at), at.dtype.type(0), at)
    sign = np.where((at <= 0) | (at >= size - 1), 0, sign).astype(at.dtype)
    return np.clip(at, 0, size - 1), sign


def reflected(at, low, high):
    """Reflect coordinates into [low, high]; return them and the signs of their slopes."""
    if high == low:
        return np.zeros_like(at), np.zeros_like(at)
    away = np.abs(at - low)
    turns, rest = np.divmod(away, at.dtype.type(high - low))
    sign = np.where(at < low, -1, 1).astype(at.dtype)
    odd = turns % 2 == 1
    return np.where(odd, high - rest, rest + low).astype(at.dtype), np.where(odd, -sign, sign)


@silent
def axes(grid, sizes, mode, padding, align_corners):
    """Return an `Axis` with points (n, places) for each dimension of the image."""
    flat = grid.reshape(len(grid), math.prod(grid.shape[1:-1]), len(sizes))
    last = len(sizes) - 1
    return [Axis(flat[..., last - d], size, mode, padding, align_corners, last == 2) for d, size in enumerate(sizes)]


def corners(points, sizes):
    """Yield for each combination of taps: (tap numbers, flat positions in the image, which of these are inside)."""
    for taps in product(*[range(len(axis.places)) for axis in points]):
        place: Any = 0
        inside: Any = True
        for axis, tap, size in zip(points, taps, sizes):
            place = place * size + axis.places[tap]
            inside = inside & axis.inside[tap]
        yield taps, place, inside


@noted
@silent
def neighbourhoods(grid, sizes, mode, padding, align_corners):
    """Data that gradients need about points: (lines, places, inside), each (n, items, points).

    For each dimension, the last one first, `lines` holds slope and offset of `share` as a function of the grid; for
    each combination of taps, `places` and `inside` hold the output of `corners`. In volumes, points that are NaN, or
    infinite and not padded into the image, have no gradient: none of their taps is inside.
    """
    flat = grid.reshape(len(grid), math.prod(grid.shape[1:-1]), len(sizes))
    points = axes(grid, sizes, mode, padding, align_corners)
    flat = np.where(np.isfinite(flat), flat, flat.dtype.type(0))  # infinite points clamped to the border are constant
    lines = []
    for i, axis in enumerate(points[::-1]):
        lines += [axis.slope, axis.share - flat[..., i] * axis.slope]
    places, inside = zip(*[found for _, *found in corners(points, sizes)], strict=True)
    is_inside = np.stack(inside, 1)
    if len(sizes) == 3:
        for axis in points:
            is_inside &= ~axis.is_lost[:, None]
    return np.stack(lines, 1).astype(grid.dtype, copy=False), np.stack(places, 1), is_inside


def _numbers(x, grid, mode, padding, align_corners):
    """The integer arguments of the loops; None if there is no loop, for other types and for larger planes."""
    count, points, dims = math.prod(x.shape[2:]), math.prod(grid.shape[1:-1]), grid.shape[-1]
    fits = type(x) is type(grid) is np.ndarray and x.dtype == grid.dtype and loop_table.has_loops(x) and count < 1 << 31
    if not fits or not x.size or not grid.size:
        return None
    if len(x) != len(grid) or x.ndim != dims + 2 or dims > 3 or mode == "bicubic" and dims > 2:
        raise ValueError(f"images of shape {x.shape} at a grid of shape {grid.shape}")
    how = list(WEIGHTS).index(mode), PADDINGS.index(padding), align_corners
    return *how, dims, x.shape[1], points, count, *x.shape[2:]


def sample(x, grid, mode, padding, align_corners):
    """Sample the images at the points of the grid."""
    numbers = _numbers(x, grid, mode, padding, align_corners)
    if numbers is None:
        return _sample_by_numpy(x, grid, mode, padding, align_corners)
    out = new_array((*x.shape[:2], *grid.shape[1:-1]), x.dtype.num)
    items = len(x) * -(-numbers[5] // MOST_POINTS)
    loop_table.run(SAMPLE, (dense(x), dense(grid), out), numbers, 0, items, max(1, PIECE // (MOST_POINTS * x.shape[1])))
    return out


@noted
def sample_gradient(g, x, grid, shape, how, wanted):
    """Return (gradient of images of that shape, gradient of the grid), None for an unwanted one; None without a loop.

    `x` may be None if only the first is wanted.
    """
    like = np.broadcast_to(g.dtype.type(0), shape) if x is None and type(g) is np.ndarray else x
    numbers = None if like is None else _numbers(like, grid, *how)
    if numbers is None or type(g) is not np.ndarray or g.dtype != grid.dtype:
        return None
    if like.shape != shape or g.size != len(grid) * numbers[4] * numbers[5]:
        raise ValueError(f"a gradient of shape {g.shape} for images of shape {like.shape}")
    grad_x = zeros(shape, g.dtype.num) if wanted[0] else None
    grad_grid = new_array(grid.shape, g.dtype.num) if wanted[1] else None
    given = dense(g), dense(grid), None if x is None else dense(x), grad_x, grad_grid
    loop_table.run(SAMPLE_GRADIENT, given, numbers, 0, len(grid), 1)
    return grad_x, grad_grid


@silent
def _sample_by_numpy(x, grid, mode, padding, align_corners):
    sizes = x.shape[2:]
    points = axes(grid, sizes, mode, padding, align_corners)
    weights = [[weight and weight(axis.share) for _, weight, _ in WEIGHTS[mode]] for axis in points]
    flat = np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(sizes))
    out = np.zeros((*x.shape[:2], points[0].share.shape[1]), x.dtype)
    for taps, places, inside in corners(points, sizes):
        weight: Any = None
        for d, tap in enumerate(taps):
            if weights[d][tap] is not None:
                weight = weights[d][tap] if weight is None else weight * weights[d][tap]
        for i in range(len(x)):
            part = flat[i].take(places[i], axis=1)
            if np.count_nonzero(inside[i]) != inside[i].size:
                part[:, ~inside[i]] = 0
            if weight is not None:
                part *= weight[i]
            out[i] += part
    return out.reshape(*x.shape[:2], *grid.shape[1:-1])


def take_columns(x, places):
    """Take columns of x (n, channels, size) at places (n, count): (n, channels, count)."""
    out = np.empty((*x.shape[:2], places.shape[1]), x.dtype)
    for i in range(len(x)):
        np.take(x[i], places[i], axis=1, out=out[i])
    return out


def add_columns(g, places, size):
    """The transpose of `take_columns`: add g (n, channels, count) to zeros (n, channels, size) at its places."""
    out = np.zeros((*g.shape[:2], size), g.dtype)
    for i in range(len(g)):
        rows = np.zeros((size, g.shape[1]), g.dtype)
        add_rows(rows, places[i], np.ascontiguousarray(g[i].T))
        out[i] = rows.T
    return out


@noted
def affine_base(size, align_corners, like):
    """The points (places, dimensions + 1) of a regular grid over an image, with a trailing 1; type of `like`."""
    lines = []
    dtype = like.dtype
    for n in size:
        line = np.linspace(-1, 1, n, dtype=dtype) if n > 1 else np.zeros(1, dtype)
        lines.append(line if align_corners else line * dtype.type((n - 1) / n))
    mesh = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(tuple(size), dtype)], -1).reshape(-1, len(size) + 1)
    return beside(base, like)


dispatching(globals(), "sample take_columns add_columns")
