"""Calls of nn.functional beyond the samples: reductions by name, legacy arguments, warnings, gradients, errors."""

import numpy as np
import pytest
from oracle.answers import check, lines

pytestmark = [pytest.mark.oracle, pytest.mark.usefixtures("every_warning")]


def names(library):
    """The names in the expressions; `g(result, *inputs)` returns gradients of the sum of squares."""
    random = np.random.default_rng(3)

    def made(*shape, low=-2.0, high=2.0, grad=True, dtype="float64"):
        array = random.uniform(low, high, shape).astype(dtype)
        return library.tensor(array.tolist(), dtype=getattr(library, dtype)).requires_grad_(grad)

    def g(result, *inputs):
        return [result.detach(), *library.autograd.grad((result**2).sum(), inputs)]

    return {
        "F": library.nn.functional,
        "g": g,
        "x": made(3, 4),
        "y": made(3, 4),
        "z": made(3, 4),
        "f": made(3, 4, dtype="float32"),
        "p": made(3, 4, low=0.1, high=0.9),
        "q": made(3, 4, low=0.1, high=0.9, grad=False),
        "v": made(4),
        "w": made(4, low=0.5, high=1.5, grad=False),
        "r": made(4, grad=False),
        "s": made(4, low=0.5, high=1.5, grad=False),
        "a": made(2, 4, 6),
        "im": made(2, 4, 3, 5),
        "sign": library.tensor([[1, -1, 1, 1], [-1, 1, -1, 1], [1, 1, -1, -1]]),
        "one": library.tensor([1, -1, 1]),
        "t": library.tensor([0, 3, 1]),
        "i": library.tensor([[0, 1, 2, 3], [3, 2, 1, 0], [-1, 0, 0, 0]]),
    }


LOSSES = """
g(F.huber_loss(x, y), x, y)
g(F.huber_loss(x, y, 'sum', 0.4), x, y)
g(F.huber_loss(x, y, 'none', weight=q), x, y)
g(F.huber_loss(x, y, weight=q), x, y)
F.huber_loss(x, y, weight=w)
F.huber_loss(x, v)
F.huber_loss(x, y, delta=0)
g(F.kl_div(x, p), x, p)
g(F.kl_div(x, p, reduction='batchmean'), x, p)
g(F.kl_div(x, p, reduction='sum', log_target=True), x, p)
F.kl_div(x, p, size_average=False)
F.kl_div(x, p, reduce=False)
F.kl_div(x, p, reduction='foo')
F.kl_div(x, i)
g(F.poisson_nll_loss(x, p), x, p)
g(F.poisson_nll_loss(x, p, full=True, reduction='sum'), x, p)
g(F.poisson_nll_loss(p, 3 * p, log_input=False, full=True, eps=0.1, reduction='none'), p)
F.poisson_nll_loss(x, p, reduction='foo')
F.poisson_nll_loss(x, p, size_average=False)
g(F.gaussian_nll_loss(x, y, p), x, y, p)
g(F.gaussian_nll_loss(x, y, p, eps=0.5, full=True, reduction='sum'), x, y, p)
g(F.gaussian_nll_loss(x, y, 0.3), x, y)
g(F.hinge_embedding_loss(x, sign), x)
g(F.hinge_embedding_loss(x, sign, 0.3, reduction='none'), x)
F.hinge_embedding_loss(x, sign, reduction='foo')
F.hinge_embedding_loss(x, sign, reduce=True, size_average=False)
g(F.margin_ranking_loss(x, y, sign), x, y)
g(F.margin_ranking_loss(x, y, sign, 0.5, reduction='sum'), x, y)
F.margin_ranking_loss(x, v, sign)
F.margin_ranking_loss(x, y, sign, size_average=False)
g(F.soft_margin_loss(x, sign), x)
g(F.soft_margin_loss(x, sign, reduction='none'), x)
g(F.multi_margin_loss(x, t, 2, 0.4, w), x)
g(F.multi_margin_loss(x, t, reduction='none'), x)
g(F.multilabel_margin_loss(x, i), x)
g(F.multilabel_margin_loss(x, i, reduction='none'), x)
g(F.multilabel_soft_margin_loss(x, q, w), x)
g(F.multilabel_soft_margin_loss(x, q, reduction='none'), x)
F.multilabel_soft_margin_loss(x, q, size_average=False)
F.binary_cross_entropy_with_logits(x, q, reduction='foo')
F.binary_cross_entropy_with_logits(x, q[:1])
torch.binary_cross_entropy_with_logits(x, q)
torch.binary_cross_entropy_with_logits(x, q, w, w, 1)
F.binary_cross_entropy_with_logits(x, q, w, reduction='sum', pos_weight=w)
g(F.linear_cross_entropy(x, y, t % 3, linear_bias=v[:3]), x, y, v)
F.linear_cross_entropy(x, y, t % 3, ignore_index=2)
F.linear_cross_entropy(x, y, t % 3, linear_bias=v)
F.linear_cross_entropy(x, y[:, :3], t)
F.linear_cross_entropy(x, y, q[:, :3], ignore_index=2)
torch.kl_div(x, q)
torch.kl_div(x, q, 2)
torch.poisson_nll_loss(x, q, True, False, 1e-8, 1)
torch.hinge_embedding_loss(x, sign, 1.0, 1)
torch.margin_ranking_loss(x, y, sign, 0.5, 2)
"""


