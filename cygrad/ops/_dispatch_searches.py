"""Searching, counting, Fourier transforms and forms of views that copy, as `__torch_dispatch__` shows them.

See `_dispatch_rules.py`. Arguments that a row does not record come with the op's `hint`.
"""

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.ops import aten
from cygrad.ops._dispatch_rules import RULES, Several, Step, _lists, _rule, do, found_by, shortened
from cygrad.ops._schema_table import overloads_of

# -- searching --


@_rule("searchsorted")
def _searchsorted(done: Any, made: Any) -> Step:
    sequence, values = done.inputs[:2]
    sorter, right, out_int32 = done.args
    named = {"out_int32": True} if out_int32 else {}
    overload = "Tensor" if isinstance(values, Tensor) else "Scalar"
    if done.hint == ("bucketize",):
        return Step(getattr(aten.bucketize, overload), (values, sequence), named | ({"right": True} if right else {}))
    named |= ({"side": "right"} if right else {}) | ({} if sorter is None else {"sorter": sorter})
    return Step(getattr(aten.searchsorted, overload), (sequence, values), named)


@_rule("isin")
def _isin(done: Any, made: Any) -> Step:
    elements, tests, invert = done.args
    kinds = "_".join("Tensor" if isinstance(value, Tensor) else "Scalar" for value in (elements, tests))
    named = {"assume_unique": True} if done.hint and done.hint[0] else {}
    return Step(getattr(aten.isin, kinds), (elements, tests), named | ({"invert": True} if invert else {}))


@_rule("unique")
def _unique(done: Any, made: Any) -> Step:
    dim, *wanted = done.hint
    given = [True, *wanted]
    if dim is None:
        args = done.inputs[0], *shortened(given, (True, False, False))
        return Step(aten._unique2.default, args, {}, lambda made: _three(made, wanted))
    args = done.inputs[0], dim, *shortened(given, (True, False, False))
    return Step(aten.unique_dim.default, args, {}, lambda made: _three(made, wanted))


@_rule("unique_consecutive")
def _unique_consecutive(done: Any, made: Any) -> Step:
    dim, *wanted = done.hint
    args = done.inputs[0], *shortened([*wanted, dim], (False, False, None))
    return Step(aten.unique_consecutive.default, args, {}, lambda made: _three(made, wanted))


def _three(made: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor, ...]:
    """Return values, positions and counts; those that are not wanted are empty."""
    values, *rest = made
    return values, *(rest.pop(0) if flag else cygrad.empty(0, dtype=cygrad.int64) for flag in wanted)


@_rule("kthvalue")
def _kthvalue(done: Any, made: Any) -> Step:
    t, (_, dim, keepdim, k) = done.inputs[0], done.args
    return Step(aten.kthvalue.default, (t, k, *shortened([dim, keepdim], (t.ndim - 1, False))))


@_rule("argsort msort.values")
def _argsort(done: Any, made: Any) -> Any:
    t, given = done.inputs[0], list(done.args) or [0]
    descending = bool(given[1]) if len(given) > 1 else False
    place = 1 if done.op.name == "argsort" else 0
    return Several(lambda: do(aten.sort.default, t, *shortened([given[0], descending], (-1, False)))[place])


# -- counting --


@_rule("bincount")
def _bincount(done: Any, made: Any) -> Step:
    least = done.args[0]
    numbers, weights = (done.inputs[0], None) if done.hint is None else (done.hint, done.inputs[0])
    return Step(aten.bincount.default, (numbers, *shortened([weights, least], (None, 0))))


@_rule("histc")
def _histc(done: Any, made: Any) -> Step:
    return Step(aten.histc.default, (done.inputs[0], *shortened(done.args, (100, 0, 0))))


@_rule("histogram")
def _histogram(done: Any, made: Any) -> Step:
    bins, *how = done.args
    named = _how(*how)
    op = aten.histogram.bins_tensor if isinstance(bins, Tensor) else aten.histogram.bin_ct
    return Step(op, (done.inputs[0], bins), named)


@_rule("histogramdd")
def _histogramdd(done: Any, made: Any) -> Any:
    bins, *how = done.args
    x, named = done.inputs[0], _how(*how)
    counts = [bins] * x.shape[-1] if isinstance(bins, int) else list(bins)

    def run() -> Any:
        if isinstance(counts[0], Tensor):
            op, edges = aten._histogramdd_from_bin_tensors.default, tuple(counts)
        else:
            op = aten._histogramdd_from_bin_cts.default
            edges = tuple(do(aten._histogramdd_bin_edges.default, x, counts, **named))
        return found_by(made[0], op, x, counts, **named), *edges

    return Several(run)


def _how(span: Any, weight: Any, density: Any) -> dict[str, Any]:
    given = {"range": None if span is None else list(map(float, span)), "weight": weight, "density": density or None}
    return {name: value for name, value in given.items() if value is not None}


@_rule("index_reduce")
def _index_reduce(done: Any, made: Any) -> Step:
    dim, reduce, include_self = done.args[:3]
    named = {} if include_self else {"include_self": False}
    return Step(aten.index_reduce.default, (done.inputs[0], dim, done.hint, done.inputs[1], reduce), named)


@_rule("segment_reduce")
def _segment_reduce(done: Any, made: Any) -> Step:
    reduce, axis, initial, _, lengths, offsets = done.args
    given = {"lengths": lengths, "offsets": offsets, "axis": axis or None, "initial": initial}
    named = {name: value for name, value in given.items() if value is not None}
    return Step(
        aten.segment_reduce.default, (done.inputs[0], reduce), named | ({"unsafe": True} if done.hint[0] else {})
    )


