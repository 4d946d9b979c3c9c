"""Products of groups of matrices, and of matrices with scales, as mixtures of experts and float8 layers use them."""

import enum

from cygrad._core.graph.dual import is_forward, keep
from cygrad._core.graph.internals import array_of, memory_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, IN1, NONDIFF, PRIVATE, declare, publish
from cygrad._core.graph.record import apply_n, record_n
from cygrad._core.registry.dispatch import unseen
from cygrad._core.types.dtypes import by_name, dtype_named
from cygrad._kernels.cpu.base.copying import copy
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._ops.base.arguments import require
from cygrad._ops.base.products import bmm, mm
from cygrad._ops.base.views import transpose
from cygrad._ops.shape.stacking import cat, stack

_BFLOAT16 = dtype_named("bfloat16")

# Where the samples of a `vmap` have ends of their own, it runs the function once for each.
GROUP_ENDS = declare("_grouped_mm.ends", kernel=copy, flags=NONDIFF | PRIVATE, batching=None, vmap_name="_grouped_mm")

_GROUPED = ("torch.float32", "torch.bfloat16", "torch.float16")


def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """Multiply groups of matrices: both in three dimensions, or one of them with groups that lie side by side.

    `offs` (int32) are the ends of the groups along the common dimension: (n, k) @ (g, k, m) takes rows of `self` for
    each matrix, (g, n, k) @ (k, m) columns of `mat2`, and (n, k) @ (k, m) parts of the sum, a product for each group.
    Rows and columns behind the last group are 0. Saves both operands and `offs`. Gradients: in each group, g @ b^T and
    a^T @ g. Raises RuntimeError for shapes, dtypes and offsets that do not fit.

    >>> import cygrad
    >>> x, w = cygrad.ones(3, 2), cygrad.ones(2, 2, 1)
    >>> cygrad.nn.functional.grouped_mm(x, w, offs=cygrad.tensor([1, 3], dtype=cygrad.int32))
    tensor([[2.],
            [2.],
            [2.]])
    """
    a, b = require(self, "_grouped_mm", "self"), require(mat2, "_grouped_mm", "mat2", 2)
    offs = None if offs is None else require(offs, "_grouped_mm", "offs", 3)
    ends = _checked_ends(a, b, offs, bias, out_dtype)
    return _product(a, b, ends, offs)


def _product(a, b, ends, offs):
    if is_forward():
        return composed(a, b, ends)
    with unseen():
        array = memory_of(composed(a.detach(), b.detach(), ends))
    result = record_n(GROUPED, array, (a, b), (ends, *_geometry(a), *_geometry(b)), (offs,))
    if offs is not None:
        keep(result, 2, offs)
    return result


def _geometry(t):
    return tuple(t.shape), tuple(t.stride())


def grouped_rule(n, g):
    (ends, *_), offs = n.args, n.saved(2)
    of_a = _product(g, transpose(n.saved(1), -2, -1), ends, offs) if n.needs(0) else None
    return of_a, _product(transpose(n.saved(0), -2, -1), g, ends, offs) if n.needs(1) else None


GROUPED = declare(
    "_grouped_mm",
    grouped_rule,
    saves=(IN1, IN0),
    flags=FUNCTION_ONLY,
    inputs="self mat2 offs",
    attributes="_ self_sym_sizes self_sym_strides mat2_sym_sizes mat2_sym_strides",
    node="GroupedMmBackward0",
    batching=None,
)


def composed(a, b, ends):
    """Compute the products by ops, one for each group."""
    if ends is None:
        return bmm(a, b)
    starts = [0, *ends[:-1]]
    spans = list(zip(starts, ends))
    if a.ndim == 2 and b.ndim == 2:
        return stack([mm(a[:, first:end], b[first:end]) for first, end in spans])
    if a.ndim == 2:
        parts, rest = [mm(a[first:end], b[i]) for i, (first, end) in enumerate(spans)], a.shape[0] - ends[-1]
        return cat([*parts, a.new_zeros(rest, b.shape[-1])], 0)
    parts, rest = [mm(a[i], b[:, first:end]) for i, (first, end) in enumerate(spans)], b.shape[1] - ends[-1]
    return cat([*parts, a.new_zeros(a.shape[1], rest)], 1)