@pytest.mark.parametrize("expression", lines(LOSSES))
def test_losses(expression):
    check(expression, names)


NORMS = """
g(F.batch_norm(x, r, s, w, v, True), x, v)
[F.batch_norm(x, r, s, training=True, momentum=0.3), r, s]
[F.batch_norm(im, r, s, training=True), r, s]
g(F.batch_norm(x, r, s, v, w), x, v)
g(F.batch_norm(im, r, s), im)
[F.batch_norm(f, r.float(), s.float(), training=True)]
F.batch_norm(f.half(), None, None, w.float(), training=True)
F.batch_norm(f.half(), None, None, w, training=True)
F.batch_norm(x[:1], r, s, training=True)
F.batch_norm(im[:1, :, :1, :1], r, s, training=True)
F.batch_norm(x, None, None)
F.batch_norm(x[0], r, s)
F.batch_norm(x, v, s)
F.batch_norm('a', r, s)
[F.batch_norm(x[:0], r, s, training=True).shape, r, s]
torch.batch_norm(x, w, v, r, s, False, 0.1, 1e-5, True)
[torch.batch_norm(x, w, v, r, s, True, 0.1, 1e-5, True), r, s]
g(F.instance_norm(im), im)
[*g(F.instance_norm(im, r, s, w, v), im, v), r, s]
[F.instance_norm(im, r, s, momentum=0.4), r, s]
[F.instance_norm(im, r, s, w, v, False), r, s]
F.instance_norm(x)
F.instance_norm(im[:, :, :1, :1])
F.instance_norm(im, use_input_stats=False)
g(F.layer_norm(x, (4,), v, w), x, v)
g(F.layer_norm(im, (3, 5)), im)
F.layer_norm(f.half(), (4,), w.float(), w.float())
F.layer_norm(f.half(), (4,), w.half())
torch.layer_norm(x, (4,), v, w, 0.3, False)
g(F.rms_norm(x, (4,), v), x, v)
F.rms_norm(f, (4,))
F.rms_norm(f.half(), (4,))
F.rms_norm(f, (4,), w)
g(F.rms_norm(x, (4,), f[0]), x, f)
F.rms_norm(f[0], (2, 4))
F.layer_norm(i, (4,), f[0])
F.layer_norm(i, (4,))
F.group_norm(i, 2, f[0])
torch.rms_norm(x, (4,), w, 0.1)
g(F.group_norm(im, 2, v, w), im, v)
F.group_norm(f.half(), 2, w.float())
F.group_norm(x[:1], 4)
F.group_norm(x, 4)
F.group_norm(x[0], 2)
torch.group_norm(im, 2, w, v, 0.1, False)
g(F.local_response_norm(im, 3, 0.5), im)
g(F.local_response_norm(a, 2, 0.5, 0.5, 2.0), a)
F.local_response_norm(im[:0], 2)
g(F.normalize(x), x)
g(F.normalize(im, dim=(1, 2)), im)
F.normalize(i)
F.normalize(q, out=torch.empty(0, dtype=torch.float64))
F.normalize(x, out=torch.empty(0))
"""


@pytest.mark.parametrize("expression", lines(NORMS))
def test_normalisations(expression):
    check(expression, names)


