"""Optimizers and gradient scaling with sparse gradients: rows that a gradient does not hold stay as they are."""

import numpy as np
import pytest

import cygrad as torch


def with_gradient(rows=(1, 2, 1), maximum=4):
    w = torch.nn.Parameter(torch.ones(maximum, 2))
    values = torch.arange(1.0, 1 + 2 * len(rows)).reshape(-1, 2)
    w.grad = torch.sparse_coo_tensor([list(rows)], values, (maximum, 2))
    return w


@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "SparseAdam"])
def test_steps_equal_those_with_dense_gradients(kind):
    w = with_gradient()
    dense = torch.nn.Parameter(torch.ones(4, 2))
    dense.grad = w.grad.to_dense()
    getattr(torch.optim, kind)([w], lr=0.1).step()
    getattr(torch.optim, kind.replace("SparseAdam", "Adam"))([dense], lr=0.1).step()
    np.testing.assert_allclose(w.detach().numpy(), dense.detach().numpy(), rtol=1e-5)
    assert w.detach()[[0, 3]].equal(torch.ones(2, 2))


def test_sgd_with_dense_and_sparse_gradients_in_one_group():
    w, dense = with_gradient(), torch.nn.Parameter(torch.ones(2))
    dense.grad = torch.ones(2)
    torch.optim.SGD([dense, w], lr=0.5).step()
    assert dense.tolist() == [0.5, 0.5]
    assert w.tolist() == [[1.0, 1.0], [-2.0, -3.0], [-0.5, -1.0], [1.0, 1.0]]


def test_state_of_sparse_adam_is_saved(tmp_path):
    w = with_gradient()
    optimizer = torch.optim.SparseAdam([w])
    optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    again = torch.optim.SparseAdam([torch.nn.Parameter(torch.ones(4, 2))])
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    (state,) = again.state.values()
    assert state["step"] == 1 and state["exp_avg"].equal(optimizer.state[w]["exp_avg"])


def test_gradients_are_emptied_and_scaled():
    w = with_gradient()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(()))
    optimizer = torch.optim.SGD([w], lr=0.5)
    expected = w.grad.to_dense() / 4
    scaler.unscale_(optimizer)
    assert w.grad.to_dense().equal(expected)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.layout is torch.sparse_coo and w.grad._nnz() == 0


def test_computed_matrices_get_dense_gradients():
    w = torch.nn.Parameter(torch.ones(3, 2))
    torch.nn.functional.embedding(torch.tensor([2, 2]), w * 2, sparse=True).sum().backward()
    assert w.grad.tolist() == [[0.0, 0.0], [0.0, 0.0], [4.0, 4.0]]


def test_hooks_see_sparse_gradients():
    w = torch.nn.Parameter(torch.ones(3, 2))
    seen = []
    w.register_hook(seen.append)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    torch.nn.functional.embedding(torch.tensor([2, 0]), w, sparse=True).sum().backward()
    assert [each.layout for each in seen] == [torch.sparse_coo] * 2
    (grad,) = torch.autograd.grad(torch.nn.functional.embedding(torch.tensor([2]), w, sparse=True).sum(), w)
    assert grad.layout is torch.sparse_coo and grad.to_dense().tolist() == [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


def test_sparse_adam_refuses_parameters_that_it_does_not_update():
    dense, sparse = torch.ones(2), torch.ones(2).to_sparse()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 1\]\]: SparseAdam requires dense"):
        torch.optim.SparseAdam([dense, sparse])
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[1, 0\]\]: SparseAdam does not support"):
        torch.optim.SparseAdam([{"params": [dense]}, {"params": [torch.ones(2, dtype=torch.complex64)]}])
