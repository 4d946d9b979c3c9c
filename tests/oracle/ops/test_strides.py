"""Strides of results if operands are not row-major."""

import itertools
import operator

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, Cygrad
from oracle.ops.test_ops import Torch

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

NAMES = """abs add argsort atan2 ceil clamp clamp_min clone cumsum div eq erf exp fill flip floor gelu gt index_fill
index_put mul neg pow relu round sigmoid softmax sort sqrt sub tanh trunc where isin linalg_matrix_exp masked_fill
msort topk""".split()


def in_order(order):
    def change(array):
        if array.ndim < 2:
            return array.copy()
        axes = order(array.ndim)
        return array.transpose(axes).copy().transpose(np.argsort(axes))

    return change


def every_second(array):
    return array.repeat(2, -1)[..., ::2] if array.ndim else array.copy()


def expanded(array):
    if not array.ndim or array.shape[0] < 2:
        return array.copy()
    return np.broadcast_to(array[:1].copy(), array.shape)


LAYOUTS = {
    "transposed": in_order(lambda n: (*range(n - 2), n - 1, n - 2)),
    "reversed": in_order(lambda n: tuple(range(n))[::-1]),
    "channels last": in_order(lambda n: (0, *range(2, n), 1)),
    "last first": in_order(lambda n: (n - 1, *range(n - 1))),
    "every second": every_second,
    "expanded": expanded,
}


class FromNumpy(Cygrad):
    tensor = staticmethod(cygrad.from_numpy)


def strides(call):
    """The strides of each result, except for dimensions of length 1."""
    return [
        [step for step, n in zip(result.stride(), result.shape) if n != 1] if result.numel() else None
        for result in call.run()
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_of_all_operands(name, layout):
    """All operands have the same layout."""
    for sample in SAMPLES[name]:
        if sample.any_layout:
            calls = [Call(name, sample, LAYOUTS[layout], requires_grad=False, on=on) for on in (FromNumpy, Torch)]
            assert strides(calls[0]) == strides(calls[1]), sample


SHAPE = (2, 3, 4)
ORDERS = {"rows": (0, 1, 2), "columns": (0, 2, 1), "reversed": (2, 1, 0), "last first": (2, 0, 1)}


def mixed(library):
    """Tensors of one shape in different orders, one with gaps, one expanded, and some that broadcast to that shape."""
    for order in ORDERS.values():
        back = sorted(range(3), key=order.__getitem__)
        yield library.arange(24.0).reshape([SHAPE[i] for i in order]).permute(back)
    yield library.arange(48.0).reshape(2, 3, 8)[..., ::2]
    yield library.ones(1, 3, 4).expand(SHAPE)
    yield library.ones(4)
    yield library.tensor(2.0)
    yield library.ones(3, 1)


TWO = "add atan2 clamp heaviside isclose logaddexp lt maximum special.xlog1py special.zeta xlogy".split()
THREE = "addcdiv addcmul lerp where masked_fill".split()


@pytest.mark.parametrize("name", TWO + THREE)
def test_of_operands_that_lie_differently(name):
    """The first operand with a memory order decides."""

    def program(library):
        for x, y in itertools.product(mixed(library), repeat=2):
            rows = library.arange(24.0).reshape(SHAPE)
            calls = {
                "where": [(x > 2, y, rows), (x > 2, rows, y), (rows > 2, x, y), (x > 2, y, 1.0), (rows > 2, 1.0, y)],
                "masked_fill": [(x, y > 2, 1.0)],
            }
            of_three = [(x, y, rows), (x, rows, y), (rows, x, y), (x, y, library.ones(4)), (x, library.ones(3, 1), y)]
            for call in calls.get(name, of_three if name in THREE else [(x, y)]):
                result = operator.attrgetter(name)(library)(*call)
                yield [step for step, n in zip(result.stride(), result.shape) if n != 1]

    assert list(program(cygrad)) == list(program(torch))


@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (2, 3, 3, 5)], ids=str)
def test_of_permutation_matrices(shape):
    def program(library):
        a = library.from_numpy(np.random.default_rng(0).normal(size=shape))
        compact, pivots = library.linalg.lu_factor(a)
        for p in (library.linalg.lu(a)[0], library.lu_unpack(compact, pivots)[0]):
            yield p.tolist(), p.stride()

    assert list(program(cygrad)) == list(program(torch))


