"""Sampling of images at arbitrary points: affine grids and grid_sample."""

import itertools
import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, IN1, LINEAR, NONDIFF, PRIVATE, declare, facts, publish, shown
from cygrad._core.graph.record import apply1_args, apply_n, record_outputs
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.image import grid_sampling as kernels
from cygrad._ops.base.arguments import integers, require
from cygrad._ops.base.arithmetic import add, mul
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import typed
from cygrad._ops.base.creation import zeros
from cygrad._ops.base.products import matmul
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import select, stack
from cygrad._ops.base.views import reshape, transpose, unsqueeze
from cygrad._ops.elementwise.logic import isfinite
from cygrad._ops.elementwise.selection import where

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = kernels.PADDINGS

# -- columns --


def take_rule(n, g):
    return add_columns(g, n.saved(1), n.args[0]) if n.needs(0) else None, None


TAKE_COLUMNS = declare(
    "take_columns",
    take_rule,
    saves=(IN1,),
    flags=PRIVATE,
    kernel=lambda x, places, _: kernels.take_columns(x, places),
    inputs="self places",
)


def take_columns(input, places):
    """Return columns of matrices (n, rows, columns) at indices (n, count). Gradient: g added at those columns."""
    return apply_n(TAKE_COLUMNS, (input, places), (input.shape[2],))


def add_rule(n, g):
    return take_columns(g, n.saved(1)) if n.needs(0) else None, None


ADD_COLUMNS = declare(
    "add_columns", add_rule, saves=(IN1,), flags=PRIVATE, kernel=kernels.add_columns, inputs="self places"
)


def add_columns(input, places, size):
    """Transpose of `take_columns`, for matrices with `size` columns. Gradient: g at those columns."""
    return apply_n(ADD_COLUMNS, (input, places), (size,))


@rule("take_columns add_columns")
def _columns(call):
    x, places = (call.full(t).flatten(0, 1) for t in call.inputs)
    return call.shaped(apply_n(call.op, (x, places), call.args), call.out.shape)


# -- grid_sample --

NEIGHBOURHOODS = declare("grid_neighbourhoods", flags=NONDIFF | PRIVATE, inputs="grid")


def grid_neighbourhoods(grid, *how):
    """Return three tensors that describe the points of a grid.

    See `neighbourhoods` in `_kernels/cpu/image/grid_sampling.py`.
    """
    return record_outputs(NEIGHBOURHOODS, kernels.neighbourhoods(array_of(grid), *how), (grid,), how, 0)


@rule("grid_neighbourhoods")
def _grid_neighbourhoods(call):
    found = grid_neighbourhoods(call.full(call.inputs[0]).flatten(0, 1), *call.args)
    return [call.shaped(part, out.shape) for part, out in zip(found, call.outs, strict=True)]


def grid_rule(n, g):
    """Sum over the corners around each point; their weights depend on the grid through the fractional position."""
    shape, mode, padding, align_corners = n.args
    x, grid = n.saved(0) if n.needs(1) else None, n.saved(1)
    if get_modes() & NO_GRAD:
        found = _by_loop(n, g, x, grid)
        if found is not None:
            return found
    sizes, dims = shape[2:], len(shape) - 2
    flat = reshape(grid, (shape[0], math.prod(grid.shape[1:-1]), dims))
    lines, places, inside = grid_neighbourhoods(grid, sizes, mode, padding, align_corners)
    flat = where(isfinite(flat), flat, 0.0)  # as in `neighbourhoods`
    g = reshape(g, (shape[0], shape[1], flat.shape[1]))
    weights, slopes = weights_of(lines, flat, mode)
    count = math.prod(sizes)
    x = None if x is None or mode == "nearest" else reshape(x, (shape[0], shape[1], count))
    grad_x, grad_shares = None, [None] * dims
    for i, taps in enumerate(itertools.product(range(len(kernels.WEIGHTS[mode])), repeat=dims)):
        chosen = [weights[d][tap] for d, tap in enumerate(taps)]
        there, is_inside = select(places, 1, i), select(inside, 1, i)
        if n.needs(0):
            weight = product(chosen, is_inside, g.dtype)
            part = add_columns(mul(g, unsqueeze(weight, 1)), there, count)
            grad_x = part if grad_x is None else add(grad_x, part)
        if x is not None:
            sums = where(is_inside, total(mul(g, take_columns(x, there)), 1), 0.0)
            for d in range(dims):
                others = [slopes[d][taps[d]], *chosen[:d], *chosen[d + 1 :]]
                part = mul(sums, product(others, None, g.dtype))
                grad_shares[d] = part if grad_shares[d] is None else add(grad_shares[d], part)
    grad_grid = None
    if n.needs(1):
        grad_grid = zeros(tuple(grid.shape), dtype=grid.dtype, device=grid.device)
        if x is not None:
            parts = [mul(grad_shares[dims - 1 - i], select(lines, 1, 2 * i)) for i in range(dims)]
            grad_grid = reshape(stack(parts, -1), tuple(grid.shape))
    return None if grad_x is None else reshape(grad_x, shape), grad_grid


