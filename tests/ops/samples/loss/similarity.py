"""Samples for pairwise distances, cosine similarities, the losses based on them, and attention."""

import math

import numpy as np
from ops.sample import Sample, grid, integers


def samples():
    return {**pairs(), **losses(), **attention()}


def cosine(a, b, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(a, b)
    sizes = [np.maximum(np.linalg.norm(t, 2, dim, keepdims=True), eps) for t in (a, b)]
    return (a / sizes[0] * b / sizes[1]).sum(dim)


def distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return np.linalg.norm(np.atleast_1d(a - b + eps), p, -1, keepdims=keepdim)


def pairs():
    x, y, v = grid(3, 4), grid(3, 4)[::-1] * 0.7 + 0.1, grid(4)

    def pdist(a, p=2.0):
        i, j = np.triu_indices(len(a), 1)
        return np.linalg.norm(a[i] - a[j], p, 1)

    points = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0]])
    return {
        "cosine_similarity": [
            *(Sample(call, numpy=cosine) for call in ((x, y), (x, y, 0), (x, v), (v, v[::-1] + 1, -1), (x, y, 1, 0.5))),
            Sample((x, y[:1]), numpy=cosine),
            Sample((x, integers(3, 4) + 10), numpy=cosine),
        ],
        "steps": [
            Sample((lambda a, b: (a * b).sum(-1), (1, 1), 0, [x, y]), numpy=lambda *_: (x * y).sum(-1)),
            Sample(
                (lambda a, b, c: a / b * c, (1, 1, 1), 1, [x, y[:1], v[:3, None]]),
                numpy=lambda *_: x / y[0] * v[:3, None],
            ),
        ],
        "linear_steps": [
            Sample(
                (lambda t: t[0], lambda a: a[0], lambda g: np.pad(g[None], ((0, 2), (0, 0))), x, ()),
                numpy=lambda *_: x[0],
            ),
        ],
        "pairwise_distance": [
            *(
                Sample(c, numpy=distance)
                for c in ((x, y), (x, y, 1), (x, y, 3.0, 0.1), (x, v), (v, v + 1), (x, y, 2.0))
            ),
            Sample((x, y), {"keepdim": True}, distance),
        ],
        "pdist": [
            *(Sample((1.01 * x, *p), numpy=pdist) for p in ((), (1,), (2.0,), (3,), (1.5,), (math.inf,))),
            Sample((x, 0), numpy=lambda a, p: np.full(3, 4.0), smooth=False),
            Sample((points,), numpy=pdist, smooth=False),
            Sample((points, 1), numpy=pdist, smooth=False),
            # PyTorch's gradient of empty distances crashes
            Sample((x[:1],), numpy=lambda a: np.zeros(0), oracle_grad=False),
            Sample((np.zeros((0, 2)),), numpy=lambda a: np.zeros(0), oracle_grad=False),
        ],
    }


def losses():
    x, y, z = grid(3, 4), grid(3, 4)[::-1] * 0.7 + 0.1, grid(4, 3).T * 1.1
    one = np.array([1, -1, -1])

    def reduced(losses, code):
        return losses if code == 0 else losses.sum() / (losses.size if code == 1 else 1)

    def embedding(a, b, t, margin=0.0, reduction=0):
        c = cosine(a, b, -1)
        return reduced(np.where(t == 1, 1 - c, np.maximum(0, c - margin)), reduction)

    def triplet(a, p, n, margin=1.0, norm=2.0, eps=1e-6, swap=False, reduction=0):
        far = distance(a, n, norm, eps)
        if swap:
            far = np.minimum(far, distance(p, n, norm, eps))
        return reduced(np.maximum(0, margin + distance(a, p, norm, eps) - far), reduction)

    def with_distance(a, p, n, margin=1.0, swap=False, reduction="mean"):
        return triplet(a, p, n, margin, swap=swap, reduction=("none", "mean", "sum").index(reduction))

    return {
        "cosine_embedding_loss": [
            *(Sample((x, y, one, 0.1, code), numpy=embedding) for code in range(3)),
            Sample((x, y, one), numpy=embedding),
            Sample((x[0], y[0], np.asarray(-1)), numpy=embedding),
        ],
        "triplet_margin_loss": [
            *(Sample((x, y, z, 1.0, 2, 1e-6, False, code), numpy=triplet) for code in range(3)),
            Sample((x, y, z, 2.0, 3.0, 0.1, True), numpy=triplet),
            Sample((x, y, z, 3.0, 1.0), numpy=triplet),
        ],
        "triplet_margin_with_distance_loss": [
            *(Sample((x, y, z), {"reduction": name}, with_distance) for name in ("none", "mean", "sum")),
            Sample((x, y, z), {"swap": True, "margin": 3.0}, with_distance),
        ],
    }


