"""nn.utils where cygrad's behavior or messages go beyond PyTorch, and its formulas without PyTorch."""

import copy

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.nn import utils
from cygrad.nn.utils import parametrizations, parametrize, prune, stateless


def test_total_norm_is_that_of_all_elements():
    a, b = cygrad.randn(4, 3), cygrad.randn(7)
    flat = np.concatenate([a.numpy().ravel(), b.numpy()])
    for order in (1, 2, 3, np.inf, -np.inf):
        expected = np.linalg.norm(flat, order)
        assert utils.get_total_norm([a, b], order).item() == pytest.approx(expected, rel=1e-5)


def test_clipping_scales_all_gradients_by_one_factor():
    model = nn.Linear(3, 2)
    model(cygrad.ones(1, 3)).mul(50).sum().backward()
    before = [p.grad.clone() for p in model.parameters()]
    total = utils.clip_grad_norm_(model.parameters(), 2.0)
    assert total > 2
    assert utils.get_total_norm([p.grad for p in model.parameters()]).item() == pytest.approx(2, rel=1e-4)
    for p, old in zip(model.parameters(), before):
        assert cygrad.allclose(p.grad, old * (2 / total), rtol=1e-4)


def test_nonfinite_norm_names_the_gradient():
    good, bad = nn.Parameter(cygrad.ones(2)), nn.Parameter(cygrad.ones(3))
    good.grad, bad.grad = cygrad.ones(2), cygrad.tensor([1.0, float("nan"), float("inf")])
    with pytest.raises(RuntimeError, match=r"non-finite.*(?s:.)Gradient 1, of shape \(3,\), .* 2 of them"):
        utils.clip_grad_norm_([good, bad], 1.0, error_if_nonfinite=True)
    assert good.grad.tolist() == [1, 1]


def test_vector_that_is_too_short_changes_nothing():
    layer = nn.Linear(2, 2)
    before = [p.detach().clone() for p in layer.parameters()]
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        utils.vector_to_parameters(cygrad.ones(5), layer.parameters())
    assert all(bool((p == old).all()) for p, old in zip(layer.parameters(), before))


class Double(nn.Module):
    """A parametrization."""

    def forward(self, x):
        return 2 * x

    def right_inverse(self, y):
        return y / 2


def test_copies_of_parametrized_modules_are_independent():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Double())
    copied = copy.deepcopy(layer)
    parametrize.remove_parametrizations(copied, "weight")
    assert type(copied) is nn.Linear
    assert parametrize.is_parametrized(layer)
    assert bool((layer.weight == copied.weight).all())


def test_parametrized_parameter_keeps_its_identity_for_the_optimizer():
    layer = nn.Linear(2, 2)
    optimizer = cygrad.optim.SGD(layer.parameters(), lr=1.0)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Double())
    assert bool((layer.weight == before).all())
    layer.weight.sum().backward()
    optimizer.step()
    assert cygrad.allclose(layer.weight, before - 4)  # 2 from the gradient, 2 from the map


def test_failed_registration_changes_nothing():
    class Shrink(nn.Module):
        def forward(self, x):
            return x[:1]

    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", Shrink())
    assert type(layer) is nn.Linear
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_stays_orthogonal_in_training(kind):
    layer = parametrizations.orthogonal(nn.Linear(4, 6), orthogonal_map=kind)
    optimizer = cygrad.optim.SGD(layer.parameters(), lr=0.5)
    target = cygrad.randn(8, 6)
    first = None
    for _ in range(20):
        optimizer.zero_grad()
        loss = (layer(cygrad.ones(8, 4)) - target).square().mean()
        first = loss.item() if first is None else first
        loss.backward()
        optimizer.step()
    assert loss.item() < first
    assert cygrad.allclose(layer.weight.T @ layer.weight, cygrad.eye(4), atol=1e-5)


def test_spectral_norm_finds_the_largest_singular_value():
    for make in (parametrizations.spectral_norm, utils.spectral_norm):
        layer = make(nn.Linear(5, 4, dtype=cygrad.float64))
        for _ in range(300):
            layer(cygrad.zeros(1, 5, dtype=cygrad.float64))
        assert cygrad.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(1, abs=1e-6)


