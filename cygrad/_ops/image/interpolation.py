"""Resizes images: each element of the result is a weighted sum of neighboring input elements.

Dimensions are resized one after the other. This module builds the tables of weights;
`_kernels/cpu/image/resampling.py` computes
the sums.
"""

import math
from functools import lru_cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import (
    FUNCTION_ONLY,
    IMAGE,
    IMAGE_GRADIENT,
    METHOD_ONLY,
    facts,
    note_facts,
    publish,
    shown,
)
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._kernels.cpu.image.resampling import Table
from cygrad._ops.base.arguments import is_integer, require
from cygrad._ops.image.average_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from cygrad._ops.image.resampling import resample, resampling

MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "lanczos", "area", "nearest-exact")
BY_DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}

# -- tables --


def step(image, size, factor, align_corners, kind):
    """Distance between neighboring result positions, in input elements."""
    if align_corners:
        return kind((image - 1) / (size - 1)) if size > 1 else kind(0)
    return kind(1 / factor) if factor else kind(image) / kind(size)


def sources(image, size, factor, align_corners, kind):
    """Input coordinates of the result positions."""
    places, scale = np.arange(size).astype(kind), step(image, size, factor, align_corners, kind)
    return places * scale if align_corners else (places + kind(0.5)) * scale - kind(0.5)


@lru_cache(maxsize=256)
def nearest(image, size, factor, exact):
    scale = step(image, size, factor, False, np.float32)  # as in PyTorch, whatever the dtype of the elements
    places = np.arange(size, dtype=np.float32) + np.float32(0.5 if exact else 0)
    return Table(image, np.minimum(np.floor(places * scale).astype(np.int64), image - 1)[:, None])


@lru_cache(maxsize=256)
def linear(image, size, factor, align_corners, kind):
    at = np.maximum(sources(image, size, factor, align_corners, kind), 0)
    first = np.minimum(np.floor(at).astype(np.int64), image - 1)
    share = np.clip(at - first.astype(kind), 0, 1)
    return Table(image, np.stack([first, np.minimum(first + 1, image - 1)], 1), None, np.stack([1 - share, share], 1))


