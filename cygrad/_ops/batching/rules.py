"""Batching rules for `vmap`: how to apply an op to all samples at once (Note [Batches] in
_core/transforms/vmap_levels.py).

A rule takes a `Call` and returns the samples of the result, or a tuple of them for several results: tensors whose first
dimension is the batch. It calls public ops, so its results get their gradients, tangents, and samples in enclosing
batches. Most rows need no rule of their own:

* elementwise ops run on operands with aligned dimensions (`elementwise`);
* ops in `SHIFTED`, whose kernels take dimensions and shapes as arguments, run with those arguments shifted by one;
* ops in `LEADING`, which accept any number of leading dimensions, run unchanged.

Rules for other rows are in `RULES`, by row name. Those of products, convolutions, indices, and losses have modules of
their own. An op without a rule raises NoBatchingRule.
"""

import numpy as np

from cygrad._core.graph.opdef import ELEMENTWISE, VIEW, registry
from cygrad._core.graph.record import apply1, apply2, apply_n, result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.out_dtypes import name_of
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._ops.base.copying import copy

RULES: dict = {}  # row name -> rule
_rules_of: dict = {}  # row -> (its name in the registry, its rule or None)


def rule(names):
    """Decorator that registers the rule of these rows."""

    def note(function):
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return note


class Call:
    """An op that has run on the tensors of the first sample and is to be run on all samples."""

    def __init__(self, batch, step, key):
        self.batch, self.step, self.key, self.size = batch, step, key, batch.size
        self.op, self.args, self.inputs, self.kept, self.outs = step.op, step.args, step.inputs, step.kept, step.outs
        self.out = step.outs[0]

    def needed_args(self):
        """Return the non-tensor arguments; raises NoBatchingRule if an unrecorded op did not note them."""
        if not self.args:
            raise NoBatchingRule(self.op.name)
        return self.args

    def samples(self, x):
        """Return the samples of an operand along dimension 0, or None if it has none."""
        found = self.batch.samples(x) if isinstance(x, Tensor) else None
        if found is not None and self.step.writes and x is self.out and found.requires_grad:
            return found.clone()  # the gradient may need the old value
        return found

    def has(self, x):
        """Whether an operand has samples."""
        return isinstance(x, Tensor) and self.batch.has(x)

    def near(self, x):
        """Return the samples of a tensor; for one without samples, the tensor with a leading dimension of length 1."""
        found = self.samples(x)
        return x.unsqueeze(0) if found is None else found

    def full(self, x):
        """Return the samples of a tensor, expanded to the batch size if it has none."""
        found = self.samples(x)
        return x.unsqueeze(0).expand(self.size, *x.shape) if found is None else found

    def aligned(self, x, ndim):
        """Return an operand that broadcasts with others as if each sample had `ndim` dimensions."""
        found = self.samples(x)
        if found is None or found.ndim == ndim + 1:
            return x if found is None else found
        return found.view(found.shape[:1] + (1,) * (ndim + 1 - found.ndim) + found.shape[1:])

    def shaped(self, x, shape):
        """Reshape `x` to a batch of samples with this shape; the result is a view if possible."""
        if len(x) == 1 != self.size:
            x = x.expand(self.size, *x.shape[1:])
        return regroup(x, (self.size, *shape))


def regroup(x, shape):
    """Reshape `x`; the result is a view if possible."""
    try:
        return x.view(shape)
    except RuntimeError:
        return x.reshape(shape)


def results(batch, step):
    """Return the samples of the results of an op; raises NoBatchingRule."""
    op = step.op
    key, function = _rules_of.get(op) or _rule_of(op)
    if function is None:
        raise NoBatchingRule(op.name)
    return _as_tuple(function(Call(batch, step, key)))[: len(step.outs)]


def _as_tuple(found):
    return (found,) if isinstance(found, Tensor) else tuple(found)


def _rule_of(op):
    """Return the registry name and rule of a row. A variant, which is not in the registry, gets those of its op."""
    key = name_of(op)
    found = RULES.get(key)
    for names, function in ((SHIFTED, shifted), (LEADING, leading), (MERGED, merged)):
        if found is None and key in names:
            found = function
    if found is None and op.flags & ELEMENTWISE and not op.flags & VIEW:
        found = elementwise
    _rules_of[op] = key, found
    return key, found


# -- elementwise ops --


def vectors(call, x):
    """Return the samples of an operand; 0-dim samples become vectors with one element."""
    return call.full(x) if x.ndim else call.full(x).view(call.size, 1)