def _by_loop(n, g, x, grid):
    """Compute the gradients with one loop, in a backward pass that is not recorded; None if no loop fits."""
    shape, *how = n.args
    image = None if x is None else array_of(x)
    found = kernels.sample_gradient(array_of(g), image, array_of(grid), shape, how, (n.needs(0), n.needs(1)))
    return None if found is None else tuple(None if array is None else tensor_of(array) for array in found)


def weights_of(lines, flat, mode):
    """Return weights and slopes of the taps for each dimension, as differentiable functions of the grid."""
    weights, slopes = [], []
    for d in reversed(range(flat.shape[2])):
        if mode == "nearest":
            weights.append([None])
            slopes.append([None])
            continue
        share = add(mul(select(flat, 2, d), select(lines, 1, 2 * d)), select(lines, 1, 2 * d + 1))
        weights.append([weight(share) for _, weight, _ in kernels.WEIGHTS[mode]])
        slopes.append([slope(share) for _, _, slope in kernels.WEIGHTS[mode]])
    return weights, slopes


def product(factors, inside, dtype):
    """Multiply the factors that are not None (None if all are), with 0 where not `inside`."""
    found = None
    for factor in factors:
        if factor is not None:
            found = factor if found is None else mul(found, factor)
    if inside is None:
        return found
    return inside.to(dtype) if found is None else where(inside, found, 0.0)


def sampler(dims):
    return declare(
        f"grid_sampler_{dims}d",
        grid_rule,
        saves=(IN1, IN0 | IN1),
        flags=FUNCTION_ONLY,
        kernel=lambda x, grid, _, *how: kernels.sample(x, grid, *how),
        node=f"GridSampler{dims}DBackward0",
        inputs="input grid",
        derived={
            "align_corners": (3,),
            "interpolation_mode": lambda n: ("bilinear", "nearest", "bicubic").index(n.args[1]),
            "padding_mode": lambda n: ("zeros", "border", "reflection").index(n.args[2]),
        },
    )


SAMPLERS = {2: sampler(2), 3: sampler(3)}


def check(t, grid, mode):
    """Raise unless images and grid match."""
    shapes = f"but got input with sizes {list(t.shape)} and grid with sizes {list(grid.shape)}"
    if t.dim() < 1 or grid.dim() < 1 or t.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {shapes}")
    if grid.shape[-1] != t.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {t.dim() - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if t.dim() not in (4, 5) or t.dim() != grid.dim():
        wanted = 4 if t.dim() == 4 else 5
        raise RuntimeError(
            f"grid_sampler(): expected {wanted}D input and grid with same number of dimensions, {shapes}"
        )
    for d in range(2, t.dim()):
        if t.shape[d] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(t.shape)} with dimension {d} being empty"
            )
    if t.dim() == 5 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not t.is_floating_point():
        raise messages.not_implemented_for(f"grid_sampler_{t.dim() - 2}d_cpu_kernel_impl", t.dtype)
    if t.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {t.dtype.type_name} but found {grid.dtype.type_name}")