def _checked_ends(a, b, offs, bias, out_dtype):
    """Return the ends of the groups, or None if all matrices are given one by one. Raises RuntimeError."""
    for name, tensor in (("mat_a", a), ("mat_b", b)):
        if str(tensor.dtype) not in _GROUPED:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {tensor.dtype.type_name}"
            )
        if tensor.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"Expected mat_a and mat_b of one dtype, got {a.dtype} and {b.dtype}")
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) != (a.ndim == b.ndim == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        if a.shape[0] != b.shape[0]:
            raise RuntimeError("batched dimension has to match")
        return None
    if offs.ndim != 1 or offs.dtype is not by_name()["int32"]:
        raise RuntimeError("Offsets have to be int32" if offs.ndim == 1 else "offs has to be 1D")
    groups = a if a.ndim == 3 else b if b.ndim == 3 else None
    if groups is not None and len(offs) != groups.shape[0]:
        raise RuntimeError("matrix batch sizes have to match")
    size = a.shape[0] if b.ndim == 3 else b.shape[1] if a.ndim == 3 else a.shape[1]
    with unseen():
        values = array_of(apply_n(GROUP_ENDS, (offs,)))
    if is_meta(values):
        return [size] * len(offs)  # shapes do not depend on it
    ends = values.tolist()
    if not ends or any(not 0 <= first <= end <= size for first, end in zip([0, *ends], ends)):
        raise RuntimeError(f"offs must ascend from 0 to {size} at most, got {ends}")
    return ends


def _scaled_mm(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """Return `(self * scale_a) @ (mat2 * scale_b) + bias` of float8 matrices, computed in float32, as `out_dtype`.

    Scales are float32: one number each, or one for each row of `self` and each column of `mat2`. `use_fast_accum` is
    for GPUs. Raises RuntimeError for shapes that do not fit, ValueError for other scales and dtypes.
    """
    a, b = require(self, "_scaled_mm", "self"), require(mat2, "_scaled_mm", "mat2", 2)
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError("mat1 and mat2 must be matrices")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    single = by_name()["float32"]
    is_float8 = all(str(tensor.dtype).startswith("torch.float8") for tensor in (a, b))
    by_tensor = scale_a.numel() == scale_b.numel() == 1
    by_row = scale_a.shape == (a.shape[0], 1) and scale_b.shape == (1, b.shape[1])
    if not (is_float8 and scale_a.dtype is scale_b.dtype is single and (by_tensor or by_row)):
        raise ValueError(
            "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be "
            f"float and singletons.\n- For RowWise scaling, scale_a should be ({a.shape[0]}, 1) and scale_b should be "
            f"(1, {b.shape[1]})."
        )
    scales = (scale_a.reshape(()), scale_b.reshape(())) if by_tensor else (scale_a, scale_b)
    found = mm(a.to(single), b.to(single)) * scales[0] * scales[1]
    found = found if bias is None else found + bias.to(single)
    found = found if scale_result is None else found * scale_result
    return found.to(a.dtype if out_dtype is None else out_dtype)


class ScalingType(enum.Enum):
    """What one scale of a float8 matrix is for.

    >>> import cygrad.nn.functional as F
    >>> [kind.name for kind in F.ScalingType][:2]
    ['TensorWise', 'RowWise']
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """How scales are laid out in memory.

    >>> import cygrad.nn.functional as F
    >>> [kind.name for kind in F.SwizzleType]
    ['NO_SWIZZLE', 'SWIZZLE_32_4_4']
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Multiply groups of matrices; see `torch._grouped_mm`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.grouped_mm(cygrad.ones(2, 3, 4).bfloat16(), cygrad.ones(2, 4, 5).bfloat16()).shape
    torch.Size([2, 3, 5])
    """
    return _grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def scaled_mm(
    mat_a,
    mat_b,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias=None,
    output_dtype=_BFLOAT16,
    contraction_dim=(),
    use_fast_accum=False,
):
    """Multiply float8 matrices with scales for each tensor or each row, as `torch._scaled_mm`; the result is bfloat16.

    The result is (scale_a * mat_a) @ (scale_b * mat_b).

    Scales and recipes may be lists of one. Raises NotImplementedError for scales of blocks, which are for GPUs.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> one = cygrad.tensor(1.0), F.ScalingType.TensorWise
    >>> a = cygrad.ones(16, 16).to(cygrad.float8_e4m3fn)
    >>> F.scaled_mm(a, a.t(), *one, *one)[0, :2]
    tensor([16., 16.], dtype=torch.bfloat16)
    """
    recipes = [_only(one) for one in (scale_recipe_a, scale_recipe_b)]
    if any(recipe not in (ScalingType.TensorWise, ScalingType.RowWise) for recipe in recipes):
        raise NotImplementedError(f"scaled_mm: scales of blocks are for GPUs, got {recipes[0]} and {recipes[1]}")
    return _scaled_mm(mat_a, mat_b, _only(scale_a), _only(scale_b), bias, None, output_dtype, use_fast_accum)


def _only(value):
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


functions = publish(globals(), {"_scaled_mm": _scaled_mm})