EMBEDDINGS = """
g(F.embedding(t, x.t(), -1), x)
g(F.embedding(t, z), z)
g(F.embedding(t % 3, z, padding_idx=1), z)
g(F.embedding(t % 3, z, padding_idx=-2), z)
g(F.embedding(t % 3 * 2 % 3, z, scale_grad_by_freq=True), z)
F.embedding(t, z, padding_idx=7)
F.embedding(t, z, padding_idx=-7)
[F.embedding(t % 3, q, max_norm=0.7), q]
[F.embedding(t % 3, q, max_norm=0.7, norm_type=1.0), q]
F.embedding(t.float(), z)
torch.embedding(z, t % 3, 1)
[torch.embedding_renorm_(q, t % 2, 0.5, 2.0), q]
g(F.embedding_bag(t.reshape(1, 3) % 3, z), z)
g(F.embedding_bag(i.abs() % 3, z, mode='sum'), z)
g(F.embedding_bag(i.abs() % 3, z, mode='max'), z)
g(F.embedding_bag(i.abs() % 3, z, mode='sum', per_sample_weights=x), z, x)
g(F.embedding_bag(i.abs() % 3, z, padding_idx=0), z)
g(F.embedding_bag(t % 3, z, torch.tensor([0, 2, 2]), mode='sum'), z)
g(F.embedding_bag(t % 3, z, torch.tensor([0, 0, 2]), include_last_offset=True), z)
g(F.embedding_bag(t % 3, z, torch.tensor([0, 3]), mode='max'), z)
[F.embedding_bag(i.abs() % 3, q, max_norm=0.7), q]
F.embedding_bag(t, z)
F.embedding_bag(t, z, mode='foo')
F.embedding_bag(i, z, mode='foo')
F.embedding_bag(i, z, mode='max', scale_grad_by_freq=True)
F.embedding_bag(i, z, per_sample_weights=x)
F.embedding_bag(i, z, mode='sum', per_sample_weights=v)
F.embedding_bag(i, v)
F.embedding_bag(i.reshape(1, 3, 4), z)
F.embedding_bag(i, z, padding_idx=9)
g(F.bilinear(x, y, torch.ones(2, 4, 4, dtype=torch.float64)), x, y)
"""


@pytest.mark.parametrize("expression", lines(EMBEDDINGS))
def test_embeddings(expression):
    check(expression, names)


DROPOUT = """
g(F.dropout(x, 1.0), x)
F.dropout(x, 1.5)
F.dropout(x, training=False)
F.dropout(i)
F.dropout1d(im)
F.dropout1d(x, 1.0)
F.dropout1d(a, 1.0)
F.dropout2d(x, 1.0)
F.dropout2d(a, 1.0)
F.dropout2d(im, 1.0)
F.dropout2d(im, 1.5)
F.dropout3d(x, 1.0)
F.dropout3d(im, 1.0)
F.dropout3d(im.detach().clone(), 1.0, inplace=True)
F.dropout3d(im[None], 1.0)
F.dropout3d(im, training=False)
F.alpha_dropout(x)
F.alpha_dropout(x, 1.0, True)
F.alpha_dropout(x, -0.5)
F.alpha_dropout(i, 0.5, True)
F.feature_alpha_dropout(x, 0.0, True)
F.feature_alpha_dropout(v, 0.5, True)
torch.dropout(x, 0.5, 1)
torch.dropout(x, 0.5, False)
torch.dropout_(q, 1.0, True)
torch.feature_dropout(v, 0.5, True)
torch.alpha_dropout(x, 0.5, False)
torch.alpha_dropout_(q, 1.0, True)
torch.feature_alpha_dropout(x, 0.5, False)
torch.feature_dropout_(q, 1.0, True)
"""


@pytest.mark.parametrize("expression", lines(DROPOUT))
def test_dropout(expression):
    check(expression, names)


SIMILARITY = """
g(F.cosine_similarity(x, y), x, y)
g(F.cosine_similarity(x, v, dim=0), x, v)
g(F.cosine_similarity(0 * x, y, eps=0.1), x, y)
F.cosine_similarity(f, i)
g(F.pairwise_distance(x, y), x, y)
g(F.pairwise_distance(x, v, 1, keepdim=True), x, v)
F.pairwise_distance(i, i)
g(F.pdist(x), x)
g(F.pdist(x, 1.0), x)
g(F.cosine_embedding_loss(x, y, one), x, y)
g(F.cosine_embedding_loss(x, y, one, 0.2, reduction='none'), x, y)
F.cosine_embedding_loss(x, y, one, reduction='foo')
F.cosine_embedding_loss(x, y, one, size_average=False)
torch.cosine_embedding_loss(x, y, one, 0.1, 2)
g(F.triplet_margin_loss(x, y, z), x, y, z)
g(F.triplet_margin_loss(x, y, z, 2.0, 1, swap=True, reduction='sum'), x, y, z)
F.triplet_margin_loss(x, y, z, margin=0)
F.triplet_margin_loss(x, y, z, reduction='foo')
torch.triplet_margin_loss(x, y, z, 1.0, 2, 1e-6, True, 1)
F.triplet_margin_with_distance_loss(x, y, z, distance_function=lambda a, b: (a - b).abs().sum(-1))
"""


@pytest.mark.parametrize("expression", lines(SIMILARITY))
def test_similarity(expression):
    check(expression, names)