def operands(call, inputs, ndim=0):
    """Return aligned operands, with the type promotion that applies to a single sample."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    ndim = max([ndim, *[x.ndim for x in tensors]])
    found = [call.aligned(x, ndim) for x in inputs]
    if len({x.dtype for x in tensors}) > 1:  # 0-dim samples have a dimension in the batch, and so promote more strongly
        wanted = result_type(tuple(inputs))
        pairs = zip(found, inputs, strict=True)
        found = [f.to(wanted) if call.has(x) and not x.ndim else f for f, x in pairs]
    return found


def elementwise(call):
    """Run the op itself on aligned operands."""
    inputs = operands(call, call.inputs)
    if call.op.kernel is None and (call.op.ufunc is None or call.args):
        raise NoBatchingRule(call.op.name)
    if call.args or len(inputs) > 2:
        return apply_n(call.op, tuple(inputs), call.args or None)
    return apply1(call.op, *inputs, None) if len(inputs) == 1 else apply2(call.op, *inputs, None)


@rule("add sub rsub")
def _scaled_sum(call):
    a, b = operands(call, call.inputs)
    entry = registry[call.key].entry
    return entry(a, b, alpha=call.args[0]) if call.args else entry(a, b)


@rule("rsub.Scalar")
def _number_less(call):
    alpha, other = call.args
    return registry["rsub"].entry(call.full(call.inputs[0]), other, alpha)


@rule("ceil floor trunc")
def _whole(call):
    """Use the entry point, which leaves integers unchanged; NumPy 2.0 would convert them to floats."""
    return registry[call.key].entry(call.full(call.inputs[0]))


@rule("clamp clamp_min clamp_max clamp.Tensor clamp_min.Tensor clamp_max.Tensor")
def _clamp(call):
    return registry[call.op.name].entry(*operands(call, call.inputs), *call.args)


@rule("tanh_backward sigmoid_backward threshold_backward")
def _same_shapes(call):
    return apply2(call.op, *[call.full(x) for x in call.inputs], None)


@rule("remainder fmod pow floor_divide div mul")
def _with_number(call):
    inputs = operands(call, call.inputs)
    return registry[call.op.name].entry(*inputs, *call.args)


@rule("pow.Scalar")
def _power_of_number(call):
    return registry["pow"].entry(call.args[0], call.full(call.inputs[0]))


@rule("round round.decimals")
def _rounded(call):
    decimals = call.args[0] if call.key == "round.decimals" else 0
    return registry["round"].entry(call.full(call.inputs[0]), decimals=decimals)


@rule("frexp")
def _mantissa(call):
    return registry["frexp"].entry(call.full(call.inputs[0]))


@rule("where")
def _where(call):
    condition = call.kept[2]
    a, b = operands(call, call.inputs, condition.ndim)
    ndim = max(x.ndim for x in (condition, *call.inputs) if isinstance(x, Tensor))
    found = registry["where"].entry(call.aligned(condition, ndim), a, b)
    return found.expand(call.size, *found.shape[1:])


@rule("masked_fill masked_fill.Tensor")
def _masked_fill(call):
    mask = call.aligned(call.kept[2], call.out.ndim)
    shape = (call.size, *call.out.shape)
    value = call.aligned(call.inputs[1], call.out.ndim) if len(call.inputs) > 1 else call.args[0]
    found = registry["where"].entry(mask, value, call.aligned(call.inputs[0], call.out.ndim))
    return found.to(call.out.dtype).expand(shape)


@rule("to")
def _to(call):
    return call.full(call.inputs[0]).to(call.out.dtype)


@rule("clone")
def _clone(call):
    return call.full(call.inputs[0]).clone()


@rule("copy fill.Tensor")
def _copy(call):
    return copy(call.full(call.inputs[0]), call.aligned(call.inputs[1], call.out.ndim))


@rule("fill")
def _fill(call):
    value = call.inputs[1] if len(call.inputs) > 1 else call.args[0]
    if call.has(value):
        return _copy(call)
    return registry["fill"].entry(call.full(call.inputs[0]), value)


@rule("zero")
def _zero(call):
    return (
        call.full(call.inputs[0]) * 0
        if call.out.requires_grad
        else call.full(call.inputs[0]).new_zeros((call.size, *call.out.shape))
    )


# -- ops that run with shifted arguments --

# For each argument of the kernel: d = dimension, D = dimensions (None: all), s = shape of the input, . = unchanged.
SHIFTED = {
    "amax": "D.",
    "amin": "D.",
    "count_nonzero": "D.",
    "cumprod": "d",
    "diag_embed": ".dd",
    "diagonal_backward": "s.dd",
    "fft_c2c": "D..",
    "fft_c2r": "D...",
    "fft_r2c": "D...",
    "flip": "D",
    "frobenius_norm": ".D.",
    "glu": "d",
    "lengthened": "d..",
    "linalg_cross": "d",
    "linalg_vecdot": "d",
    "linalg_vector_norm": ".D.",
    "log_softmax": "d",
    "log_softmax_backward_data": "d",
    "logcumsumexp": "d",
    "nansum": "D.",
    "roll": ".D",
    "rot90": ".D",
    "shift": "d..",
    "softmax": "d",
    "softmax_backward_data": "d",
    "std": "D..",
    "var": "D..",
}
LEADING = set("constant_pad_nd det linalg_matrix_exp one_hot pixel_shuffle pixel_unshuffle resample tril triu".split())
MERGED = set("channel_window col2im im2col".split())


def shifted_argument(kind, value, call, ndim):
    """Convert an argument for samples with `ndim` dimensions to the one for the whole batch."""
    if kind == "d":
        return value + 1 if value >= 0 else value
    if kind == "D":
        return tuple(range(1, ndim + 1)) if value is None else tuple([d + 1 if d >= 0 else d for d in value])
    return (call.size, *value) if kind == "s" else value


def shifted(call):
    """Run the op itself with its dimensions shifted by one; 0-dim samples first get a dimension."""
    ndim = max([1, *[x.ndim for x in call.inputs]])
    inputs = tuple([vectors(call, x) for x in call.inputs])
    kinds = SHIFTED[call.key]
    if len(kinds) != len(call.args) or any(k == "d" and a is None for k, a in zip(kinds, call.args, strict=True)):
        raise NoBatchingRule(call.op.name)
    if call.key == "roll" and not call.args[1]:
        return call.shaped(call.shaped(call.full(call.inputs[0]), (-1,)).roll(call.args[0], 1), call.out.shape)
    args = tuple([shifted_argument(k, a, call, ndim) for k, a in zip(kinds, call.args, strict=True)])
    return call.shaped(apply_n(call.op, inputs, args), call.out.shape)


def leading(call):
    """Run the op itself."""
    return apply_n(call.op, tuple([call.full(x) for x in call.inputs]), call.args or None)


def merged(call):
    """Run the op itself on the images of all samples as one batch."""
    x = call.inputs[0]
    return call.shaped(apply_n(call.op, (call.samples(x).flatten(0, 1),), call.args or None), call.out.shape)


@rule("cumsum")
def _cumsum(call):
    t, (dim, is_reverse) = call.inputs[0], call.args
    x = vectors(call, t).to(call.out.dtype)
    return call.shaped(apply_n(call.op, (x,), (dim % max(t.ndim, 1) + 1, is_reverse)), call.out.shape)


@rule("argmax argmin")
def _place_of_extreme(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    dim, keepdim = call.args
    if dim is None or not t.ndim:
        return call.shaped(getattr(call.shaped(x, (-1,)), call.key)(1), call.out.shape)
    return getattr(x, call.key)(dim % t.ndim + 1, keepdim)


@rule("all any")
def _truth(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    dims, keepdim = call.args
    if dims == () or not t.ndim:
        return getattr(x, call.key)(())
    return getattr(x, call.key)(shifted_argument("D", dims, call, t.ndim), keepdim)


@rule("argsort")
def _order(call):
    t, (dim, descending) = call.inputs[0], call.needed_args()
    x = call.full(t) if t.ndim else call.full(t).view(-1, 1)
    found = x.argsort(dim % t.ndim + 1 if t.ndim else 1, descending, stable=True)
    return call.shaped(found, call.out.shape)


@rule("sort sort.stable topk kthvalue")
def _ordered(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    _, dim, keepdim, *how = call.args
    x, dim = (x, dim % t.ndim + 1) if t.ndim else (x.view(-1, 1), 1)
    if call.op.name == "sort":
        found = x.sort(dim, *how, stable=True)
    else:
        found = x.topk(how[0], dim, *how[1:]) if call.key == "topk" else x.kthvalue(how[0], dim, keepdim)
    return [call.shaped(part, call.out.shape) for part in found]


@rule("tied")
def _tied(call):
    return registry["tied"].entry(*map(call.full, call.inputs))


@rule("prelu")
def _prelu(call):
    return apply_n(call.op, tuple(operands(call, call.inputs)))


@rule("sum mean prod")
def _reduce_all(call):
    x = call.full(call.inputs[0])
    dtype = call.out.dtype
    return getattr(call.shaped(x, (-1,)) if x.numel() else x.new_zeros((call.size, x.shape[1:].numel())), call.key)(
        1, dtype=dtype
    )


@rule("sum.dim mean.dim")
def _reduce(call):
    x = call.full(call.inputs[0])
    dims = shifted_argument("D", call.args[0], call, call.inputs[0].ndim) if call.inputs[0].ndim else ()
    if not dims:
        return x.to(call.out.dtype)
    return getattr(x, call.op.name)(dims, call.args[1], dtype=call.out.dtype)


@rule("prod.dim_int cummax cummin max.dim min.dim median.dim nanmedian.dim logsumexp mode")
def _along(call):
    """Call a method that takes one or several dimensions and possibly keepdim."""
    t, x = call.inputs[0], call.full(call.inputs[0])
    args = call.args[1:] if isinstance(call.args[0], tuple) and call.key != "logsumexp" else call.args
    if not t.ndim:
        return [part.view(call.size) for part in _as_tuple(getattr(x.view(-1, 1), call.op.name)(1))]
    dim = [d % t.ndim + 1 for d in args[0]] if call.key == "logsumexp" else args[0] % t.ndim + 1
    return getattr(x, call.op.name)(dim, *args[1:])


@rule("max min")
def _extreme(call):
    return getattr(call.shaped(call.full(call.inputs[0]), (-1,)), "a" + call.key)(1)


@rule("median nanmedian")
def _median(call):
    if not call.inputs[0].numel():
        return call.full(call.out.detach())
    return getattr(call.shaped(call.full(call.inputs[0]), (-1,)), call.key)(1)[0]


@rule("sum_to_size")
def _sum_to_size(call):
    x, t = call.full(call.inputs[0]), call.inputs[0]
    more = t.ndim - call.out.ndim
    dims = [*range(1, more + 1)]
    dims += [i + more + 1 for i, n in enumerate(call.out.shape) if n == 1 and t.shape[i + more] != 1]
    return call.shaped(x.sum(dims, True) if dims else x, call.out.shape)


@rule("value_selecting_reduction")
def _value_selecting(call):
    t, (shape, dim, keepdim) = call.inputs[0], call.args
    if not shape:
        return call.shaped(call.full(t), call.out.shape)
    index = call.full(call.inputs[1])
    dim = dim % len(shape) + 1
    found = call.full(t).gather(dim, index if keepdim else index.unsqueeze(dim))
    return found if keepdim else found.squeeze(dim)


@rule("value_selecting_reduction_backward")
def _put_back(call):
    shape, dim, keepdim = call.args
    g, index = (call.full(x) for x in call.inputs)
    if not shape:
        return call.shaped(g, shape)
    dim = dim % len(shape) + 1
    if not keepdim:
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    return g.new_zeros((call.size, *shape)).scatter(dim, index, g)


@rule("masked_select")
def _masked_select(call):
    mask = call.kept[2]
    if call.has(mask):
        return _of_unknown_shape(call)
    shape = (call.size, *np.broadcast_shapes(call.inputs[0].shape, mask.shape))
    x = call.aligned(call.inputs[0], len(shape) - 1).expand(shape)
    return x.flatten(1)[:, mask.expand(shape[1:]).flatten()] if len(shape) > 1 else x[:, None][:, mask.view(1)]


@rule("nonzero unique unique_consecutive")
def _of_unknown_shape(call):
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{call.op.name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
        "feature.\n  the result may have a different shape for each sample: use torch.where, or a mask"
    )


# -- views and rearrangements --


@rule("view reshape.alias reshape.copy squeeze squeeze.dim squeeze.dims unsqueeze alias squeeze")
def _regrouped(call):
    t = call.inputs[0]
    x = call.full(t)
    return call.shaped(x if t.dtype is call.out.dtype else x.view(call.out.dtype), call.out.shape)


@rule("expand")
def _expand(call):
    return call.aligned(call.inputs[0], call.out.ndim).expand(call.size, *call.out.shape)


@rule("permute")
def _permute(call):
    t = call.inputs[0]
    return call.full(t).permute(0, *[d % t.ndim + 1 for d in call.args[0]])


@rule("transpose t")
def _transpose(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    if t.ndim < 2:
        return call.shaped(x, t.shape)
    a, b = call.args or (0, 1)
    return x.transpose(a % t.ndim + 1, b % t.ndim + 1)


@rule("select")
def _select(call):
    _, dim, index = call.needed_args()
    return call.full(call.inputs[0]).select(dim + 1, index)


@rule("slice")
def _slice(call):
    _, dim, start, end, step = call.needed_args()
    return call.full(call.inputs[0])[(slice(None),) * (dim + 1) + (slice(start, end, step),)]


@rule("select_backward")
def _select_backward(call):
    shape, dim, index = call.args
    zeros = call.full(call.inputs[0]).new_zeros((call.size, *shape))
    return zeros.select_scatter(call.full(call.inputs[0]), dim + 1, index)


@rule("slice_backward")
def _slice_backward(call):
    shape, dim, start, step, count = call.args
    zeros = call.full(call.inputs[0]).new_zeros((call.size, *shape))
    return zeros.slice_scatter(call.full(call.inputs[0]), dim + 1, start, start + (count - 1) * step + 1, step)


@rule("slice_scatter select_scatter")
def _scatter_part(call):
    t, part = (call.full(x) for x in call.inputs)
    dim, *where, _ = call.args
    return getattr(t, call.key)(part, dim % call.out.ndim + 1, *where)


@rule("diagonal_scatter")
def _scatter_diagonal(call):
    offset, dim1, dim2 = call.args[:3]
    ndim = call.out.ndim
    t, part = map(call.full, call.inputs)
    return registry["diagonal_scatter"].entry(t, part, offset, dim1 % ndim + 1, dim2 % ndim + 1)


@rule("block_diag")
def _block_diag(call):
    shapes = [(1,) * (2 - x.ndim) + x.shape for x in call.inputs]
    rows, before, width = [], 0, call.out.shape[1]
    for x, (height, own) in zip(call.inputs, shapes, strict=True):
        block = call.shaped(call.full(x).to(call.out.dtype), (height, own))
        left, right = (block.new_zeros((call.size, height, n)) for n in (before, width - before - own))
        rows.append(registry["cat"].entry([left, block, right], 2))
        before += own
    return registry["cat"].entry(rows, 1)


@rule("split split_with_sizes unsafe_split unsafe_split_with_sizes")
def _split(call):
    sizes, dim = call.needed_args()[1:]
    return call.full(call.inputs[0]).split_with_sizes(list(sizes), dim % call.inputs[0].ndim + 1)


@rule("unbind")
def _unbind(call):
    return call.full(call.inputs[0]).unbind(call.needed_args()[1] % call.inputs[0].ndim + 1)


@rule("diagonal")
def _diagonal(call):
    _, offset, dim1, dim2 = call.args
    ndim = call.inputs[0].ndim
    return call.full(call.inputs[0]).diagonal(offset, dim1 % ndim + 1, dim2 % ndim + 1)


@rule("unfold")
def _unfold(call):
    t, (_, dim, size, step) = call.inputs[0], call.args
    x = vectors(call, t)
    return call.shaped(x.unfold(dim % max(t.ndim, 1) + 1, size, step), call.out.shape)


@rule("unfold_backward")
def _unfold_backward(call):
    (shape, dim, size, step), g = call.args, call.full(call.inputs[0])
    own = shape or (1,)
    args = (call.size, *own), dim % len(own) + 1, size, step
    return call.shaped(apply_n(call.op, (g if shape else g.unsqueeze(1),), args), shape)


@rule("view_as_real view_as_complex")
def _as_parts(call):
    return registry[call.key].entry(call.full(call.inputs[0]))


@rule("cat")
def _cat(call):
    parts = [call.full(x).to(call.out.dtype) for x in call.inputs if x.ndim == call.out.ndim]
    return registry["cat"].entry(parts, call.args[0] % call.out.ndim + 1)


@rule("stack")
def _stack(call):
    parts = [call.full(x).to(call.out.dtype) for x in call.inputs]
    return registry["stack"].entry(parts, call.args[0] % call.out.ndim + 1)


@rule("repeat")
def _repeat(call):
    x = call.aligned(call.inputs[0], call.out.ndim)
    return (x if x.ndim > call.out.ndim else call.full(call.inputs[0])).repeat(1, *call.args[0])


@rule("repeat_backward")
def _repeat_backward(call):
    repeats, shape = call.args
    more = (1,) * (len(repeats) - len(shape))
    g = apply_n(call.op, (call.full(call.inputs[0]),), ((1, *repeats), (call.size, *more, *shape)))
    return call.shaped(g, shape)


@rule("trace")
def _trace(call):
    return call.full(call.inputs[0]).diagonal(0, 1, 2).sum(1)
