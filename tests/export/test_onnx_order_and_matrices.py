"""Order, sets, running extremes, diagonals, differences and random draws as ONNX models, for two batch sizes."""

import inspect

import pytest
from export.onnx_support import check, tensors

import cygrad as torch
from cygrad.nn import functional as F

pytest.importorskip("onnxruntime", reason="needs cygrad[onnx]")
pytest.importorskip("onnx", reason="needs cygrad[onnx]")

TIES = torch.tensor([[2, 0, 2, 1, 0, 2], [1, 1, 1, 3, 3, 0]])
EDGES = torch.tensor([-1.0, 0.0, 0.5, 2.0])


def filled_diagonal(x):
    y = x.view(-1, 6).clone()[:2].reshape(4, 3)
    y.fill_diagonal_(7.0)
    return y


FUNCTIONS = {
    "quantiles": lambda x: (
        *(x.median(1), x.median(1, keepdim=True), x.kthvalue(2, 1), x.kthvalue(6), x.quantile(0.3, 1)),
        *(x.quantile(0.5, dim=1, keepdim=True), x.quantile(1.0, 1), x.nanmean(1)),
        *(x.quantile(0.3, 1, interpolation=way) for way in ("lower", "higher", "nearest", "midpoint")),
    ),
    "quantiles of fixed shapes": lambda x: (
        *(x[:2].reshape(3, 4).median(), x[:2].reshape(12).quantile(0.4), x[0].quantile(0.7, keepdim=True)),
        x[:2].reshape(3, 4).T.median(0),
    ),
    "searches": lambda x: (
        *(torch.bucketize(x, EDGES), torch.bucketize(x, EDGES, right=True), torch.bucketize(x, EDGES, out_int32=True)),
        *(torch.searchsorted(EDGES, x), torch.searchsorted(x.sort(1)[0], x), torch.searchsorted(EDGES, 0.5)),
        torch.searchsorted(EDGES, x, side="right"),
    ),
    "sets": lambda x: (
        *(torch.isin(x.long(), torch.tensor([0, 1])), torch.isin(x.long(), torch.tensor([0]), invert=True)),
        *(torch.isin(x.long(), 1), x.long().unique(), x.long().unique(return_inverse=True, return_counts=True)),
        *(torch.unique(TIES + x[:1].long() * 0, dim=1, return_counts=True), x.round().unique(return_counts=True)),
    ),
    "running": lambda x: (
        *(x.cummax(1), x.cummin(1), x.cumprod(1), x.logcumsumexp(1), x.view(-1, 2, 3).cumprod(1)),
        *(x.view(-1, 3, 2).cummax(-2), x.view(-1, 2, 3).logcumsumexp(2)),
        *((TIES + x[:1].long() * 0).cummax(1), (TIES + x[:1].long() * 0).cummin(0), x.cumprod(1, dtype=torch.float64)),
    ),
    "diagonals": lambda x: (
        *(torch.diag_embed(x), torch.diag_embed(x, 1), torch.diag_embed(x, -2, 0, 2), torch.diag_embed(x, 0, 1, 0)),
        *(torch.diag(x[0]), torch.diag(x[0], -1), torch.diagflat(x[:2], 1), torch.diag(x[:2]), torch.diag(x[:2], 1)),
        torch.diagonal_scatter(x[:2], x[0, :2] * 9, 1),
        filled_diagonal(x),
    ),
    "infinities off the diagonal": lambda x: torch.diag_embed(x / 0),
    "products": lambda x, y: (
        *(torch.addbmm(y[:2, :2], x.view(-1, 2, 3), x.view(-1, 3, 2), beta=0.5, alpha=2), torch.kron(x[:2], y[:2])),
        *(torch.addr(torch.ones(6, 6), x[0], y[0], beta=0, alpha=3), torch.addr(torch.ones(6, 6), x[0], y[0])),
        *(torch.kron(x[0], y[:2]), torch.det(x[:2, :2]), torch.linalg.det(x.view(-1, 2, 3)[:, :, :2])),
        *(torch.matrix_power(x[:2, :2], 5), torch.linalg.matrix_power(x.view(-1, 2, 3)[:, :, 1:], 2)),
        *(torch.linalg.cross(x.view(-1, 2, 3), y.view(-1, 2, 3)), torch.cross(x.view(-1, 3, 2), y.view(-1, 3, 2), 1)),
        *(torch.vander(x[0]), torch.vander(x[0], 3, increasing=True)),
        *(torch.block_diag(x[:2], y[0], x[0, 0]), torch.cartesian_prod(x[0], y[0], x[1, :2])),
    ),
    "covariances": lambda x: (x.cov(), x.cov(correction=0), x.corrcoef(), x.T.cov()),
    "turned": lambda x: [x.rot90(k, (0, 1)) for k in range(-1, 4)],
    "split": lambda x: (
        *x.hsplit(2),
        *x.hsplit([1, 4]),
        *x[0].hsplit(3),
        *x[:2].vsplit(2),
        *x.view(-1, 2, 3).dsplit(3),
    ),
    "differences": lambda x, y: (
        *(x.diff(), x.diff(2), x.diff(dim=0), x.diff(prepend=y, append=y[:, :1]), (x > 0).diff()),
        *(torch.trapezoid(x), torch.trapezoid(x, dx=0.5, dim=0), torch.trapezoid(x, y), torch.trapz(x, y[0])),
        *(torch.cumulative_trapezoid(x), torch.cumulative_trapezoid(x, y[0]), torch.cumulative_trapezoid(x, y)),
    ),
    "signs and bits": lambda x, y: (
        *(torch.copysign(y, x), torch.copysign(x, -0.0), torch.copysign(x, 2.0), torch.signbit(x), x.signbit()),
        *(torch.signbit(torch.tensor([0.0, -0.0]) + 0 * x[0, :2].abs()), torch.signbit(x.long()), torch.isreal(x)),
        *(torch.ldexp(x, y.long()), x.long() << 2, (x * 9).long() >> 1, 1 << y.long(), 64 >> y.long()),
        *(torch.bitwise_left_shift(x.long(), y.long()), torch.special.xlog1py(x, y), torch.special.entr(x)),
        *(torch.special.ndtr(x), torch.special.xlog1py(x * 0, y)),
    ),
    "grids": lambda x: torch.grid_sampler(x.view(-1, 1, 2, 3), x.view(-1, 1, 3, 2).tanh(), 0, 1, False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function = FUNCTIONS[name]
    count = len(inspect.signature(function).parameters)
    args, others = ((torch.randn(n, 6), torch.randn(n, 6).abs() + 0.1)[:count] for n in (2, 5))
    check(function, args, ({0: "batch"},) * count, others)


DRAWS = {  # with the mean and the deviation that thousands of draws have
    "rand": (lambda x: torch.rand(x.size(0), 3), 0.5, 12**-0.5),
    "randn": (lambda x: torch.randn(x.size(0), 3), 0, 1),
    "rand_like": (lambda x: torch.rand_like(x), 0.5, 12**-0.5),
    "randn_like": (lambda x: torch.randn_like(x, dtype=torch.float64), 0, 1),
    "uniform_": (lambda x: torch.empty_like(x).uniform_(2, 4), 3, 2 * 12**-0.5),
    "normal_": (lambda x: (x + 1).normal_(3, 0.5), 3, 0.5),
    "bernoulli": (lambda x: torch.bernoulli(torch.full_like(x, 0.3)), 0.3, 0.21**0.5),
    "bernoulli_": (lambda x: x.clone().bernoulli_(0.3), 0.3, 0.21**0.5),
    "multinomial": (lambda x: (x[:, :2] * 0 + torch.tensor([1.0, 3.0])).multinomial(4, True), 0.75, 0.1875**0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_draws(name):
    function, mean, deviation = DRAWS[name]
    program = torch.onnx.export(function, (torch.ones(3, 4),), dynamic_shapes=({0: "batch"},))
    x = torch.ones(4000, 4)
    (expected,), (found,) = tensors(function(x)), program(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    found = found.double()
    assert abs(found.mean().item() - mean) < 6 * deviation / found.numel() ** 0.5
    assert abs(found.std().item() - deviation) < 0.05 * deviation


@pytest.mark.filterwarnings("ignore:size_average")
def test_what_a_form_cannot_express():
    x = torch.randn(3, 4)
    for function, reason in (
        (lambda x: torch.multinomial(x.abs(), 2), "without replacement"),
        (lambda x: torch.searchsorted(x, x, sorter=x.argsort()), "sorter"),
        (lambda x: torch.matrix_power(x[:2, :2], -1), "powers below 1"),
        (lambda x: x.cov(fweights=torch.tensor([1, 2, 3, 4])), "weights"),
        (lambda x: F.mse_loss(x, x, size_average=True), "deprecated"),
    ):
        with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match=reason):
            torch.onnx.export(function, (x,))