def sampled(function, input, grid, mode, padding, align_corners):
    t, grid = require(input, function), require(grid, function, "grid", 2)
    check(t, grid, mode)
    return apply_n(SAMPLERS[t.dim() - 2], (t, grid), (tuple(t.shape), mode, padding, bool(align_corners)))


def named(names, number, word):
    if not 0 <= number < len(names):
        raise RuntimeError(f"grid_sampler(): there is no {word} with the number {number}")
    return names[number]


NUMBERS = {"interpolation_mode": int, "padding_mode": int, "align_corners": bool}


@facts(autocast="float32", autocast_gpu="widest")
@typed(**NUMBERS)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sample` with modes and paddings as numbers, in the order listed there; the gradients are the same.

    >>> import cygrad
    >>> cygrad.grid_sampler(cygrad.arange(4.0).reshape(1, 1, 2, 2), cygrad.zeros(1, 1, 1, 2), 0, 0, True)
    tensor([[[[1.5000]]]])
    """
    mode, padding = named(MODES, interpolation_mode, "mode"), named(PADDINGS, padding_mode, "padding")
    return sampled("grid_sampler", input, grid, mode, padding, align_corners)


@facts(autocast="float32", autocast_gpu="widest")
@typed(**NUMBERS)
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sampler` of images. Saves both. Gradient: as for `grid_sample`, also where the slope changes.

    >>> import cygrad
    >>> cygrad.grid_sampler_2d(cygrad.arange(4.0).reshape(1, 1, 2, 2), cygrad.zeros(1, 1, 1, 2), 0, 0, True)
    tensor([[[[1.5000]]]])
    """
    require(input, "grid_sampler_2d")
    require(grid, "grid_sampler_2d", "grid", 2)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@facts(autocast="float32", autocast_gpu="widest")
@typed(**NUMBERS)
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sampler` of volumes. Saves both. Gradient: as for `grid_sample`, also where the slope changes.

    >>> import cygrad
    >>> cygrad.grid_sampler_3d(cygrad.arange(8.0).reshape(1, 1, 2, 2, 2), cygrad.zeros(1, 1, 1, 1, 3), 0, 0, True)
    tensor([[[[[3.5000]]]]])
    """
    require(input, "grid_sampler_3d")
    require(grid, "grid_sampler_3d", "grid", 2)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@rule("grid_sampler_2d grid_sampler_3d")
def _grid_sampler(call):
    x, grid = (call.full(t).flatten(0, 1) for t in call.inputs)
    return call.shaped(apply_n(call.op, (x, grid), (tuple(x.shape), *call.args[1:])), call.out.shape)


DEFAULT_CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