HEADS = """
m(a, a, a)
m(a, a, a, bias=True)
m(a, a[:, :, :], a * 2, need=False)
m(a, a, a, attn_mask=torch.ones(2, 2).triu(1).bool())
m(a, a, a, attn_mask=torch.ones(2, 2, dtype=torch.float64).triu(1))
m(a, a, a, attn_mask=torch.zeros(8, 2, 2, dtype=torch.float64), average_attn_weights=False)
m(a, a, a, key_padding_mask=torch.tensor([[False, True]] * 4))
m(a, a, a, key_padding_mask=torch.tensor([[False, True]] * 4), need=False)
m(a, a, a, key_padding_mask=torch.tensor([[False, True]] * 4), attn_mask=torch.eye(2).bool(), zero=True)
m(a, a, a, k=torch.ones(1, 1, 6, dtype=torch.float64), v=torch.ones(1, 1, 6, dtype=torch.float64), zero=True)
m(a[:, 0], a[:, 0], a[:, 0])
m(a, a, a, is_causal=True)
m(a, a, a, is_causal=True, need=False, attn_mask=torch.ones(2, 2).triu(1).bool())
m(a, a, a, attn_mask=torch.ones(3, 3).bool())
m(a, a, a, attn_mask=torch.ones(2).bool())
m(a, a, a, attn_mask=torch.ones(3, 2, 2).bool())
m(a, a, a, key_padding_mask=torch.ones(4, 3).bool())
m(a, a, a, key_padding_mask=torch.ones(2).bool())
m(a, a, a, heads=4)
m(a, a, a, width=5)
m(a, a[:1], a)
m(a[0, 0], a, a)
m(a, a[0], a)
m(a, a, a, static_k=torch.ones(8, 3, 3, dtype=torch.float64), static_v=torch.ones(8, 3, 3, dtype=torch.float64))
m(a, a, a, static_k=torch.ones(7, 3, 3, dtype=torch.float64))
m(a, a, a, static_v=torch.ones(8, 3, 2, dtype=torch.float64))
m(a, a, a, k=torch.ones(1, 1, 6).double(), v=torch.ones(1, 1, 6).double(), static_k=torch.ones(8, 3, 3).double())
m(a, a, a, k=torch.ones(1, 1, 6).double(), v=torch.ones(1, 1, 6).double(), static_v=torch.ones(8, 3, 3).double())
m(a, a, a, k=torch.ones(1, 1, 6).double())
m(a, a, a, v=torch.ones(1, 1, 6).double())
"""


def names_of_heads(library):
    """The same, and `m`: attention with two heads of width 3, with its gradients."""
    given = names(library)
    F = library.nn.functional
    weight = library.linspace(-1, 1, 18 * 6, dtype=library.float64).reshape(18, 6).sin().requires_grad_()
    after = library.linspace(-1, 1, 36, dtype=library.float64).reshape(6, 6).cos().requires_grad_()
    bias = library.linspace(-1, 1, 18, dtype=library.float64).requires_grad_()

    def m(q, k_in, v_in, bias_too=False, need=True, k=None, v=None, zero=False, heads=2, width=6, **named):
        own = bias if named.pop("bias", False) else None
        out, weights = F.multi_head_attention_forward(
            q, k_in, v_in, width, heads, weight, own, k, v, zero, 0.0, after, None, need_weights=need, **named
        )
        grads = library.autograd.grad((out**2).sum(), (given["a"], weight, after))
        return [out.detach(), weights if weights is None else weights.detach(), *grads]

    return {**given, "m": m}


@pytest.mark.parametrize("expression", lines(HEADS))
def test_heads(expression):
    check(expression, names_of_heads)


CTC = """
g(F.ctc_loss(lp, c, (5, 4), (2, 1)), x)
g(F.ctc_loss(lp, c, torch.tensor([5, 4]), torch.tensor([2, 1]), reduction='none'), x)
g(F.ctc_loss(lp, c, (5, 1), (2, 2), reduction='sum', zero_infinity=True), x)
g(F.ctc_loss(lp[:, 0], c[0], torch.tensor(5), torch.tensor(2)), x)
F.ctc_loss(lp[:, 0], c[0], (5,), (2,), reduction='none')
F.ctc_loss(lp, c, (1, 1), (2, 2), reduction='none')
F.ctc_loss(lp, c, (5, 5), (0, 0))
F.ctc_loss(lp, c.double(), (5, 5), (2, 2))
F.ctc_loss(lp, c, (5, 4), (2, 1), reduction='foo')
F.ctc_loss(lp.half(), c, (5, 4), (2, 1))
torch.ctc_loss(lp, c, (5, 4), (2, 1))
torch.ctc_loss(lp, c, (5, 4), (2, 1), 0, 2, True)
"""


def names_of_sequences(library):
    """`x` and its log-softmax `lp`, for two samples of five steps; their targets `c`; and `g`."""
    x = library.linspace(-2, 3, 30, dtype=library.float64).reshape(5, 2, 3).sin().detach().requires_grad_()
    given = {"x": x, "lp": x.log_softmax(2), "c": library.tensor([[1, 2], [2, 2]])}
    return {**names(library), **given}


@pytest.mark.parametrize("expression", lines(CTC))
def test_ctc(expression):
    check(expression, names_of_sequences)
