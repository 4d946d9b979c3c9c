"""Parts of complex tensors as views: aliasing, and histories after changes in place; conjugates."""

import numpy as np
import pytest

import cygrad


def leaf(*values):
    return cygrad.tensor(list(values), dtype=cygrad.complex128, requires_grad=True)


def numeric(f, z):
    """dL/dx + i dL/dy of a real function of a complex array, by central differences."""
    grad = np.zeros_like(z)
    for index in np.ndindex(z.shape):
        for unit in (1, 1j):
            step = np.zeros_like(z)
            step[index] = 1e-6 * unit
            grad[index] += unit * (f(z + step) - f(z - step)) / 2e-6
    return grad


def check(f, z):
    """Check the gradient of `f`, which modifies a tensor in place, and its second gradient along a direction."""
    x = cygrad.tensor(z, requires_grad=True)
    (found,) = cygrad.autograd.grad(f(x * 1), x, create_graph=True)
    np.testing.assert_allclose(found.detach().numpy(), numeric(lambda a: f(cygrad.tensor(a)).item(), z), atol=1e-5)

    def projected(a):
        t = cygrad.tensor(a, requires_grad=True)
        (g,) = cygrad.autograd.grad(f(t * 1), t, create_graph=True)
        return (g.real * 2 + g.imag * 3).sum()

    (second,) = cygrad.autograd.grad((found.real * 2 + found.imag * 3).sum(), x)
    np.testing.assert_allclose(second.numpy(), numeric(lambda a: projected(a).item(), z), atol=1e-4)
    x = cygrad.tensor(z, requires_grad=True)
    f(x * 1).backward()
    np.testing.assert_array_equal(x.grad.numpy(), found.detach().numpy())


Z = np.array([[1 + 2j, 3 - 1j], [0.5j, 2 + 0.3j]])


def size(z):
    return (z * z.conj() * z.abs()).real.sum()


def change_real(z):
    z.real.mul_(z.imag.clone())
    return size(z)


def change_imag_of_part(z):
    z[0].imag.mul_(z[1].real.clone()).add_(1)
    return size(z)


def change_viewed_as_real(z):
    parts = cygrad.view_as_real(z)
    parts[..., 0].sin_()
    parts[1].mul_(parts[0, :, 1:].clone())
    return size(z) + (parts**3).sum()


def change_transposed(z):
    z.t().imag[0].mul_(2)
    return size(z)


def read_stale_views(z):
    real, imag, row = z.real, z.imag, z[0]
    z.mul_(1 + 1j)
    return (real * imag).sum() + (row.real * real[1] ** 2).sum()


def read_view_of_changed_sibling(z):
    real = z.real
    z.imag.mul_(z.real.clone())
    return (real**2).sum() + size(z)


def change_as_complex(z):
    x = cygrad.view_as_real(z) * 1
    w = cygrad.view_as_complex(x)
    w.mul_(w.conj() + 2j)
    return (x**3).sum() + size(w)


def change_base_of_complex_view(z):
    x = cygrad.view_as_real(z) * 1
    w = cygrad.view_as_complex(x)
    x[..., 1].mul_(x[..., 0].clone())
    return size(w)


def change_real_of_complex_view(z):
    x = cygrad.view_as_real(z) * 1
    w = cygrad.view_as_complex(x[1:])
    w.real.mul_(3)
    return (x**3).sum() + size(w)


def assign(z):
    w = z * 2
    w.real = z.imag**2
    w.imag = 3
    return size(w) + size(w * z)


@pytest.mark.parametrize(
    "function",
    [
        change_real,
        change_imag_of_part,
        change_viewed_as_real,
        change_transposed,
        read_stale_views,
        read_view_of_changed_sibling,
        change_as_complex,
        change_base_of_complex_view,
        change_real_of_complex_view,
        assign,
    ],
)
def test_change_of_part_is_in_the_history(function):
    check(function, Z)


def test_parts_share_memory_and_counter():
    z = cygrad.tensor([1 + 2j, 3 + 4j])
    parts, real, imag = cygrad.view_as_real(z), z.real, z.imag
    assert parts._base is z and real._base is z and imag._base is z
    real.mul_(10)
    imag[0] = -1
    assert z.tolist() == [10 - 1j, 30 + 4j] and parts.tolist() == [[10, -1], [30, 4]]
    assert z._version == real._version == imag._version == 2
    back = cygrad.view_as_complex(parts)
    back.zero_()
    assert z.tolist() == [0, 0] and back._base is z


