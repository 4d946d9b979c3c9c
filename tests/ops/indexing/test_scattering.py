"""Indexed writes that the samples do not cover: the old `reduce` of `scatter`, and in-place functions."""

import numpy as np
import pytest

import cygrad
from cygrad import autograd, func, tensor

INDEX = [[0, 2, 1], [1, 1, 0]]


def operands():
    x = cygrad.arange(12.0).reshape(4, 3).clone().requires_grad_()
    return x, tensor(INDEX), cygrad.full((2, 3), 2.0, requires_grad=True)


def test_scatter_reduces_a_number():
    x, index, _ = operands()
    found = x.scatter(0, index, 2, reduce="multiply")
    assert found.tolist() == [[0, 1, 4], [6, 8, 10], [6, 14, 8], [9, 10, 11]]
    assert x.scatter(0, index, 2, reduce="add").tolist() == [[2, 1, 4], [5, 6, 7], [6, 9, 8], [9, 10, 11]]
    (grad,) = autograd.grad(found.sum(), x)
    assert grad.tolist() == [[2, 1, 2], [2, 2, 2], [1, 2, 1], [1, 1, 1]]


def test_scatter_reduces_a_tensor_with_a_warning():
    x, index, source = operands()
    with pytest.warns(UserWarning, match="The reduce argument of torch.scatter with Tensor src is deprecated"):
        found = x.scatter(0, index, source, reduce="add")
    assert found.tolist() == [[2, 1, 4], [5, 6, 7], [6, 9, 8], [9, 10, 11]]
    assert autograd.grad(found.sum(), source)[0].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_scatter_in_place_on_a_view():
    x = cygrad.zeros(2, 3, requires_grad=True)
    y = x * 1
    source = tensor([[5.0]], requires_grad=True)
    y[1:].scatter_(1, tensor([[2]]), source)
    assert y.tolist() == [[0, 0, 0], [0, 0, 5]]
    grads = autograd.grad((y * tensor([[1.0, 2, 3], [4, 5, 6]])).sum(), (x, source))
    assert [g.tolist() for g in grads] == [[[1, 2, 3], [4, 5, 0]], [[6]]]


def test_index_that_is_changed_before_backward():
    x, index, source = operands()
    y = x.scatter(0, index, source)
    index.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradient_of_complex_scatter_reduce():
    x = tensor([1 + 1j, 2j], requires_grad=True)
    s = tensor([3 - 1j, 1 + 2j], requires_grad=True)
    y = x.scatter_reduce(0, tensor([0, 0]), s, "sum")
    grads = autograd.grad(y, (x, s), tensor([1 + 2j, 3j]))
    assert [g.tolist() for g in grads] == [[1 + 2j, 3j], [1 + 2j, 1 + 2j]]


def test_index_put_as_a_function():
    x = cygrad.zeros(3)
    assert cygrad.index_put_(x, (tensor([1, 1]),), tensor([2.0, 3.0]), accumulate=True) is x
    assert x.tolist() == [0, 5, 0]


@pytest.mark.parametrize("name", ["scatter_", "scatter_add_"])
def test_source_that_shares_memory(name):
    x = cygrad.arange(4.0)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        getattr(x, name)(0, tensor([1, 0, 3, 2]), x.view(4))
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2, 3])


