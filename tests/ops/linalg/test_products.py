"""Products beyond the samples: memory, saved tensors, hints in errors."""

import sys

import numpy as np
import pytest

import cygrad as torch
from cygrad.nn import functional as F
from helpers import fails

# --- Saved tensors -----------------------------------------------------------------------------


def test_a_factor_is_saved_only_if_the_other_needs_its_gradient():
    x, w = torch.ones(2, 3), torch.ones(3, 4, requires_grad=True)
    y = x @ w
    with torch.no_grad():
        w += 1  # like an optimizer step: x is saved, w is not
    y.sum().backward()
    assert w.grad.tolist() == [[2.0] * 4] * 3
    y = x @ w
    x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_linear_saves_likewise():
    x, w, b = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True), torch.ones(4, requires_grad=True)
    y = F.linear(x, w, b)
    with torch.no_grad():
        w += 1
        b += 1
    y.sum().backward()
    assert w.grad.tolist() == [[2.0] * 3] * 4 and b.grad.tolist() == [2.0] * 4


def test_saved_values_have_pytorchs_names():
    a, b, v = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True), torch.ones(3)
    assert (a @ b).grad_fn._saved_mat2.shape == (3, 2)
    assert (a @ v).grad_fn._saved_vec.shape == (3,)
    node = torch.addmm(torch.ones(2), a, b, beta=3).grad_fn
    assert node._saved_mat1.shape == (2, 3) and node._saved_beta == 3