def attention():
    q, k, v = 0.5 * grid(2, 3, 2, 4), 0.5 * grid(2, 3, 5, 4), grid(2, 3, 5, 3)
    shown = np.array([[True, False, True, True, False], [False, True, True, False, True]])

    def dots(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if enable_gqa:
            k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
        scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        if is_causal:
            mask = np.tri(*scores.shape[-2:], dtype=bool)
        if mask is not None:
            scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask)
        top = scores.max(-1, keepdims=True)
        e = np.exp(scores - np.where(np.isfinite(top), top, 0))
        return e / np.maximum(e.sum(-1, keepdims=True), 1e-300) @ v

    def blocks(q, k, v, mask, scale, is_causal):
        return dots(q, k, v, mask, 0.0, is_causal, scale)

    dead = shown & np.array([[True], [False]])
    return {
        "scaled_dot_product_attention": [
            Sample((q, k, v), numpy=dots),
            Sample((q[0, 0], k[0, 0], v[0, 0]), numpy=dots),
            Sample((q, k, v, shown), numpy=dots),
            Sample((q, k, v, dead), numpy=dots),
            Sample((q, k, v, grid(2, 5)), numpy=dots),
            Sample((q, k, v, grid(2, 1, 1, 5)), numpy=dots),
            Sample((q, k, v), {"is_causal": True}, dots),
            Sample((q, k, v), {"scale": 0.3}, dots),
            Sample((q, k[:, :1], v[:, :1]), numpy=dots),
            Sample((q, k[:, :1], v[:, :1]), {"enable_gqa": True}, dots),
        ],
        "attention_by_blocks": [
            Sample((q, k, v), numpy=dots),
            Sample((q[0, 0], k[0, 0], v[0, 0], None, 0.3, True), numpy=blocks),
        ],
        "multi_head_attention_forward": [
            Sample(
                (
                    q[:, :, 0],
                    k[0].swapaxes(0, 1),
                    k[1].swapaxes(0, 1),
                    4,
                    2,
                    0.5 * grid(12, 4),
                    grid(12),
                    None,
                    None,
                    False,
                    0.0,
                    grid(4, 4),
                    grid(4),
                ),
            ),
            Sample(
                (q[0, 0], k[0, 0], v[0, 0], 4, 2, None, grid(12), None, None, True, 0.0, 0.3 * grid(4, 4), None),
                {
                    "use_separate_proj_weight": True,
                    "q_proj_weight": grid(4, 4),
                    "k_proj_weight": 0.6 * grid(4, 4),
                    "v_proj_weight": grid(4, 3),
                    "attn_mask": ~shown,
                    "average_attn_weights": False,
                },
            ),
        ],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, i, v, one = grid(3, 4), integers(3, 4), grid(4), np.array([1, -1, 1])
    q, k = grid(2, 4, 8), grid(2, 5, 8)
    training = {"dropout_p": 1.5}

    def bad(*cases, **named):
        return [Sample(case, named) for case in cases]

    return {
        "cosine_similarity": bad((x, x, 5), (i, i), (x, x[:, :3]), (x, 1)),
        "pairwise_distance": bad((x, x[:, :3]), (x, 1)),
        "pdist": bad((x, -1), (v,), (x[None],), (i,), (1,)),
        "cosine_embedding_loss": bad((x, x, one[0]), (v, v, one), (x, x, one[:, None]), (x[None], x[None], one)),
        "triplet_margin_loss": bad((x, x, v)),
        "triplet_margin_with_distance_loss": bad((x, x, v))
        + bad((x, x, x), margin=-1)
        + bad((x, x, x), reduction="foo"),
        "scaled_dot_product_attention": [
            *bad((q, k, k, np.ones((4, 5), int)), (v, v, v), (q, k.astype(np.float32), k), (1, q, q)),
            *bad((q, k, k), **training),
        ],
    }
