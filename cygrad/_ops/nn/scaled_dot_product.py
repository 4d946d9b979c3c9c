"""The computation of attention: averages of values, weighted by the softmax of query-key scores.

Large attentions are a single op that works block by block and never holds all scores. Small ones, and those with
dropout or a mask that needs a gradient, are composed of ops.
"""

import math

from cygrad._core.graph.dual import is_recorded, values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of, versions_of
from cygrad._core.graph.opdef import IN0, IN1, IN2, OUT0, PRIVATE, declare, publish
from cygrad._core.graph.record import record_n
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.nn import attention as kernels
from cygrad._kernels.device.cupy_library import is_array, module_of
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arithmetic import add, mul, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.products import matmul
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import expand, transpose
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.common.saved_lists import check_unchanged
from cygrad._ops.indexing.gathering import zeros_at
from cygrad._ops.indexing.masked_fill import masked_fill
from cygrad._ops.nn.softmax import softmax
from cygrad._ops.random.dropout import dropout

LARGE = 1 << 22  # number of scores that no longer fit in the cache
LARGE_CAUSAL = 1 << 14  # the same for one head with a causal mask, where blocks skip half of the scores


def attended(query, key, value, mask=None, scale=None, is_causal=False, dropout_p=0.0):
    """Return `softmax(query @ key^T * scale + mask) @ value`, with dropout of the weights at rate `dropout_p`."""
    if not dropout_p and _is_large(query, key, value, mask, is_causal):
        return attention_by_blocks(query, key, value, mask, scale, is_causal)
    if mask is None and not dropout_p:
        return _by_ops(query, key, value, scale, is_causal)
    weights = weights_of(query, key, mask, scale, is_causal)
    return matmul(dropout(weights, dropout_p) if dropout_p else weights, value)


@in_steps(2, 2, 2, last=2, node="UnsafeViewBackward0")
def _by_ops(query, key, value, scale, is_causal):
    return matmul(weights_of(query, key, None, scale, is_causal), value)


def _is_large(query, key, value, mask, is_causal):
    """Whether the scores are many or on a GPU, and the dtypes and shapes are supported by the single op."""
    q, k, v = array_of(query), array_of(key), array_of(value)
    of_head, heads = q.shape[-2] * k.shape[-2], math.prod(q.shape[:-2])
    is_many = is_array(q) or heads * of_head >= LARGE or (is_causal and of_head >= LARGE_CAUSAL and heads)
    if not is_many or not q.size or not v.size:
        return False
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        return False
    return q.dtype == k.dtype == v.dtype and kernels.takes(q, v) and _adds_to(mask, (*q.shape[:-1], k.shape[-2]))


def _adds_to(mask, shape):
    """Whether a mask is None, or a constant that broadcasts to the shape."""
    if mask is None:
        return True
    own = mask.shape
    fits = len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1]))
    return fits and not is_recorded(mask)


# -- composed of ops --


def weights_of(query, key, mask=None, scale=None, is_causal=False):
    """Return `softmax(query @ key^T * scale + mask)`, and 0 in rows where the mask hides every key."""
    if is_causal:
        mask = hiding(later(query.shape[-2], key.shape[-2], query), query)
    matches = scores(query, key, mask, scale)
    if mask is None or is_causal:  # a causal mask never hides the first key
        return softmax(matches, -1)
    hidden = (mask == -math.inf).all(-1, True)
    values = values_of(hidden)
    if not is_array(values) and not _is_any(values):  # checking this on a GPU would force a synchronization
        return softmax(matches, -1)
    hidden = expand(hidden, (*matches.shape[:-1], 1))
    return masked_fill(softmax(masked_fill(matches, hidden, 0.0), -1), hidden, 0.0)


def scores(query, key, mask, scale=None):
    """Return the scores `query @ key^T * scale + mask`."""
    matches = matmul(mul(query, _scale(query, scale)), transpose(key, -2, -1))
    return matches if mask is None else add(matches, mask.to(matches.dtype))


def _scale(query, scale):
    return 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale


def later(length, keys, like):
    """Return a boolean matrix, on the device of `like`, that is True where the key comes after the query."""
    return tensor_of(_later(module_of(memory_of(like)), length, keys))


@noted
def _later(module, length, keys):
    return ~module.tri(length, keys, dtype=bool)


@noted
def _is_any(values):
    return bool(values.any())


def hiding(hidden, like):
    """Return the additive mask: -inf where `hidden` is True, 0 elsewhere."""
    return masked_fill(zeros_at(tuple(hidden.shape), like), hidden, -math.inf)


# -- block by block --


def blocks_rule(n, g):
    query, key, value = (n.saved(i) for i in range(3))
    mask, versions, scale, is_causal, logs = n.args
    check_unchanged(n, [mask], versions)
    if get_modes() & NO_GRAD and logs is not None:
        q, k, v, out = (array_of(t) for t in (query, key, value, n.saved_result()))
        added = None if mask is None else array_of(mask)
        grads = kernels.attend_backward(array_of(g), q, k, v, added, scale, is_causal, out, array_of(logs))
        return tuple(tensor_of(grad) if n.needs(i) else None for i, grad in enumerate(grads))
    weights = weights_of(query, key, mask, scale, is_causal)
    slopes = matmul(g, transpose(value, -2, -1))
    slopes = mul(mul(weights, sub(slopes, total(mul(slopes, weights), -1, True))), scale)
    return (
        matmul(slopes, key) if n.needs(0) else None,
        matmul(transpose(slopes, -2, -1), query) if n.needs(1) else None,
        matmul(transpose(weights, -2, -1), g) if n.needs(2) else None,
    )


BY_BLOCKS = declare(
    "attention_by_blocks",
    blocks_rule,
    saves=IN0 | IN1 | IN2 | OUT0,
    flags=PRIVATE,
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    inputs="query key value",
    attributes="attn_mask _ scale is_causal logsumexp",
    devices="together",
)


def attention_by_blocks(query, key, value, mask=None, scale=None, is_causal=False):
    """`softmax(query @ key^T * scale + mask) @ value` as a single op, which saves one number per row of scores.

    Leading dimensions must be equal; the mask is constant and broadcasts to the scores. The gradient recomputes blocks
    of weights; recorded gradients are composed of ops.
    """
    q, k, v = array_of(query), array_of(key), array_of(value)
    scale, mask = float(_scale(query, scale)), None if mask is None else mask.to(query.dtype)
    if kernels.takes(q, v):
        out, logs = kernels.attend(q, k, v, None if mask is None else array_of(mask), scale, is_causal)
        logs = tensor_of(logs)
    else:
        weights = weights_of(query.detach(), key.detach(), mask, scale, is_causal)
        out, logs = array_of(matmul(weights, value.detach())), None
    args = mask, versions_of([mask]), scale, is_causal, logs
    return record_n(BY_BLOCKS, out, (query, key, value), args)


@rule("attention_by_blocks")
def _attention(call):
    mask, _, scale, is_causal, _ = call.args  # the mask has no samples: the op rejects recorded masks
    query, key, value = map(call.full, call.inputs)
    return attended(query, key, value, mask, scale, is_causal)


functions = publish(globals())