# --- Memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [lambda x, w: x @ w.t(), lambda x, w: F.linear(x, w, torch.zeros(4))])
@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3)])
def test_the_gradient_of_a_weight_lies_in_memory_as_the_weight(layer, shape):
    x, w = torch.ones(*shape, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    layer(x, w).sum().backward()
    assert w.grad.is_contiguous() and w.grad.tolist() == [[float(x.numel() // 3)] * 3] * 4
    assert x.grad.is_contiguous()


def test_results_own_their_memory():
    a, b = torch.eye(2), torch.eye(2)
    for y in (a @ b, a @ b[0], a[0] @ b, torch.eye(2)[None] @ b, F.linear(a, b, torch.zeros(2))):
        assert not y._is_view()
        y += 1
    assert a.tolist() == b.tolist() == [[1, 0], [0, 1]]


def test_out_may_be_a_factor():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.mm(a, a, out=a) is a
    assert a.tolist() == [[7, 10], [15, 22]] and a._version == 1


def test_stacks_of_many_dimensions():
    a, b = torch.randn(2, 1, 3, 4, 5), torch.randn(7, 1, 5, 2)
    np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-5, atol=1e-6)
    a.requires_grad_(), b.requires_grad_()
    (a @ b).sum().backward()
    assert a.grad.shape == a.shape and b.grad.shape == b.shape
    expected = np.broadcast_to(b.detach().numpy().sum(-1)[None, :, :, None], (2, 7, 3, 4, 5))
    np.testing.assert_allclose(a.grad.numpy(), expected.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


# --- Operators ---------------------------------------------------------------------------------


def test_operator_takes_arrays_from_both_sides():
    t, array = torch.tensor([[1.0, 2.0]], requires_grad=True), np.array([[3.0], [4.0]], np.float32)
    assert (t @ array).item() == 11 and (t @ array).requires_grad
    assert (array @ t).tolist() == [[3, 6], [4, 8]]
    y = t
    y @= array
    assert y is not t and y.item() == 11


@pytest.mark.parametrize("other", [2, 2.0, "a", None, [1.0]])
def test_operator_refuses_other_things(other):
    with pytest.raises(TypeError):
        torch.ones(2, 2) @ other
    with pytest.raises(TypeError):
        other @ torch.ones(2, 2)


# --- Hints -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, hints",
    [
        (lambda a: a @ a, ["(2, 3) and (2, 3)", "transposing the second makes them fit: a @ b.t()"]),
        (lambda a: a @ torch.ones(2, 5), ["(2, 3) and (2, 5)", "transposing the first makes them fit: a.t() @ b"]),
        (lambda a: a[None] @ a[None], ["transposing the second makes them fit: a @ b.mT"]),
        (lambda a: a @ torch.ones(4), ["(2, 3) and (4,)", "3 and 4, must be equal"]),
        (
            lambda a: F.linear(a, torch.ones(4, 5), torch.ones(4)),
            ["input has shape (2, 3)", "must be 5", "(out_features, in_features)"],
        ),
        (lambda a: a @ torch.ones(3, 2).double(), ["torch.float32 and torch.float64", ".float()"]),
        (lambda a: a @ torch.tensor(2.0), ["use `*` to multiply by a 0-dim tensor"]),
    ],
)
def test_errors_say_how_to_mend_it(call, hints):
    with pytest.raises(RuntimeError) as caught:
        call(torch.ones(2, 3))
    first, _, rest = str(caught.value).partition("\n")
    for hint in hints:
        assert hint in rest


def test_failing_products_record_nothing():
    a = torch.ones(2, 3, requires_grad=True)
    out = torch.ones(2, 2)
    for bad in (lambda: a @ a, lambda: torch.mm(a.detach(), a.detach(), out=out)):
        with pytest.raises(RuntimeError):
            bad()
    assert out._version == 0 and a.grad is None


# --- Contraction order of einsum ---------------------------------------------------------------


class PathFinder:
    """Replaces opt_einsum: multiplies the last two operands first."""

    asked = []

    @staticmethod
    def get_symbol(i):
        return chr(ord("a") + i)

    @classmethod
    def contract_path(cls, equation, *shapes, **how):
        cls.asked.append((equation, shapes, how))
        return [(1, 2), (0, 1)], None


def test_einsum_multiplies_in_the_order_that_opt_einsum_says(monkeypatch):
    monkeypatch.setitem(sys.modules, "opt_einsum", PathFinder)
    a, b, c = torch.ones(2, 1), torch.ones(3, 4), torch.ones(4, 5, requires_grad=True)
    y = torch.einsum("AB,BC,CD->DA", a, b, c)
    assert y.tolist() == [[12.0] * 2] * 5
    assert PathFinder.asked == [("ab,bc,cd->da", ((2, 1), (3, 4), (4, 5)), {"shapes": True, "optimize": "auto"})]


@pytest.fixture
def path_finder(monkeypatch):
    monkeypatch.setitem(sys.modules, "opt_einsum", PathFinder)
    monkeypatch.setattr(torch.backends, "_find_opt_einsum", lambda: True)
    monkeypatch.setattr(PathFinder, "asked", [])
    return PathFinder


def test_the_search_for_an_order_has_settings(path_finder):
    settings = torch.backends.opt_einsum
    operands = torch.ones(2, 1), torch.ones(1, 4), torch.ones(4, 5)
    with settings.flags(enabled=False):
        assert not settings.enabled
        assert torch.einsum("ab,bc,cd->da", *operands).shape == (5, 2) and not path_finder.asked
        with pytest.raises(ValueError, match="^opt_einsum is not enabled, so setting a `strategy` to greedy will not"):
            settings.strategy = "greedy"
    with settings.flags(strategy="greedy"):
        torch.einsum("ab,bc,cd->da", *operands)
        with pytest.raises(ValueError, match="^`strategy` must be one of the following: .* but is best"):
            settings.set_flags(False, "best")
        assert (settings.enabled, settings.strategy) == (True, "greedy")
    assert [how["optimize"] for _, _, how in path_finder.asked] == ["greedy"]
    assert (settings.enabled, settings.strategy) == (True, "auto")


def test_the_search_cannot_be_enabled_without_the_package(monkeypatch):
    monkeypatch.setattr(torch.backends, "_find_opt_einsum", lambda: False)
    with pytest.raises(ValueError, match="^opt_einsum is not available, so setting `enabled` to True"):
        torch.backends.opt_einsum.enabled = True
    assert torch.backends.opt_einsum.get_opt_einsum() is None


def test_einsum_with_opt_einsum():
    pytest.importorskip("opt_einsum")
    shapes = [(2, 3, 4), (2, 4, 3), (2, 3, 2)]
    arrays = [np.arange(np.prod(s), dtype=float).reshape(s) for s in shapes]
    found = torch.einsum("...ij,...jk,...kl->...il", *map(torch.tensor, arrays))
    np.testing.assert_allclose(found.numpy(), arrays[0] @ arrays[1] @ arrays[2])


@pytest.mark.parametrize("strategy", ["auto-hq", "dp", "branch-2"])
def test_strategies_of_opt_einsum(strategy):
    pytest.importorskip("opt_einsum")
    settings = torch.backends.opt_einsum
    with settings.flags():
        settings.strategy = strategy
        assert settings.strategy == strategy
        assert (
            torch.einsum("ij,jk,kl->il", torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 2)).tolist()
            == [[12.0] * 2] * 2
        )
        for unknown in ("best", 3):
            with pytest.raises(ValueError, match=f"^`strategy` must be one of the following: .* but is {unknown}"):
                settings.strategy = unknown
        assert settings.strategy == strategy
    assert settings.strategy == "auto"


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("matrix_power", (2,)),
        ("tensordot", (torch.eye(2), 1)),
        ("kron", (torch.eye(2),)),
        ("chain_matmul", (torch.eye(2),)),
        ("inner", (torch.eye(2),)),
    ],
)
def test_an_empty_out_takes_the_shape_of_the_result(function, arguments):
    a, out = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.empty(0)
    expected = getattr(torch, function)(a, *arguments)
    assert getattr(torch, function)(a, *arguments, out=out) is out and out.equal(expected)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        getattr(torch, function)(a.requires_grad_(), *arguments, out=out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("columns", [1, 3, 30])
def test_qr_of_a_tall_matrix(dtype, columns, monkeypatch):
    """Computed by blocks of rows, but with LAPACK's signs."""
    monkeypatch.setattr("cygrad._kernels.cpu.base.chunks.SIZE", 256)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1003, columns)) + (
        1j * rng.normal(size=(1003, columns)) if dtype in (np.complex64, np.complex128) else 0
    )
    unlike = a * 10.0 ** -np.arange(columns)
    for array in (a, unlike, np.eye(1003, columns), np.zeros((1003, columns)), np.full((1003, columns), np.nan)):
        array = array.astype(dtype)
        q, r = (factor.numpy() for factor in torch.linalg.qr(torch.tensor(array)))
        assert q.dtype == r.dtype == dtype
        eps = np.finfo(dtype).eps
        for found, expected in zip((q, r), np.linalg.qr(array.astype(np.result_type(dtype, np.float64)))):
            np.testing.assert_allclose(found, expected, 0, 50 * eps * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("p", [0, 1, 1.5, 2, np.inf])
def test_distances_of_long_rows(p, monkeypatch):
    x = np.random.default_rng(0).integers(0, 3, (4, 50)).astype(float)
    expected = torch.pdist(torch.tensor(x), p).numpy()
    monkeypatch.setattr("cygrad._kernels.cpu.nn.distances.DIFFERENCES", 7)
    np.testing.assert_allclose(torch.pdist(torch.tensor(x), p).numpy(), expected, 1e-12)
    np.testing.assert_allclose(expected[0], np.linalg.norm(x[0] - x[1], p), 1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, 2)])
