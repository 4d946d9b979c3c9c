"""ONNX forms of resampling."""

from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.convolution import spread
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.pooling import adaptive_mean
from cygrad.export._onnx_forms.table import Unsupported, form

_MODES = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
          "trilinear": "linear", "bicubic": "cubic"}  # fmt: skip


@form("interpolate", "upsample")
def interpolate(
    g: Graph,
    input: Value,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Value:
    n = input.rank - 2
    if mode == "area":
        return adaptive_mean(g, input, n, list(g.results[0].shape[2:]))
    if antialias:
        raise Unsupported("`antialias=True`")
    exact = mode == "nearest-exact"
    coordinates = "half_pixel" if mode != "nearest" else "asymmetric"
    if align_corners:
        coordinates = "align_corners"
    scales = sizes = None
    if size is not None:
        sizes = g.op("Concat", g.size(input, 0), g.size(input, 1), g.ints(spread(size, n)), axis=0)
    elif recompute_scale_factor:
        if any(length is None for length in input.shape[2:]):
            raise Unsupported("`recompute_scale_factor=True` with lengths that vary")
        sizes = g.op("Concat", g.size(input, 0), g.size(input, 1), g.ints(list(g.results[0].shape[2:])), axis=0)
    else:
        scales = g.constant(np.array([1.0, 1.0, *spread(scale_factor, n)]), cygrad.float32)
    return g.op(
        "Resize", input, None, scales, sizes, mode=_MODES[mode], coordinate_transformation_mode=coordinates,
        nearest_mode=("round_prefer_ceil" if exact else "floor") if _MODES[mode] == "nearest" else None,
        cubic_coeff_a=-0.75 if mode == "bicubic" else None)  # fmt: skip


@form("upsample_nearest")
def upsample_nearest(g: Graph, input: Value, size: Any = None, scale_factor: Any = None) -> Value:
    return interpolate(g, input, size, scale_factor)


@form("upsample_bilinear")
def upsample_bilinear(g: Graph, input: Value, size: Any = None, scale_factor: Any = None) -> Value:
    return interpolate(g, input, size, scale_factor, "bilinear", True)


@form("grid_sample")
def grid_sample(
    g: Graph,
    input: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Value:
    if g.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    elif input.rank != 4:
        raise Unsupported("volumes; opset_version=20 has them")
    return g.op("GridSample", input, grid, mode=mode, padding_mode=padding_mode, align_corners=int(bool(align_corners)))


@form("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    g: Graph, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    return grid_sample(g, input, grid, mode, ("zeros", "border", "reflection")[padding_mode], align_corners)


@form("affine_grid", "affine_grid_generator")
def affine_grid(g: Graph, theta: Value, size: Any, align_corners: bool | None = None) -> Value:
    if g.opset < 20:
        raise Unsupported("affine grids; opset_version=20 has them")
    return g.op("AffineGrid", theta, g.ints(list(size)), align_corners=int(bool(align_corners)))