def test_pruned_elements_stay_zero_in_training():
    layer = prune.l1_unstructured(nn.Linear(4, 3), "weight", 0.5)
    optimizer = cygrad.optim.Adam(layer.parameters(), lr=0.1)
    zero = layer.weight_mask == 0
    for _ in range(3):
        optimizer.zero_grad()
        layer(cygrad.randn(5, 4)).square().sum().backward()
        optimizer.step()
    layer(cygrad.randn(5, 4))
    assert int((layer.weight == 0).sum()) == 6
    assert bool((layer.weight[zero] == 0).all())


@pytest.mark.parametrize(("name", "options"), [("random_unstructured", {}), ("random_structured", {"dim": 0})])
def test_random_pruning_takes_the_amount(name, options):
    layer = getattr(prune, name)(nn.Linear(6, 8), "weight", amount=0.25, **options)
    assert int((layer.weight_mask == 0).sum()) == 12


def test_functional_call_restores_the_module_after_an_error():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    with pytest.raises(RuntimeError):
        stateless.call_with(layer, {"weight": cygrad.ones(5, 5)}, cygrad.ones(1, 2))
    assert layer.weight is weight
    with pytest.raises(TypeError, match="3 is not an instance of torch.Tensor\nIt was given for weight"):
        stateless.call_with(layer, {"weight": 3}, cygrad.ones(1, 2))


def test_gradients_flow_to_the_tensors_of_a_functional_call():
    layer, weight = nn.Linear(2, 1), cygrad.tensor([[2.0, 3.0]], requires_grad=True)
    stateless.call_with(layer, {"weight": weight}, cygrad.tensor([[5.0, 7.0]])).backward()
    assert weight.grad.tolist() == [[5, 7]]
    assert layer.weight.grad is None


def test_fusion_says_what_to_do():
    with pytest.raises(AssertionError, match=r"Fusion only for eval!\nCall eval\(\) on both"):
        utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1).eval())


def test_functional_call_of_a_module_that_contains_itself():
    module = nn.Module()
    module.inner = nn.Linear(1, 1)
    module.inner.outer = module
    module.forward = lambda x: module.inner(x)
    values = {"inner.outer.inner.weight": cygrad.full((1, 1), 3.0), "inner.bias": cygrad.ones(1)}
    own = module.inner.weight
    out = cygrad.func.functional_call(module, values, cygrad.full((1, 1), 2.0), tie_weights=False)
    assert out.item() == 7 and module.inner.weight is own
    module.forward = module.inner.outer = None  # so that nothing remains for the garbage collector


def test_functional_call_registers_new_parameters():
    layer = nn.Linear(1, 1)
    layer.forward = lambda: [name for name, _ in layer.named_parameters()]
    new = nn.Parameter(cygrad.ones(1))
    assert cygrad.func.functional_call(layer, {"more": new, "plain": cygrad.ones(1)}, ()) == ["weight", "bias", "more"]
    assert not hasattr(layer, "more") and not hasattr(layer, "plain")
    layer.forward = None


def test_checks_of_pruning_have_pytorchs_names():
    for amount, error in (("1", TypeError), (1.1, ValueError), (-1, ValueError)):
        with pytest.raises(error):
            prune._validate_pruning_amount_init(amount)
    with pytest.raises(ValueError, match="should be smaller than the number of parameters to prune=19"):
        prune._validate_pruning_amount(20, 19)
    assert [prune._compute_nparams_toprune(amount, 15) for amount in (10, 1, 1.0, 0.4)] == [10, 1, 15, 6]
    with pytest.raises(ValueError, match="Structured pruning can only be applied to multidimensional tensors"):
        prune._validate_structured_pruning(cygrad.ones(2))
    with pytest.raises(IndexError, match="Invalid index 2"):
        prune._validate_pruning_dim(cygrad.ones(2, 2), 2)
    assert prune._compute_norm(cygrad.ones(2, 3, 4), 1, -1).tolist() == [6, 6, 6, 6]