@facts(autocast="float32", autocast_gpu="widest")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Sample images (n, channels, height, width) at the points of a grid (n, rows, columns, 2), or volumes (..., 3).

    Coordinates range from -1 to 1 over the image, x (along the width) first: between the centers of the corner elements
    with `align_corners`, between their outer corners without. Thus x lies at column (x + 1) / 2 * (width - 1), or at
    ((x + 1) * width - 1) / 2. `mode` is 'bilinear' (the elements around the point), 'nearest', or 'bicubic' (images
    only). `padding_mode` defines values outside the image: 'zeros', the 'border', or the image's 'reflection'. The
    result has shape (n, channels, rows, columns).

    Saves both. Gradients: for `input`, g times the weights of the elements; for `grid`, the slopes of the weights times
    the elements times g, and 0 with 'nearest' and where padding clamps a point to the border. At the center of an
    element, where the slope changes, the slope is that on the side of larger coordinates. Warns if `align_corners` is
    omitted. Raises RuntimeError for incompatible shapes and dtypes, ValueError for an unknown mode or padding.

    >>> import cygrad
    >>> image = cygrad.arange(4.0).reshape(1, 1, 2, 2)
    >>> points = cygrad.tensor([[[[-1.0, -1.0], [0.0, 0.0], [1.0, -1.0]]]])
    >>> cygrad.nn.functional.grid_sample(image, points, align_corners=True)
    tensor([[[[0.0000, 1.5000, 1.0000]]]])
    """
    if mode not in MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warn(DEFAULT_CHANGED)
    return sampled("grid_sampler", input, grid, mode, padding_mode, align_corners)


UNIT_SIZE = (
    "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
    "intended use case of affine_grid. See the documentation of affine_grid for details."
)

# -- affine_grid --


@silent
def affine_array(theta, size, align_corners):
    base = kernels.affine_base(size[2:], align_corners, theta)
    return np.matmul(base, theta.swapaxes(1, 2)).reshape(size[0], *size[2:], len(size) - 2)


def affine_rule(n, g):
    size, align_corners = n.args
    base = tensor_of(kernels.affine_base(size[2:], align_corners, array_of(g)))
    return matmul(transpose(reshape(g, (size[0], base.shape[0], len(size) - 2)), 1, 2), base)


AFFINE_GRID = declare(
    "affine_grid_generator",
    affine_rule,
    flags=FUNCTION_ONLY | LINEAR,
    kernel=affine_array,
    inputs="theta",
    attributes="size align_corners",
)


@typed(align_corners=bool)
def affine_grid_generator(theta, size, align_corners):
    """`affine_grid` with fewer checks and no warnings. Saves nothing. Gradient: the sum of g times the points.

    >>> import cygrad
    >>> cygrad.affine_grid_generator(cygrad.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    t, size = require(theta, "affine_grid_generator", "theta"), integers(size, "affine_grid_generator", "size", 2)
    if len(size) not in (4, 5):
        raise RuntimeError(f"AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, but got {len(size)}d")
    if min(size) <= 0:
        raise RuntimeError(f"Expected non-zero, positive output size. Got {list(size)}")
    dims = len(size) - 2
    if tuple(t.shape[1:]) != (dims, dims + 1) or not t.is_floating_point():
        raise RuntimeError(f"Expected theta of floating point type and shape {[size[0], dims, dims + 1]}")
    if t.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {dims + 1}] but got: "
            f"[{t.shape[0]}, {dims + 1}]."
        )
    return apply1_args(AFFINE_GRID, t, (size, bool(align_corners)), None)


@rule("affine_grid_generator")
def _affine_grid(call):
    theta, (size, align_corners) = call.full(call.inputs[0]).flatten(0, 1), call.args
    found = apply_n(call.op, (theta,), ((len(theta), *size[1:]), align_corners))
    return call.shaped(found, call.out.shape)


@shown
def affine_grid(theta, size, align_corners=None):
    """Return a grid of points (n, height, width, 2) for `grid_sample`: the points of an image, moved by affine maps.

    `theta` holds n matrices (2, 3), and `size` is (n, channels, height, width) of the result of `grid_sample`; for
    volumes, (3, 4) and (n, channels, depth, height, width). Point (x, y) of the result's image becomes
    `theta @ (x, y, 1)`. `align_corners` is as in `grid_sample`; omitting it triggers a warning.

    Saves nothing. Gradient: the sum of g times the points. Raises ValueError for invalid sizes.

    >>> import cygrad
    >>> same = cygrad.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> cygrad.nn.functional.affine_grid(same, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    t = require(theta, "affine_grid", "theta")
    if align_corners is None:
        warn(DEFAULT_CHANGED)
        align_corners = False
    if not t.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {t.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    dims = len(size) - 2
    if tuple(t.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got {t.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and min(size[2:]) == 1:
        warn(UNIT_SIZE)
    return affine_grid_generator(t, tuple(size), align_corners)


composite = {"grid_sampler": FUNCTION_ONLY}
functions = publish(globals())