# Factors and solutions in LAPACK's layout, for stacks of matrices; `s` is positive definite
FACTORS = {
    **{f"linalg.{name}": (lambda torch, a, s, name=name: getattr(torch.linalg, name)(s)) for name in (
        "inv inv_ex eig eigh cholesky cholesky_ex lu lu_factor lu_factor_ex det slogdet pinv matrix_exp"
    ).split()},
    **{f"linalg.{name} of any": (lambda torch, a, s, name=name: getattr(torch.linalg, name)(a)) for name in (
        "svd svdvals lu lu_factor lu_factor_ex pinv"
    ).split()},
    "linalg.qr": lambda torch, a, s: torch.linalg.qr(a),
    "linalg.qr complete": lambda torch, a, s: torch.linalg.qr(a, "complete")[0],
    "linalg.qr r": lambda torch, a, s: torch.linalg.qr(a, "r")[1],
    "linalg.svd reduced": lambda torch, a, s: torch.linalg.svd(a, full_matrices=False),
    "svd": lambda torch, a, s: torch.svd(a),
    "geqrf": lambda torch, a, s: torch.geqrf(a),
    "lu": lambda torch, a, s: torch.lu(a),
    "lu_unpack": lambda torch, a, s: torch.lu_unpack(*torch.linalg.lu_factor(a)),
    "cholesky upper": lambda torch, a, s: torch.cholesky(s, upper=True),
    "linalg.eigh upper": lambda torch, a, s: torch.linalg.eigh(s, UPLO="U"),
    "linalg.solve": lambda torch, a, s: torch.linalg.solve(s, a),
    "linalg.solve right": lambda torch, a, s: torch.linalg.solve(s, a.mT, left=False),
    "linalg.solve one": lambda torch, a, s: torch.linalg.solve(s[:1], a),
    "linalg.solve vectors": lambda torch, a, s: torch.linalg.solve(s, a[..., 0]),
    "linalg.lstsq": lambda torch, a, s: torch.linalg.lstsq(a, a[..., :2] + 1),
    "linalg.lstsq gels": lambda torch, a, s: torch.linalg.lstsq(a, a[..., :2] + 1, driver="gels"),
    "linalg.lstsq gelsd": lambda torch, a, s: torch.linalg.lstsq(a, a[..., :2] + 1, driver="gelsd"),
    "linalg.solve_triangular": lambda torch, a, s: torch.linalg.solve_triangular(s, a, upper=True),
    "linalg.solve_triangular right": lambda torch, a, s: (
        torch.linalg.solve_triangular(s, a.mT, upper=False, left=False)
    ),
    "triangular_solve": lambda torch, a, s: torch.triangular_solve(a, s),
    "triangular_solve transposed": lambda torch, a, s: torch.triangular_solve(a, s, transpose=True),
    "triangular_solve one": lambda torch, a, s: torch.triangular_solve(a, s[:1]),
    "linalg.lu_solve": lambda torch, a, s: torch.linalg.lu_solve(*torch.linalg.lu_factor(s), a),
    "linalg.lu_solve adjoint": lambda torch, a, s: torch.linalg.lu_solve(*torch.linalg.lu_factor(s), a, adjoint=True),
    "linalg.lu_solve right": lambda torch, a, s: torch.linalg.lu_solve(*torch.linalg.lu_factor(s), a.mT, left=False),
    "lu_solve": lambda torch, a, s: torch.lu_solve(a, *torch.linalg.lu_factor(s)),
    "cholesky_solve": lambda torch, a, s: torch.cholesky_solve(a, s),
    "cholesky_solve upper": lambda torch, a, s: torch.cholesky_solve(a, s, upper=True),
    "cholesky_solve one": lambda torch, a, s: torch.cholesky_solve(a, s[:1]),
    "cholesky_inverse": lambda torch, a, s: torch.cholesky_inverse(s),
    "linalg.ldl_factor": lambda torch, a, s: torch.linalg.ldl_factor_ex(s),
    "linalg.ldl_solve": lambda torch, a, s: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(s), a),
    "linalg.householder_product": lambda torch, a, s: torch.linalg.householder_product(s, s[..., 0]),
    "ormqr": lambda torch, a, s: torch.ormqr(s, s[..., 0], a),
    "ormqr transposed": lambda torch, a, s: torch.ormqr(s, s[..., 0], a, transpose=True),
    "ormqr right": lambda torch, a, s: torch.ormqr(s, s[..., 0], a.mT, left=False),
    **{f"power {n}": lambda torch, a, s, n=n: torch.linalg.matrix_power(s, n) for n in (-1, 0, 1, 2)},
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", FACTORS)
def test_of_factors(name, dtype):
    for shape, order in itertools.product(
        ((3, 3), (4, 3), (3, 4), (2, 3, 3), (2, 4, 3), (2, 3, 4), (0, 3, 3)), (1, -1)
    ):
        if name.endswith("one") and len(shape) == 2:
            continue
        a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        s = a @ a.swapaxes(-1, -2) + 4 * np.eye(shape[-2], dtype=dtype)
        a, s = (m if order == 1 else m.swapaxes(-1, -2).copy().swapaxes(-1, -2) for m in (a, s))
        found, expected = (
            FACTORS[name](library, library.from_numpy(a), library.from_numpy(s)) for library in (cygrad, torch)
        )
        one = isinstance(expected, torch.Tensor)
        for ours, theirs in zip([found] if one else found, [expected] if one else expected, strict=True):
            assert steps_of(ours) == steps_of(theirs) and ours.is_contiguous() == theirs.is_contiguous(), (shape, order)


def steps_of(tensor):
    return tensor.numel() and [step for step, n in zip(tensor.stride(), tensor.shape) if n != 1]
