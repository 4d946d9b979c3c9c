"""`conj`, `adjoint`, `H` and `mH` of complex tensors are views: changes of either side reach both, with gradients."""

import copy
import gc
import io
import pickle
import threading
import weakref

import numpy as np
import pytest

import cygrad
from cygrad.autograd import forward_ad

Z = np.array([[1 + 2j, 3 - 4j], [5 + 6j, -7 + 8j]])
W = np.array([[2 - 1j, 1j], [1 + 1j, -3.0]])


def tensor(array=Z, **named):
    return cygrad.tensor(array, **named)


VIEWS = {
    "conj": (lambda x: x.conj(), lambda a: a.conj()),
    "function": (cygrad.conj, lambda a: a.conj()),
    "adjoint": (cygrad.adjoint, lambda a: a.conj().T),
    "H": (lambda x: x.H, lambda a: a.conj().T),
    "mH": (lambda x: x.mH, lambda a: a.conj().T),
    "row of H": (lambda x: x.H[0], lambda a: a.conj().T[0]),
    "conj of mT": (lambda x: x.mT.conj(), lambda a: a.conj().T),
    "conj of diagonal": (lambda x: x.diagonal().conj(), lambda a: np.diagonal(a).conj()),
    "diagonal of conj": (lambda x: x.conj().diagonal(), lambda a: np.diagonal(a).conj()),
    "unfold of conj": (lambda x: x.conj().unfold(1, 1, 1)[..., 0], lambda a: a.conj()),
    "flat": (lambda x: x.conj().view(4), lambda a: a.conj().reshape(4)),
    "as_strided": (lambda x: x.conj().as_strided((2,), (1,), 1), lambda a: a.conj().reshape(4)[1:3]),
    "unbind": (lambda x: x.conj().unbind(0)[1], lambda a: a.conj()[1]),
    "twice": (lambda x: x.conj().mT.conj(), lambda a: a.T),
    "real": (lambda x: x.conj().real, lambda a: a.real),
    "imag": (lambda x: x.conj().imag, lambda a: -a.imag),
    "row of imag": (lambda x: x.H.imag[1], lambda a: -a.imag[:, 1]),
    "detach": (lambda x: x.conj().detach(), lambda a: a.conj()),
    "data": (lambda x: x.data.conj(), lambda a: a.conj()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_to_either_side_reach_the_other(name):
    view, numpy = VIEWS[name]
    x = tensor()
    y = view(x)
    np.testing.assert_array_equal(y.tolist(), numpy(Z))
    x.mul_(2 + 1j)
    np.testing.assert_allclose(y.tolist(), numpy(Z * (2 + 1j)))
    x[0, 1] = 9 + 9j
    x.data.add_(1j)
    with cygrad.no_grad():
        x.t().sub_(3)
    now = np.array(x.tolist())
    np.testing.assert_allclose(y.tolist(), numpy(now))
    y.mul_(-2)
    y.add_(1)
    np.testing.assert_allclose(y.tolist(), numpy(now) * -2 + 1)
    np.testing.assert_allclose(numpy(np.array(x.tolist())), numpy(now) * -2 + 1)
    y.fill_(4)
    np.testing.assert_array_equal(numpy(np.array(x.tolist())), np.full_like(numpy(Z), 4))
    y.zero_()
    assert not numpy(np.array(x.tolist())).any()


def test_writes_by_numpy_are_seen():
    array = Z.copy()
    y = cygrad.from_numpy(array).conj()
    array[0, 0] = 5j
    assert y[0, 0].item() == -5j
    y[1, 1] = 2 + 3j
    assert array[1, 1] == 2 - 3j


@pytest.mark.parametrize("write", [
    lambda y: y.index_put_((cygrad.tensor([0, 1]), cygrad.tensor([1, 0])), cygrad.tensor([1j, 2j], dtype=y.dtype)),
    lambda y: y.masked_fill_(cygrad.tensor([[True, False], [False, True]]), 7 - 1j),
    lambda y: y.index_add_(0, cygrad.tensor([1]), cygrad.ones(1, 2, dtype=y.dtype) * 1j),
    lambda y: y.scatter_(1, cygrad.tensor([[0], [1]]), cygrad.ones(2, 1, dtype=y.dtype) * 3j),
    lambda y: y.copy_(cygrad.tensor(W)),
    lambda y: y.__setitem__((slice(None), 1), 1j),
    lambda y: y.__setitem__(cygrad.tensor([[True, False], [False, True]]), 1 - 2j),
    lambda y: y.normal_(generator=cygrad.Generator().manual_seed(3)),
    lambda y: y.cumsum_(1),
    lambda y: y.addmm_(y.new_ones(2, 2), y.new_ones(2, 2) * 1j),
    lambda y: cygrad.mul(cygrad.tensor(W), 1j, out=y),
    lambda y: cygrad.matmul(cygrad.tensor(W), cygrad.tensor(Z), out=y),
    lambda y: cygrad.stack([y[0].clone(), y[1].clone() * 1j], out=y),
])  # fmt: skip
def test_every_kind_of_write(write):
    x, plain = tensor(), tensor(Z.conj())
    y = x.conj()
    write(plain)
    write(y)
    np.testing.assert_allclose(y.tolist(), plain.tolist())
    np.testing.assert_allclose(np.conj(x.tolist()), plain.tolist())


def test_flags_memory_and_versions():
    x = tensor()
    y = x.conj()
    assert y._base is x and y._is_view() and y.is_conj() and not x.is_conj() and y.data_ptr() == x.data_ptr()
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and y.stride() == x.stride()
    assert not y.conj().is_conj() and y.conj().data_ptr() == x.data_ptr() and y.H.conj()._base is x
    assert all(v.is_conj() for v in (y[0], y.mT, y.view(4), y.detach(), y.data, x.H, cygrad.adjoint(x), y.contiguous()))
    assert not any(v.is_conj() for v in (y.clone(), y * 2, y.resolve_conj(), y.conj_physical(), y.reshape(4).abs()))
    assert x.resolve_conj() is x and y.resolve_conj()._base is None and y.device == x.device
    assert y.imag.is_neg() and not y.real.is_neg() and not x.imag.is_neg() and not y.imag.resolve_neg().is_neg()
    x.mul_(2)
    y.mul_(2)
    assert x._version == y._version == 2
    real = cygrad.ones(2)
    assert real.conj() is real and not real.is_conj()


def test_what_would_show_the_memory_is_refused():
    y = tensor().conj()
    for call, words in (
        (y.numpy, r"Can't call numpy\(\) on Tensor that has conjugate bit set. Use tensor.resolve_conj\(\).numpy\(\)"),
        (
            y.imag.numpy,
            r"Can't call numpy\(\) on Tensor that has negative bit set. Use tensor.resolve_neg\(\).numpy\(\)",
        ),
        (lambda: cygrad.view_as_real(y), "view_as_real doesn't work on unresolved conjugated tensors.  To resolve"),
        (lambda: y.view(cygrad.float64), "torch.Tensor.view is not supported for conjugate view tensors when conv"),
        (lambda: y.imag.view(cygrad.int64), "torch.Tensor.view is not supported for tensors with negative bit set"),
    ):
        with pytest.raises(RuntimeError, match="^" + words):
            call()
    with pytest.raises(BufferError, match="^Can't export tensors with the conjugate bit set"):
        y.__dlpack__()
    assert (y.numpy(force=True) == Z.conj()).all() and (y.resolve_conj().numpy() == Z.conj()).all()
    assert np.abs(y).tolist() == np.abs(Z).tolist()


def test_copies_pickles_and_files():
    x = tensor()
    y = x.conj()
    for made in (copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
        assert made.is_conj() and made.tolist() == y.tolist() and made.data_ptr() != y.data_ptr()
    both = copy.deepcopy([x.detach(), y.detach()])
    both[0].mul_(2)
    assert both[1].tolist() == (2 * Z.conj()).tolist() and x.tolist() == Z.tolist()
    assert copy.copy(y.detach()).data_ptr() == x.data_ptr()
    y = y.to(cygrad.complex64).conj().resolve_conj().conj()
    for saved in (y, y.imag):
        file = io.BytesIO()
        cygrad.save(saved, file)
        file.seek(0)
        assert cygrad.load(file).tolist() == saved.tolist()
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors .* that view the same data as different types"
    ):
        cygrad.save({"y": y, "imag": y.imag}, io.BytesIO())


# -- gradients --


def numeric(function, z, step=1e-6):
    """The gradient of a real function of a complex array by central differences, dL/dx + i dL/dy."""
    grad = np.zeros_like(z)
    for place in np.ndindex(z.shape):
        for unit in (1, 1j):
            shift = np.zeros_like(z)
            shift[place] = unit * step
            grad[place] += unit * (function(z + shift) - function(z - shift)) / (2 * step)
    return grad


def changed_view(x):
    y = x * (1 + 0.5j)
    y.H[0].mul_(x[1] * 2j)
    return y


def changed_base(x):
    y = x * (1 + 0.5j)
    view = y.conj()
    y[0].mul_(x[1])
    return view * y


def changed_imag(x):
    y = x * (1 + 0.5j)
    y.conj().imag[0].mul_(x[1].abs())
    y.mT.conj()[1] = x[0] * 1j
    return y


def changed_both(x):
    y = x * (1 + 0.5j)
    y.conj().mul_(x)
    y.add_(x.conj())
    y.mH.diagonal().div_(x[0] + 3)
    return y.conj()


CHANGES = [changed_view, changed_base, changed_imag, changed_both]


def loss(y):
    return (y * y.conj() * cygrad.tensor(np.abs(W))).real.sum() + (y * cygrad.tensor(W)).real.sum()


@pytest.mark.parametrize("change", CHANGES)
def test_gradients_of_changes_in_place(change):
    x = tensor(requires_grad=True)
    expected = numeric(lambda z: loss(change(tensor(z))).item(), Z)
    for create_graph in (False, True):
        (found,) = cygrad.autograd.grad(loss(change(x)), x, create_graph=create_graph)
        np.testing.assert_allclose(found.tolist(), expected, rtol=1e-6, atol=1e-6)

    def first(z):
        t = tensor(z, requires_grad=True)
        (g,) = cygrad.autograd.grad(loss(change(t)), t, create_graph=True)
        return loss(g)

    (second,) = cygrad.autograd.grad(loss(found), x)
    wanted = numeric(lambda z: first(z).item(), Z)
    np.testing.assert_allclose(second.tolist(), wanted, rtol=1e-5, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("change", CHANGES)
def test_tangents_and_batches(change):
    step = 1e-6
    expected = (np.array(change(tensor(Z + step * W)).tolist()) - change(tensor(Z - step * W)).tolist()) / (2 * step)
    with forward_ad.dual_level():
        out = forward_ad.unpack_dual(change(forward_ad.make_dual(tensor(), tensor(W))))
        np.testing.assert_allclose(out.tangent.tolist(), expected, rtol=1e-6, atol=1e-6)
    _, tangent = cygrad.func.jvp(change, (tensor(),), (tensor(W),))
    np.testing.assert_allclose(tangent.tolist(), expected, rtol=1e-6, atol=1e-6)
    stacked = np.stack([Z, W, Z * 1j + W])
    found = cygrad.vmap(change)(tensor(stacked))
    np.testing.assert_allclose(found.tolist(), [change(tensor(z)).tolist() for z in stacked])
    grads = cygrad.vmap(cygrad.func.grad(lambda t: loss(change(t))))(tensor(stacked))
    leaves = [tensor(z, requires_grad=True) for z in stacked]
    wanted = [cygrad.autograd.grad(loss(change(leaf)), leaf)[0].tolist() for leaf in leaves]
    np.testing.assert_allclose(grads.tolist(), wanted)


def test_history():
    x = tensor(requires_grad=True)
    with pytest.raises(
        RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place"
    ):
        x.conj().mul_(2)
    y = x * 1
    view = y.conj()
    view.mul_(2j)
    assert [type(t.grad_fn).__name__ for t in (view, y)] == ["ConjBackward0", "CopySlices"]
    kept = x * 2
    view = kept.conj()
    product = view * view
    kept.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.abs().sum().backward()
    imag = (x * 1).conj().imag
    assert type(imag.grad_fn).__name__ == "SelectBackward0"
    assert type(imag.grad_fn.next_functions[0][0]).__name__ == "NegViewBackward0"


def test_gradients_that_are_views_are_taken_over_as_ordinary_tensors():
    x = tensor(requires_grad=True)
    x.register_hook(lambda g: g.conj())
    for times in (1, 2):
        (x * tensor(W)).real.sum().backward()
        np.testing.assert_allclose(x.grad.tolist(), W * times)
        assert not x.grad.is_conj()
    x.grad = x.grad.conj()
    (x * tensor(W)).real.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), 2 * W.conj() + W)
    cygrad.optim.SGD([x], lr=0.5).step()
    np.testing.assert_allclose(x.tolist(), Z - 0.5 * (2 * W.conj() + W))


def test_nothing_is_kept_alive():
    x = tensor()
    gone = weakref.ref(x)
    y = x.conj()
    gone_too = weakref.ref(y)
    gc.disable()
    try:
        del x
        assert gone() is not None  # the base of a view
        del y
        assert gone() is None and gone_too() is None
    finally:
        gc.enable()


@pytest.mark.interpreter
def test_threads_that_read_and_write():
    x = cygrad.zeros(64, dtype=cygrad.complex128)
    views, failures = [x.conj() for _ in range(4)], []

    def work(i):
        try:
            part = views[i][16 * i : 16 * (i + 1)]
            for _ in range(200):
                part.add_(1j)
                assert len((views[i] * 1).tolist()) == 64
        except BaseException as error:  # shown by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and x.tolist() == [-200j] * 64


# --- Negative views of real tensors ------------------------------------------------------------


def test_negative_views_share_memory():
    x = cygrad.tensor([[1.0, -2.0], [3.0, 4.0]])
    y = cygrad._neg_view(x)
    assert y.is_neg() and y._base is x and y.equal(-x) and not x._neg_view()._neg_view().is_neg()
    y.t()[0].mul_(2)
    assert x.tolist() == [[2, -2], [6, 4]] and y.resolve_neg().tolist() == [[-2, 2], [-6, -4]]
    y.copy_(cygrad.ones(2, 2))
    assert x.tolist() == [[-1, -1], [-1, -1]]


def test_gradient_of_a_negative_view():
    x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    (cygrad._neg_view(x) ** 3).sum().backward()
    assert x.grad.tolist() == [-3, -12]


@pytest.mark.parametrize("dtype", [cygrad.complex64, cygrad.bool])
def test_of_what_there_are_no_negative_views(dtype):
    with pytest.raises(NotImplementedError):
        cygrad._neg_view(cygrad.zeros(2, dtype=dtype))