def cubic_weight(x, a):
    """Weight of an element at distance `x`, by cubic convolution with coefficient `a`."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


@lru_cache(maxsize=256)
def cubic(image, size, factor, align_corners, kind):
    at = sources(image, size, factor, align_corners, kind)
    first = np.floor(at)
    share = at - first
    places = first.astype(np.int64)[:, None] + np.arange(-1, 3)
    weights = np.stack([cubic_weight(share + (1 - t), -0.75) for t in range(4)], 1)
    return Table(image, np.clip(places, 0, image - 1), None, weights)


FILTERS = {  # (radius, weight as a function of the distance)
    "bilinear": (1, lambda x: np.maximum(1 - np.abs(x), 0)),
    "bicubic": (2, lambda x: cubic_weight(x, -0.5)),
    "lanczos": (3, lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)),
}


@lru_cache(maxsize=256)
def smoothed(image, size, factor, align_corners, kind, mode):
    """Build an antialiasing table: the filter is as wide as the step, so that every input element contributes."""
    reach, weight = FILTERS[mode]
    scale = step(image, size, factor, align_corners, kind)
    width = reach * max(scale, kind(1))
    centers = scale * (np.arange(size).astype(kind) + kind(0.5))
    first = np.maximum((centers - width + kind(0.5)).astype(np.int64), 0)
    last = np.minimum((centers + width + kind(0.5)).astype(np.int64), image)
    places = first[:, None] + np.arange(max(int((last - first).max()), 1))
    weights = weight((places - centers[:, None] + kind(0.5)) / max(scale, kind(1)))
    weights = np.where(places < last[:, None], weights, 0)
    weights /= weights.sum(1, keepdims=True)
    return Table(image, np.minimum(places, image - 1), last - first, weights)


def for_bytes(table):
    """Quantize the weights as PyTorch does for bytes: as finely as 16 bits allow, so that sums are exact."""
    weights = table.weights.copy()
    for tap in range(weights.shape[1] - 1, 0, -1):  # taps beyond the edge add their weight to the edge element
        same = table.places[:, tap] == table.places[:, tap - 1]
        weights[same, tap - 1] += weights[same, tap]
        weights[same, tap] = 0
    largest, bits = float(np.max(weights)), 0
    while bits < 22 and int(largest * 2 ** (bits + 1) + 0.5) < 1 << 15:
        bits += 1
    weights = np.trunc(weights * 2.0**bits + np.copysign(0.5, weights)) / 2.0**bits
    return Table(table.size, table.places, table.counts, weights)


# -- interpolate --


def rows():
    """Declare a row for each mode, number of dimensions and antialiasing."""
    found = {}
    derived = {"self_sym_sizes": ..., "output_size": lambda n: tuple(n._input_metadata[0].shape[2:])}
    for dims in (1, 2, 3):
        flags = IMAGE if dims == 3 else IMAGE | IMAGE_GRADIENT  # PyTorch's gradients of volumes are contiguous
        found["nearest", dims, False] = resampling(f"UpsampleNearest{dims}DBackward0", flags)
        found["nearest-exact", dims, False] = resampling(f"UpsampleNearestExact{dims}DBackward0", flags)
    for mode, dims in BY_DIMS.items():
        flags = IMAGE if mode == "bicubic" else IMAGE | IMAGE_GRADIENT  # likewise
        found[mode, dims, False] = resampling(f"Upsample{mode.title()}{dims}DBackward0", flags)
        found[mode, dims, True] = resampling(f"Upsample{mode.title()}{dims}DAaBackward0", flags)
    for row in found.values():
        note_facts(row.node_name, {"derived": derived})
    return found


ROWS = rows()
_OPS = {(mode, False): f"upsample_{mode}{{}}d" for mode in MODES} | {
    (mode, True): f"_upsample_{mode}2d_aa" for mode in ("bilinear", "bicubic", "lanczos")
}  # PyTorch's names
_OPS["nearest-exact", False] = "_upsample_nearest_exact{}d"
AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def check_mode(t, mode, align_corners, antialias):
    dims = t.dim() - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    if antialias and not (mode in FILTERS and dims == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")


def wanted_size(t, size, scale_factor, recompute, mode):
    """Return (the size of the result, the scale factor of each dimension or None)."""
    image = array_of(t).shape[2:]
    dims = len(image)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return explicit_size(size, image), (None,) * dims
    factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * dims
    if len(factors) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(image)} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, "
            "C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    factors = [float(factor) for factor in factors]
    found = tuple([math.floor(n * factor) for n, factor in zip(image, factors)])
    return found, (None,) * dims if recompute or mode == "area" else tuple(factors)


def explicit_size(size, image):
    if not isinstance(size, (list, tuple)):
        size = [size] * len(image)
    elif len(size) != len(image):
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(image)} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
            "and output size in (o1, o2, ...,oK) format."
        )
    if not all(map(is_integer, size)):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(n) for n in size]}"
        )
    return tuple([int(n) for n in size])


@facts(autocast_gpu="float32", in_python=True, not_cast="area")
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resize images of shape (n, channels, length), (..., height, width) or (..., depth, height, width).

    The new size is given by `size` or `scale_factor`, each a number or one for each dimension. `mode` selects the
    elements that contribute: 'nearest' and 'nearest-exact' (the nearest one), 'linear', 'bilinear' or 'trilinear' (the
    surrounding 2, 4 or 8), 'bicubic' (16), 'area' (the mean of the covered area), 'lanczos' (only with `antialias`).

    With `align_corners`, the centers of the corner elements of input and result coincide, otherwise their outer corners
    do. Element i of the result is thus at position i * (n - 1) / (m - 1) of n input elements, if there are m of the
    result; otherwise at (i + 1 / 2) * s - 1 / 2, where s is n / m, or 1 / scale_factor if that is given. 'nearest'
    takes element floor(i * s), 'nearest-exact' floor((i + 1 / 2) * s). With `recompute_scale_factor`, positions are
    computed from the sizes instead of the factor. With `antialias`, every input element contributes when downsampling
    ('bilinear', 'bicubic', 'lanczos').

    Saves nothing. Gradient: the transpose of these sums. Raises ValueError for arguments that contradict each other,
    NotImplementedError for unsupported modes and dtypes.

    >>> import cygrad
    >>> F = cygrad.nn.functional
    >>> x = cygrad.tensor([[[1.0, 2.0]]])
    >>> F.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    >>> F.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1.0000, 1.5000, 2.0000]]])
    """
    t = require(input, "interpolate")
    check_mode(t, mode, align_corners, antialias)
    size, factors = wanted_size(t, size, scale_factor, recompute_scale_factor, mode)
    image = array_of(t).shape[2:]
    dims = len(image)
    if mode not in MODES or dims not in (1, 2, 3) or (mode in ("bicubic", "lanczos") and dims != 2):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {t.dim()}D) for the modes: nearest | linear "
            f"| bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    if BY_DIMS.get(mode, dims) != dims:
        raise NotImplementedError(f"Got {t.dim()}D input, but {mode} mode needs {BY_DIMS[mode] + 2}D input")
    if mode == "area":
        return AREA[dims](t, size)
    check_sizes(t, image, size)
    checked_lengths((*t.shape[:2], *size))
    kernel = "upsample_nearest" if mode.startswith("nearest") else f"upsample_{mode}"
    name = t.dtype.type_name
    if not (t.dtype.is_floating_point or name == "Byte"):
        raise messages.not_implemented_for(f"{kernel}{dims}d_channels_last", t.dtype)
    is_byte_image = name == "Byte" and dims == 2 and not mode.startswith("nearest")
    kind = np.float64 if name == "Double" or is_byte_image else np.float32
    tables = tables_of(mode, image, size, factors, bool(align_corners), kind, bool(antialias))
    row = ROWS[mode, dims, bool(antialias)]
    if name == "Byte" and not mode.startswith("nearest"):
        for d in range(dims - 1, -1, -1):  # intermediate results between two dimensions are rounded, too
            own = for_bytes(tables[d]) if is_byte_image else tables[d]
            one = tuple([own if i == d else None for i in range(dims)])
            between = resample(t.float(), one, row=row)
            t = (between.add(0.5).floor() if is_byte_image else between.round()).clamp(0, 255).to(t.dtype)
        return t
    return resample(t, tables, row=row, hint=(_OPS[mode, bool(antialias)].format(dims), size, align_corners, factors))