EXPANDED = {
    "scatter_add": lambda x, i, s, dim: x.scatter_add(dim, i, s),
    "gather": lambda x, i, s, dim: x.gather(dim, i),
    **{
        f"{reduce} {include}": lambda x, i, s, dim, how=(reduce, include): x.scatter_reduce(
            dim, i, s, how[0], include_self=how[1]
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    },
}


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", EXPANDED)
def test_an_expanded_index_means_what_a_full_one_means(name, dim):
    draw = np.random.default_rng(dim)
    x, s = (tensor(draw.integers(1, 4, (5, 6, 7)).astype(float), requires_grad=True) for _ in range(2))
    shape = [1, 1, 1]
    shape[dim] = 300 if name == "gather" else x.shape[dim]
    wide = list(x.shape)
    wide[dim] = shape[dim]
    index = tensor(draw.integers(0, x.shape[dim], shape)).expand(wide)
    with cygrad.no_grad():
        s[0, 0, 0] = float("nan")
    full, short = (EXPANDED[name](x, i, s, dim) for i in (index.clone(), index))
    np.testing.assert_array_equal(short.detach(), full.detach())
    inputs = [x] if name == "gather" else [x, s]
    for found, expected in zip(autograd.grad(short.sum(), inputs), autograd.grad(full.sum(), inputs)):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    for wrong in (-1, x.shape[dim]):
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension {dim}"):
            EXPANDED[name](x, cygrad.full_like(index, wrong)[:1, :1, :1].expand(x.shape), s, dim)


def test_rows_are_added_by_index_put_as_numpy_does():
    draw = np.random.default_rng(0)
    x, index, values = draw.random((4, 3)), draw.integers(-4, 4, (2, 50)), draw.random((50, 3))
    expected = x.copy()
    np.add.at(expected, index, values)
    y = tensor(x)
    y.index_put_((tensor(index),), tensor(values), accumulate=True)
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    before = y.clone()
    with pytest.raises(IndexError, match="out of bounds"):
        y.index_put_((tensor([0, 4]),), tensor(1.0, dtype=y.dtype), accumulate=True)
    assert cygrad.equal(y, before)


# --- Products ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reduce", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("kind", [cygrad.float64, cygrad.complex128], ids=str)
def test_derivatives_of_products_of_zeros_and_equal_numbers(reduce, include_self, kind):
    """Gradients are compared with finite differences, and as recorded with those that are not."""
    random = np.random.default_rng(0)
    for _ in range(6):
        index = tensor(random.integers(0, 3, 5))
        base, source = (
            tensor(random.integers(0, 3, n) * random.choice([1, 1 - 0.5j]), dtype=cygrad.complex128) for n in (3, 5)
        )
        base, source = ((x if kind.is_complex else x.abs()).requires_grad_() for x in (base, source))

        def product(x, y, index=index):
            return getattr(x, reduce)(0, index, y, "prod", include_self=include_self)

        assert autograd.gradcheck(product, (base, source))
        assert autograd.gradgradcheck(product, (base, source))
        weights, found = cygrad.tensor([1.0, -2.0, 0.5], dtype=kind), product(base, source)
        plain = autograd.grad(found, (base, source), weights, retain_graph=True)
        recorded = autograd.grad(found, (base, source), weights, create_graph=True)
        for a, b in zip(plain, recorded):
            cygrad.testing.assert_close(a, b.detach())


def drawn_factors(random, shape, count, dim, kind):
    """An input, a source with `count` slices along `dim`, and weights of the result; zeros and equal numbers abound."""
    others = (*shape[:dim], count, *shape[dim + 1 :])
    input, source = (random.integers(0, 3, s) * random.choice([1, 1 - 0.5j]) for s in (shape, others))
    weights = random.normal(size=shape) - 1j * random.normal(size=shape)
    return [tensor(x if kind.is_complex else abs(x), dtype=kind) for x in (input, source, weights)]


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("kind", [cygrad.float64, cygrad.complex128], ids=str)
@pytest.mark.parametrize(("shape", "dim"), [((3, 2), 0), ((2, 3), 1), ((2, 3, 2), 1)])
def test_derivatives_of_products_of_slices(shape, dim, kind, include_self):
    random = np.random.default_rng(0)
    for _ in range(3):
        index = tensor(random.integers(0, shape[dim], 4))
        base, source, _ = drawn_factors(random, shape, 4, dim, kind)

        def product(x, y, index=index):
            return x.index_reduce(dim, index, y, "prod", include_self=include_self)

        inputs = base.requires_grad_(), source.requires_grad_()
        assert autograd.gradcheck(product, inputs)
        assert autograd.gradgradcheck(product, inputs)


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("kind", [cygrad.float64, cygrad.complex128], ids=str)
@pytest.mark.parametrize(("shape", "dim"), [((3,), 0), ((3, 2), 0), ((2, 3), 1)])
@pytest.mark.parametrize("has_own_index", [False, True])
def test_derivatives_of_products_of_samples(has_own_index, shape, dim, kind, include_self):
    random = np.random.default_rng(1)
    drawn = [drawn_factors(random, shape, 4, dim, kind) for _ in range(3)]
    indices = [tensor(random.integers(0, shape[dim], 4)) for _ in range(3 if has_own_index else 1)] * 3
    samples = [(*operands, index) for operands, index in zip(drawn, indices)]

    def loss(x, y, w, index):
        return (x.index_reduce(dim, index, y, "prod", include_self=include_self) * w).real.sum()

    def loss_of_gradient(x, y, w, index):
        return (func.grad(loss, 1)(x, y, w, index) * y).real.sum()

    batch = [cygrad.stack(column) for column in zip(*samples)]
    dims = (0, 0, 0, 0 if has_own_index else None)
    operands = (*batch[:3], batch[3] if has_own_index else indices[0])
    for function in (loss, loss_of_gradient):
        derivatives = func.grad(function, (0, 1))
        expected = [cygrad.stack(column) for column in zip(*(derivatives(*sample) for sample in samples))]
        for found in (
            func.vmap(derivatives, dims)(*operands),
            func.grad(lambda *args, f=function: func.vmap(f, dims)(*args).sum(), (0, 1))(*operands),
        ):
            for own, other in zip(found, expected):
                cygrad.testing.assert_close(own, other)


def test_second_derivatives_of_a_product_by_hand():
    x = tensor([2.0, 0.0, 0.0, 3.0], requires_grad=True)

    def hessian_row(i):
        (g,) = autograd.grad(cygrad.ones(2).scatter_reduce(0, tensor([1, 1, 1, 0]), x, "prod")[1], x, create_graph=True)
        return autograd.grad(g[i], x)[0].tolist()

    assert [hessian_row(i) for i in range(4)] == [[0, 0, 0, 0], [0, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]]


def test_gradient_of_a_complex_product_is_conjugated():
    x = tensor([1 + 2j, 3 - 1j, 0j], requires_grad=True)
    for used in ([0, 1], [0, 1, 2]):
        found = cygrad.ones(1, dtype=cygrad.complex64).scatter_reduce(0, tensor([0] * len(used)), x[used], "prod")
        (grad,) = autograd.grad(found.real.sum(), x)
        assert grad.tolist() == pytest.approx([3 + 1j, 1 - 2j, 0] if len(used) == 2 else [0, 0, 5 - 5j])
