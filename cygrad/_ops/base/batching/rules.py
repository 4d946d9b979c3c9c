"""How `vmap` applies an op to all samples at once (Note [Batches] in _core/transforms/vmap_levels.py).

A batching rule takes a `Call` and returns the samples of the result, or a tuple of them for several results: tensors
whose first dimension is the batch. It calls public ops, so its results get their gradients, tangents, and samples in
enclosing batches. A row states its rule in the field `batching`:

* elementwise ops need none: by default they run on operands with aligned dimensions (`elementwise`);
* ops that accept any number of leading dimensions run unchanged (`leading`), as do ops on images (`merged`);
* ops whose kernels take dimensions or shapes as arguments run with those shifted by one (`shifting`);
* any other rule is defined below the op's entry point and registered there, which is the same as naming it in the row:

    @rule("gather")
    def _gather(call):
        ...

* None declares that the op has no rule: `vmap` then runs the whole function once per sample.

The rules of compiled ops are in the other modules of this folder, so that they need no compiling, and are not imported
before the first `vmap`.
"""

from functools import cache

from cygrad._core.graph.opdef import ELEMENTWISE, VIEW, facts_of, note_facts, registry
from cygrad._core.graph.record import apply1, apply2, apply_n, result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import strided
from cygrad._core.transforms.vmap_levels import NoBatchingRule

RULES = facts_of["batching"]  # {name of a row: its rule, or None}


def rule(names):
    """Decorator that registers a batching rule for the rows with these names."""

    def note(function):
        for name in names.split():
            note_facts(name, {"batching": function})
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
    key, function = rule_of(step.op)
    if function is None or any(isinstance(x, Tensor) and x.layout is not strided for x in step.inputs):
        raise NoBatchingRule(step.op.name)
    return _as_tuple(function(Call(batch, step, key)))[: len(step.outs)]


def _as_tuple(found):
    return (found,) if isinstance(found, Tensor) else tuple(found)


@cache
def rule_of(op):
    """Return the name of a row in the registry, and its rule or None. Variants have those of their op."""
    from cygrad._core.registry.out_dtypes import name_of  # deferred: families import this module, few programs use vmap

    key = name_of(op)
    if key not in RULES:
        registry.finder(key.partition(".")[0])  # a variant may be named like an op of a family that is not imported yet
    if key in RULES:
        return key, RULES[key]
    is_elementwise = op.flags & ELEMENTWISE and not op.flags & VIEW
    return key, elementwise if is_elementwise and (op.kernel or op.ufunc) else None


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


# -- ops that run with other arguments, or unchanged --


def shifting(kinds):
    """Return the rule of an op that runs with shifted arguments.

    `kinds` has a letter for each argument of the kernel: d = dimension, D = dimensions (None: all), s = shape of the
    input, . = unchanged.
    """

    def shifted(call):
        """Run the op itself with its dimensions shifted by one; 0-dim samples first get a dimension."""
        ndim = max([1, *[x.ndim for x in call.inputs]])
        inputs = tuple([vectors(call, x) for x in call.inputs])
        if len(kinds) != len(call.args) or any(k == "d" and a is None for k, a in zip(kinds, call.args, strict=True)):
            raise NoBatchingRule(call.op.name)
        args = tuple([shifted_argument(k, a, call, ndim) for k, a in zip(kinds, call.args, strict=True)])
        return call.shaped(apply_n(call.op, inputs, args), call.out.shape)

    return shifted


def shifted_argument(kind, value, call, ndim):
    """Convert an argument for samples with `ndim` dimensions to the one for the whole batch; see `shifting`."""
    if kind == "d":
        return value + 1 if value >= 0 else value
    if kind == "D":
        return tuple(range(1, ndim + 1)) if value is None else tuple([d + 1 if d >= 0 else d for d in value])
    return (call.size, *value) if kind == "s" else value


def leading(call):
    """Run the op itself."""
    return apply_n(call.op, tuple([call.full(x) for x in call.inputs]), call.args or None)


def merged(call):
    """Run the op itself on the images of all samples as one batch."""
    x = call.inputs[0]
    return call.shaped(apply_n(call.op, (call.samples(x).flatten(0, 1),), call.args or None), call.out.shape)


def reduce_along(call):
    """Call the method of the same name, which takes a dimension and possibly `keepdim`."""
    t, x = call.inputs[0], call.full(call.inputs[0])
    dim, *keepdim = call.args[1:] if isinstance(call.args[0], tuple) else call.args
    if not t.ndim:
        return [part.view(call.size) for part in _as_tuple(getattr(x.view(-1, 1), call.op.name)(1))]
    return getattr(x, call.op.name)(dim % t.ndim + 1, *keepdim)


def of_unknown_shape(call):
    """Refuse an op whose result may have a different shape for each sample."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{call.op.name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
        "feature.\n  the result may have a different shape for each sample: use torch.where, or a mask"
    )