@_rule("put")
def _put(done: Any, made: Any) -> Step:
    return Step(aten.put.default, (done.inputs[0], done.hint, done.inputs[1], *([True] if done.args[0] else [])))


@_rule("index_fill.Tensor")
def _index_fill(done: Any, made: Any) -> Step:
    return Step(aten.index_fill.int_Tensor, (done.inputs[0], done.args[0], done.hint, done.inputs[1]))


@_rule("unravel_index")
def _unravel_index(done: Any, made: Any) -> Any:
    x, (lengths,) = done.inputs[0], done.args
    steps = [1]
    for length in reversed(lengths[1:]):
        steps.insert(0, steps[0] * length)

    def run() -> Any:
        own = {"dtype": x.dtype, "device": x.device}
        found = do(aten.unsqueeze.default, x, -1)
        found = do(aten.floor_divide.default, found, cygrad.tensor(steps, **own))
        found = do(aten.remainder.Tensor, found, cygrad.tensor(list(lengths), **own))
        return do(aten.unbind.int, found, -1)

    return Several(run)


@_rule("block_diag")
def _block_diag(done: Any, made: Any) -> Step:
    return Step(aten.block_diag.default, (list(done.inputs),))


# -- Fourier transforms: scaled by 1, 1 / sqrt(n) or 1 / n, for the codes 0, 1 and 2 --


def _code(norm: str, forward: bool) -> int:
    return 1 if norm == "ortho" else 0 if (norm == "backward") == forward else 2


@_rule("fft_c2c")
def _c2c(done: Any, made: Any) -> Any:
    dims, norm, forward = done.args[:3]
    how = _lists(dims), _code(norm, forward), forward
    return _of_complex(done, made, aten._fft_c2c.default, *how)


@_rule("fft_r2c")
def _r2c(done: Any, made: Any) -> Step:
    dims, norm, onesided = done.args[:3]
    return Step(aten._fft_r2c.default, (done.inputs[0], _lists(dims), _code(norm, True), onesided))


@_rule("fft_c2r")
def _c2r(done: Any, made: Any) -> Any:
    dims, norm, length, pairs = done.args
    if pairs != 1:
        return NotImplemented  # in the gradient of a real transform
    return _of_complex(done, made, aten._fft_c2r.default, _lists(dims), _code(norm, False), length)


def _of_complex(done: Any, made: Any, op: Any, *args: Any) -> Any:
    """Return the step of a transform of complex numbers, after real ones have been converted."""
    x = done.inputs[0]
    if x.is_complex():
        return Step(op, (x, *args))
    kind = cygrad.complex128 if x.dtype is cygrad.float64 else cygrad.complex64
    return Several(lambda: found_by(made[0], op, do(aten._to_copy.default, x, dtype=kind), *args))


@_rule("lengthened")
def _lengthened(done: Any, made: Any) -> Step:
    x, (dim, length) = done.inputs[0], done.args[:2]
    before = [0, 0] * (x.ndim - dim % x.ndim - 1)
    return Step(aten.constant_pad_nd.default, (x, [*before, 0, length - x.shape[dim]]))


@_rule("unfold_backward")
def _unfold_backward(done: Any, made: Any) -> Step:
    size, *where = done.args
    return Step(aten.unfold_backward.default, (done.inputs[0], list(size), *where))


# -- forms of views that copy --


def _copied(done: Any, made: Any) -> Any:
    if done.hint is None:
        return _diagonal_copy(done) if done.op.name == "diagonal_copy" else NotImplemented
    given, named = done.hint
    name = done.op.name
    known = overloads_of(name)
    if name == "diagonal_copy":
        given = shortened(given, (0, 0, 1))
    elif name in ("view_copy", "expand_copy", "permute_copy"):
        flat = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
        given = (list(flat),)
    overload = known[0]
    if name == "squeeze_copy" and given:
        overload = "dim" if isinstance(given[0], int) else "dims"
    args = tuple(list(value) if isinstance(value, tuple) else value for value in given)
    outcome = list if isinstance(made, tuple) and name in _SEVERAL else None
    return Step(getattr(getattr(aten, name), overload), (done.inputs[0], *args), named, *([outcome] if outcome else []))


_SEVERAL = ("split_copy", "split_with_sizes_copy", "unbind_copy")
for _name in """alias as_strided detach diagonal expand narrow permute select slice split split_with_sizes squeeze t
transpose unbind unfold unsqueeze view view_as_complex view_as_real""".split():
    RULES[f"{_name}_copy"] = _copied


def _diagonal_copy(done: Any) -> Step:
    return Step(aten.diagonal_copy.default, (done.inputs[0], *shortened(done.args[1:], (0, 0, 1))))


@_rule("unsafe_split unsafe_split_with_sizes")
def _unsafe_split(done: Any, made: Any) -> Step:
    sizes, dim = done.hint
    op = aten.unsafe_split_with_sizes.default if isinstance(sizes, (list, tuple)) else aten.unsafe_split.Tensor
    sizes = list(sizes) if isinstance(sizes, tuple) else sizes
    return Step(op, (done.inputs[0], sizes, *([dim] if dim else [])), {}, list)


@_rule("diagonal_scatter")
def _diagonal_scatter(done: Any, made: Any) -> Step:
    return Step(aten.diagonal_scatter.default, (*done.inputs[:2], *shortened(done.args[:3], (0, 0, 1))))


@_rule("as_strided_scatter")
def _as_strided_scatter(done: Any, made: Any) -> Any:
    if done.hint is None:
        return NotImplemented
    src, size, stride, offset = done.hint
    return Step(aten.as_strided_scatter.default, (done.inputs[0], src, size, stride, *shortened([offset], (None,))))
