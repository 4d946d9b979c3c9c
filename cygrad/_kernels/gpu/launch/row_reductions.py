"""Reductions of the rows of a contiguous array to one number each: sums, extrema, norms and others.

They are functions of rows, for rows that a warp or thread block reduces alone; `reduction_program.py` has the others.
"""

import math

from cygrad._kernels.device.cupy_library import cupy, name_of
from cygrad._kernels.gpu.launch.groups import Later, Several
from cygrad._kernels.gpu.launch.program import EXACT, FLOATS, wide_type
from cygrad._kernels.gpu.launch.reduction_program import HOW, folded, parts_of, runs_of
from cygrad._kernels.gpu.launch.row_program import ROW, RowFunction, RowProgram, RowReduction, are_aligned, how

_FOLD = """
struct {struct} {{
    typedef {kind} V;
    V total;
    template <typename X> __device__ {struct}(X& row, whole n) {{
        V v = {start};
        EACH(i, k, n) {{
            const V x = V(row.get(k, i));
            v = {join}()(v, V({formula}));
        }}
        total = over_row(v, {join}());
    }}
}};
"""


def _fold(name, how, value, numbers=(), kind="W"):
    formula, join, start = HOW[how]
    struct = name.title().replace("_", "")
    text = _FOLD.format(struct=struct, kind=kind, start=start, join=join, formula=formula)
    return RowReduction(name, text, f"{struct} {{self}}({{x}}, n)", value, numbers)


_TOTAL = "{self}.total"
SUM = _fold("row_sums", "sum", "{self}.total * W({scale})", ("scale",))
LARGEST = _fold("row_maxima", "largest", _TOTAL)
SMALLEST = _fold("row_minima", "smallest", _TOTAL)
# Squares are added up in float64, see `reduction_program.py`.
NORMS = {
    0: _fold("row_counts", "not zero", _TOTAL),
    1: _fold("row_sums_of_sizes", "sizes", _TOTAL),
    2: _fold("row_norms", "squares", "W(sqrt({self}.total))", (), "double"),
    math.inf: _fold("row_largest_sizes", "largest size", _TOTAL),
    -math.inf: _fold("row_smallest_sizes", "smallest size", _TOTAL),
}
LOGSUMEXP = RowReduction(
    "row_logsumexp",
    """
struct LogSumExp {
    W largest, sum;
    template <typename X> __device__ LogSumExp(X& x, whole n) {
        W most = -infinity(W()), s = 0;
        EACH(i, k, n) most = Larger()(x.get(k, i), most);
        most = over_row(most, Larger());
        largest = most = most - most == W(0) ? most : W(0);  // if it is finite
        EACH(i, k, n) s += exp(x.get(k, i) - most);
        sum = over_row(s, Add());
    }
};
""",
    "LogSumExp {self}({x}, n)",
    "log({self}.sum) + {self}.largest",
)
_SPREAD = """
// The sum of the squares around the mean.
struct Spread {
    double total;
    template <typename X> __device__ Spread(X& x, double share, whole n) {
        W sum = 0;
        EACH(i, k, n) sum += x.get(k, i);
        const W m = over_row(sum, Add()) * W(share);
        double s = 0;
        EACH(i, k, n) { double d = double(x.get(k, i)) - double(m); s += d * d; }
        total = over_row(s, Add());
    }
};
"""
_SPREAD_OF = "Spread {self}({x}, {share}, n)"
VARIANCE = RowReduction("row_variances", _SPREAD, _SPREAD_OF, "W({self}.total * {scale})", ("share", "scale"))
DEVIATION = RowReduction("row_deviations", _SPREAD, _SPREAD_OF, "W(sqrt({self}.total * {scale}))", ("share", "scale"))