def test_real_tensor_is_its_own_part():
    x = cygrad.tensor([1.0, 2.0])
    assert all(y is x for y in (x.real, x.conj(), x.resolve_conj(), x.resolve_neg(), x.conj_physical(), cygrad.real(x)))


def test_setting_parts():
    z = cygrad.tensor([1 + 2j, 3 + 4j])
    z.real = cygrad.tensor([7.0, 8.0])
    z.imag = 0
    assert z.tolist() == [7, 8]
    x = cygrad.tensor([1.0, 2.0])
    x.real = 5
    assert x.tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="^imag is not implemented for tensors with non-complex dtypes"):
        x.imag = 1
    with pytest.raises(RuntimeError, match="^value cannot be converted to type"):
        z.imag = 1j
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        leaf(1j).imag = 1


def test_leaf_is_protected_through_its_parts():
    z = leaf(1 + 2j)
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        z.real.add_(1)
    with cygrad.no_grad():
        z.real.add_(1)
    assert z.tolist() == [2 + 2j]


def test_saved_value_is_protected_through_its_parts():
    z = leaf(1 + 2j) * 1
    loss = (z * z).real.sum()
    z.imag.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_empty():
    z = cygrad.zeros(2, 0, dtype=cygrad.complex64, requires_grad=True)
    assert cygrad.view_as_complex(cygrad.view_as_real(z)).shape == (2, 0)
    (cygrad.view_as_real(z) * 2).sum().backward()
    assert z.grad.shape == (2, 0) and z.grad.dtype is cygrad.complex64


def test_pairs_that_lie_apart():
    for x in (cygrad.zeros(2, 3).t(), cygrad.zeros(3, 5)[:, :2], cygrad.zeros(5)[1:].view(2, 2)):
        with pytest.raises(RuntimeError, match="^Tensor must have a (last|stride|storage)"):
            cygrad.view_as_complex(x)


def test_strided_view_of_parts():
    z = leaf(1 + 2j, 3 + 4j, 5 + 6j)
    w = z * 1
    odd = w.imag.as_strided((3,), (2,), 1)
    assert odd.tolist() == [2, 4, 6]
    odd.mul_(2)
    w.abs().pow(2).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [2 + 16j, 6 + 32j, 10 + 48j])


@pytest.mark.parametrize("name", ["H", "mH"])
def test_adjoint_attributes(name):
    z = cygrad.tensor([[1 + 2j, 3j]])
    assert getattr(z, name).tolist() == [[1 - 2j], [-3j]]
    with pytest.raises(RuntimeError, match=rf"^tensor.{name} is only supported on matrices .*Got 1-D tensor."):
        getattr(z[0], name)
    with pytest.warns(UserWarning, match="deprecated on 0-D"):
        assert getattr(z[0, 0], name).item() == 1 - 2j
    batch = cygrad.zeros(2, 3, 4)
    if name == "mH":
        assert batch.mH.shape == (2, 4, 3) and batch.mH._base is batch
    else:
        with pytest.raises(RuntimeError, match=r"Got 3-D tensor. For batches of matrices, consider using tensor.mH"):
            _ = batch.H


@pytest.mark.parametrize(
    "write",
    [
        lambda z, v: z.__setitem__(0, v),
        lambda z, v: z[0].add_(v),
        lambda z, v: z[0].mul_(v),
        lambda z, v: z.real[0].copy_(v),
    ],
)
def test_real_values_written_into_a_part(write):
    """The gradients are the real parts, to any order."""
    z = cygrad.tensor([[1 + 2j, 3j], [2 + 1j, 1j]], dtype=cygrad.complex128)
    v = cygrad.tensor([0.5, 2.0], dtype=cygrad.float64, requires_grad=True)

    def function(v):
        changed = z.clone()
        write(changed, v)
        return (changed * changed.conj()).real.sum() * changed.abs().sum()

    assert cygrad.autograd.gradcheck(function, v) and cygrad.autograd.gradgradcheck(function, v)


def test_a_custom_function_that_changes_a_part_is_still_checked():
    class Turned(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, part, v):
            ctx.mark_dirty(part)
            return part.add_(v)

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * 1j

    v = cygrad.ones(2, requires_grad=True)
    z = cygrad.zeros(2, 2, dtype=cygrad.complex64)
    Turned.apply(z[0], v)
    with pytest.raises(RuntimeError, match=r"^Expected isFloatingType\(grad.scalar_type\(\)\)"):
        z.abs().sum().backward()


def test_imaginary_parts_of_weights_are_discarded():
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        found = cygrad.bincount(cygrad.tensor([1, 2]), cygrad.tensor([1j, 2]))
    assert found.tolist() == [0, 0, 2]