@lru_cache(256)
def tables_of(mode, image, size, factors, *how):
    """Return the table of each dimension."""
    return tuple([table_of(mode, n, m, factor, *how) for n, m, factor in zip(image, size, factors)])


def table_of(mode, image, size, factor, align_corners, kind, antialias):
    if mode.startswith("nearest"):
        return nearest(image, size, factor, mode == "nearest-exact")
    if antialias:
        return smoothed(image, size, factor, align_corners, kind, mode)
    return (cubic if mode == "bicubic" else linear)(image, size, factor, align_corners, kind)


def check_sizes(t, image, size):
    if min(*image, *size) <= 0:
        letters = "DHW"[-len(image) :]
        given, wanted = (", ".join(f"{a}: {n}" for a, n in zip(letters, lengths)) for lengths in (image, size))
        between = "and " if len(image) == 1 else ""
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({given}) {between}output ({wanted})"
        )
    if t.shape[1] == 0:
        raise RuntimeError(f"Non-empty {t.dim()}D data tensor expected but got a tensor with sizes {list(t.shape)}")


def deprecated(name):
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@facts(autocast_gpu="float32", not_cast="area")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Deprecated alias of `interpolate`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.nn.functional.upsample(cygrad.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@shown
def upsample_nearest(input, size=None, scale_factor=None):
    """Deprecated alias of `interpolate` with mode 'nearest'.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.nn.functional.upsample_nearest(cygrad.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@shown
def upsample_bilinear(input, size=None, scale_factor=None):
    """Deprecated alias of `interpolate` with mode 'bilinear' and aligned corners.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.nn.functional.upsample_bilinear(cygrad.tensor([[[[1.0, 2.0]]]]), size=(1, 3))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# deprecated functions, which warn, have their own tests
composite = {"interpolate": FUNCTION_ONLY | METHOD_ONLY}
functions = publish(globals())