# Sums of all elements add up chunks first, which are rows as well; other functions may be computed with them.
_CHUNK = 1 << 12
_FORMULA, _JOIN, _START = HOW["sum"]
PARTIAL = RowFunction(
    "partial_sums",
    _FOLD.format(struct="PartialSum", kind="W", start=_START, join=_JOIN, formula=_FORMULA),
    (("x", ROW),),
    "PartialSum {self}({x}, n)",
    values=((_TOTAL, True),),
)
_PARTIAL_SUMS = RowProgram(
    "partial_sums",
    PARTIAL.text
    + """
extern "C" __global__ void partial_sums(const T* a, W* out, whole size, whole rows, whole each) {
    EACH_ROW(row, rows) {
        const whole n = size - row * each < each ? size - row * each : each;
        Row x(a + row * each, n);
        PartialSum found(x, n);
        if (!threadIdx.x) out[row] = found.total;
    }
}
""",
    options=EXACT,
)


def _chunks_of(a, axes):
    """Return (how many chunks, their length) if the sum of all elements is that of chunks, else None."""
    if name_of(a.dtype) not in FLOATS or not a.flags.c_contiguous or parts_of(1, a.size, 1) == 1:
        return None
    runs = runs_of(a.shape, axes)
    return (-(-a.size // _CHUNK), _CHUNK) if len(runs) == 1 and runs[0][0] else None


def _shape_of(a, axes, keepdim):
    dims = range(a.ndim) if axes is None else {axis % a.ndim for axis in axes}
    return tuple(1 if d in dims else n for d, n in enumerate(a.shape) if keepdim or d not in dims)


def total(a, axes, keepdim, scale):
    """Return `scale` times the sum of all elements, by chunks; None if it is not computed so."""
    found = _chunks_of(a, axes)
    if found is None:
        return None
    partial = cupy().empty(found[0], wide_type(a.dtype))
    blocks, threads, macros = how(a.dtype.itemsize, *found, a.size)
    args = a, partial, a.size, *found
    _PARTIAL_SUMS.launch(a.dtype, blocks, threads, args, **macros, ALIGNED=are_aligned((a,)))
    return _of_partial(partial, a.dtype, scale).reshape(_shape_of(a, axes, keepdim))


def _of_partial(partial, dtype, scale):
    return folded(partial, None, "sum", dtype=dtype, scale=scale)


def total_later(a, axes, keepdim, scale):
    """Return what groups let wait of `total`, or None."""
    found = _chunks_of(a, axes)
    if found is None:
        return None
    rows, length = found
    call = PARTIAL.call((a,), a.shape, rows, length, (rows,), lambda out: out, a.size)
    if call is None:
        return None
    dtype = a.dtype
    out = cupy().empty(_shape_of(a, axes, keepdim), dtype)

    def do(partial, out):
        out.data.copy_from_device_async(_of_partial(partial, dtype, scale).data, out.nbytes)

    return Several([call, (Later([out], do), tuple(call[0].outs))], lambda _, out: out)


def _rows_of(a, axes, keepdim):
    """Return (rows, their length, shape of the results) if rows of an array are reduced here, else None."""
    if name_of(a.dtype) not in FLOATS or not a.size or not a.flags.c_contiguous:
        return None
    runs = runs_of(a.shape, axes)
    own = [length for reduced, length in runs if reduced]
    if len(own) > 1 or own and not runs[-1][0]:
        return None
    length = own[0] if own else 1
    rows = a.size // length
    if parts_of(rows, length, 1) > 1:
        return None
    return rows, length, _shape_of(a, axes, keepdim)


def reduced(function, a, axes, keepdim, *numbers):
    """Return what a function yields for the rows along axes; None unless they are rows that one block reduces."""
    found = _rows_of(a, axes, keepdim)
    return None if found is None else function(a, *found, *numbers)


def later(function, a, axes, keepdim, *numbers, kept=None):
    """Return (what groups let wait, operands) of `reduced`, or None. `kept` is the shape of the result, if given."""
    found = _rows_of(a, axes, keepdim)
    if found is None:
        return None
    rows, length, shape = found
    return function.described(a, rows, length, shape if kept is None else kept, *numbers)
