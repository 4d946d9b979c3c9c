"""Batching rules of sums, means and matrix products."""

from cygrad._ops.base.batching.rules import rule, shifted_argument
from cygrad._ops.base.products import linear

# -- reductions.pyx --


@rule("sum mean")
def reduce_all(call):
    """Call the method of the same name along the elements of each sample."""
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


@rule("sum_to_size")
def _sum_to_size(call):
    x, t = call.full(call.inputs[0]), call.inputs[0]
    more = t.ndim - call.out.ndim
    dims = [*range(1, more + 1)]
    dims += [i + more + 1 for i, n in enumerate(call.out.shape) if n == 1 and t.shape[i + more] != 1]
    return call.shaped(x.sum(dims, True) if dims else x, call.out.shape)


# -- products.pyx --


def product(call, a, b):
    """`matmul` of two operands."""
    if call.has(a) and not call.has(b) and b.ndim <= 2:
        return call.samples(a) @ b
    if call.has(b) and not call.has(a) and a.ndim == 2 and b.ndim in (1, 2) and b.shape[1:].numel() == 1:
        return (call.samples(b).flatten(1) @ a.transpose(0, 1)).unsqueeze(2)  # combine all vectors into one matrix
    a, b = _as_matrices(call, a, True), _as_matrices(call, b, False)
    ndim = max(a.ndim, b.ndim)
    a, b = (x.view(x.shape[:1] + (1,) * (ndim - x.ndim) + x.shape[1:]) for x in (a, b))
    return a @ b


def _as_matrices(call, x, is_first):
    found = call.near(x)
    return found if x.ndim > 1 else found.unsqueeze(1 if is_first else 2)


@rule("matmul mm bmm mv dot")
def _matmul(call):
    return call.shaped(product(call, *call.inputs[:2]), call.out.shape)


@rule("linear")
def _linear(call):
    bias, x, weight = call.inputs
    found = product(call, x, weight) if call.op.name == "matmul" else None
    if found is None and not call.has(weight) and (bias is None or not call.has(bias)):
        return call.shaped(linear(call.samples(x), weight, bias), call.out.shape)
    found = _times_transposed(call, x, weight)
    found = call.shaped(found, call.out.shape)
    return found if bias is None else found + call.aligned(bias, call.out.ndim)


def _times_transposed(call, x, weight):
    w = call.near(weight).transpose(-1, -2)
    found = call.near(x)
    rows = found.unsqueeze(1) if x.ndim == 1 else found
    return rows @ w.view(w.shape[:1] + (1,) * (rows.ndim - w.ndim) + w.shape[1:])