@pytest.mark.parametrize("name", ["addmm", "addmv", "baddbmm", "addbmm", "linear"])
def test_half_precision_adds_before_it_rounds(name, beta, alpha, dtype):
    shapes = {
        "addmv": ((5,), (5, 9), (9,)),
        "baddbmm": ((5, 5), (2, 5, 9), (2, 9, 5)),
        "addbmm": ((5,), (2, 5, 9), (2, 9, 5)),
    }
    base, a, b = (torch.randn(shape).to(dtype) for shape in shapes.get(name, ((5,), (5, 9), (9, 5))))
    if name == "linear":
        found, expected = (
            torch.nn.functional.linear(a, b.mT, base)
            for a, b, base in ((a, b, base), (a.float(), b.float(), base.float()))
        )
    else:
        found, expected = (
            getattr(torch, name)(*given, beta=beta, alpha=alpha)
            for given in ((base, a, b), (base.float(), a.float(), b.float()))
        )
    assert found.dtype is dtype and found.equal(expected.to(dtype))


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(3, 40, 5), (1, 1, 1), (2, 0, 3), (0, 2, 2)])
def test_products_of_bytes(shape, kind):
    m, k, n = shape
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 127, (m, k)).astype(kind) * kind(2), rng.integers(-128, 128, (n, k), dtype=np.int8)
    expected = a.astype(np.int32) @ b.T.astype(np.int32)
    found = torch._int_mm(torch.tensor(a), torch.tensor(b).t())
    assert found.dtype is torch.int32 and found.tolist() == expected.tolist()
    out = torch.zeros(m, n, dtype=torch.int32)
    assert torch._int_mm(torch.tensor(a), torch.tensor(b).t(), out=out) is out and out.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "kinds, shapes, line",
    [
        (("float32", "int8"), ((2, 3), (3, 2)), "Expected self dtype to be int8 or uint8 but got float"),
        (("int8", "uint8"), ((2, 3), (3, 2)), "Expected mat2 dtype to be of type int8 but got unsigned char"),
        (("int8", "int8"), ((2, 3), (4, 2)), "self.size(1) needs to match mat2.size(0) but got 3 and 4"),
        (("int8", "int8"), ((3,), (3, 2)), "Expected self to be of dimension 2 but got 1"),
        (
            ("int8", "int8", "int64"),
            ((2, 3), (3, 2), (2, 2)),
            "Expected result dtype to be of type kInt but got long int",
        ),
        (("int8", "int8", "int32"), ((2, 3), (3, 2), (2, 5)), "Expected result.size(1) to be 2 but got 5"),
    ],
)
def test_wrong_products_of_bytes(kinds, shapes, line):
    a, b, *out = [torch.ones(shape, dtype=getattr(torch, kind)) for kind, shape in zip(kinds, shapes)]
    with fails(RuntimeError, f"int_mm_out_cpu: {line}"):
        torch._int_mm(a, b, out=out[0] if out else None)


@pytest.mark.parametrize("name", ["beta", "alpha"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_boolean_factors_of_addr(name, dtype):
    matrix, vector = torch.ones(2, 2, dtype=dtype), torch.ones(2, dtype=dtype)
    with fails(RuntimeError, f"Boolean {name} only supported for Boolean results."):
        torch.addr(matrix, vector, vector, **{name: True})
    assert torch.addr(matrix.bool(), vector.bool(), vector.bool(), **{name: True}).all()


def test_einsum_of_an_empty_list():
    with fails(ValueError, "einsum(): must specify the equation string and at least one operand, or at least ..."):
        torch.einsum("", [])


@pytest.mark.parametrize("use_gelu", [True, False])
def test_activations_of_products_with_out(use_gelu):
    a, b, out = torch.randn(2, 3), torch.randn(3, 4), torch.empty(2, 4)
    expected = torch._addmm_activation(torch.ones(4), a, b, beta=0.5, use_gelu=use_gelu)
    assert torch._addmm_activation(torch.ones(4), a, b, beta=0.5, use_gelu=use_gelu, out=out) is out
    assert out.equal(expected)
