"""The functions of nn.functional beyond the samples: dropout, weights, legacy arguments, hints."""

import math

import numpy as np
import pytest

import cygrad as torch
from cygrad.nn import functional as F
from helpers import fails

# --- Softmax -----------------------------------------------------------------------------------


def test_softmax_of_another_type():
    counts = torch.tensor([[1, 2], [3, 3]])
    for softmax in (torch.softmax, F.softmax, torch.Tensor.softmax):
        assert softmax(counts, 1, dtype=torch.float64).sum(1).tolist() == [1, 1]
    x = torch.ones(2, requires_grad=True)
    y = F.log_softmax(x, 0, dtype=torch.float64)
    y[0].backward()
    assert y.dtype is torch.float64 and x.grad.dtype is torch.float32


def test_softmax_without_dim_warns():
    for shape, dim in (((3,), 0), ((2, 3), 1), ((2, 3, 2), 0)):
        x = torch.randn(*shape)
        with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
            y = F.softmax(x)
        np.testing.assert_allclose(y.sum(dim).numpy(), 1, rtol=1e-6)
        with pytest.warns(UserWarning, match="Implicit dimension choice for softmin"):
            assert F.softmin(-x).tolist() == y.tolist()


def test_gumbel_softmax_warns_of_eps():
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect"):
        F.gumbel_softmax(torch.ones(2, 3), eps=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_ceil_mode_is_a_bool(dims):
    x = torch.ones((1,) + (4,) * dims)
    for name in (f"max_pool{dims}d", f"avg_pool{dims}d"):
        for value in (1, None):
            with pytest.raises(TypeError, match=rf"{name}\(\): argument 'ceil_mode' .*must be bool, not "):
                getattr(F, name)(x, 2, ceil_mode=value)


def test_softmax_stays_finite():
    assert torch.softmax(torch.tensor([1e30, 1e30]), 0).tolist() == [0.5, 0.5]
    assert torch.log_softmax(torch.tensor([0.0, 1e4]), 0).tolist() == [-1e4, 0]


# --- Dropout -----------------------------------------------------------------------------------


def test_dropout_keeps_the_mean():
    x = torch.ones(200, 100)
    for p in (0.1, 0.5, 0.9):
        y = F.dropout(x, p)
        kept = y != 0
        assert abs(kept.float().mean().item() - (1 - p)) < 0.02
        np.testing.assert_allclose(y[kept].numpy(), 1 / (1 - p), rtol=1e-6)


def test_gradient_flows_where_dropout_kept():
    x = torch.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.3)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_dropout_in_place_and_not_at_all():
    x = torch.ones(100)
    assert F.dropout(x, training=False) is x and F.dropout(x, 0.0) is x
    assert F.dropout(x, 0.5, inplace=True) is x and x._version == 1 and 0 in x.tolist()
    assert F.dropout(torch.full((3,), math.inf), 1.0).isnan().all()  # inf * 0, as in PyTorch
    with fails(ValueError, "dropout probability has to be between 0 and 1, but got 1.5"):
        F.dropout(x, 1.5)


def test_dropout_draws_from_the_seed():
    torch.manual_seed(1)
    first = F.dropout(torch.ones(50))
    torch.manual_seed(1)
    assert (F.dropout(torch.ones(50)) == first).all()


# --- In-place activations ----------------------------------------------------------------------


@pytest.mark.parametrize("function", [F.relu, F.leaky_relu, F.elu, F.silu])
def test_in_place(function):
    x = torch.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    expected = function(x)
    (grad,) = torch.autograd.grad(expected.sum(), x)
    y = x * 1
    assert function(y, inplace=True) is y and y._version == 1
    assert y.tolist() == expected.tolist()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), grad.numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        function(x, inplace=True)


# --- Classification ----------------------------------------------------------------------------

LOGITS = [[2.0, -1.0, 0.5], [0.1, 0.2, 0.3], [1.0, 1.0, -3.0]]


def probabilities(logits):
    e = np.exp(np.array(logits))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_class_weights(reduction):
    x = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    weight, target = np.array([1.0, 5.0, 0.5]), np.array([0, 2, 1])
    loss = F.cross_entropy(x, torch.tensor(target), weight=torch.tensor(weight), reduction=reduction)
    losses = -np.log(probabilities(LOGITS)[range(3), target]) * weight[target]
    scale = {"none": 1, "sum": 1, "mean": 1 / weight[target].sum()}[reduction]
    expected = losses if reduction == "none" else losses.sum() * scale
    np.testing.assert_allclose(loss.detach().numpy(), expected)
    loss.sum().backward()
    residual = probabilities(LOGITS) - np.eye(3)[target]
    np.testing.assert_allclose(x.grad.numpy(), residual * weight[target][:, None] * scale)


def test_second_gradients_with_weights_and_ignored_samples():
    x = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, 5.0, 0.5], dtype=torch.float64)
    target = torch.tensor([0, -100, 1])

    def grad_at(values):
        leaf = torch.tensor(values, requires_grad=True)
        loss = F.cross_entropy(leaf, target, weight=weight)
        return torch.autograd.grad(loss, leaf)[0].numpy()

    loss = F.cross_entropy(x, target, weight=weight)
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    direction = torch.randn(3, 3, dtype=torch.float64)
    (found,) = torch.autograd.grad((grad * direction).sum(), x)
    base, step = x.detach().numpy(), 1e-6 * direction.numpy()
    expected = (grad_at(base + step) - grad_at(base - step)) / 2e-6
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-8)


def test_nothing_to_learn_from():
    x = torch.zeros(2, 3, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([-100, -100]))
    assert loss.isnan()
    loss = F.cross_entropy(x, torch.tensor([-100, -100]), reduction="sum")
    loss.backward()
    assert loss.item() == 0 and x.grad.abs().sum() == 0


def test_targets_may_not_change_before_backward():
    x, target = torch.zeros(2, 3, requires_grad=True), torch.tensor([0, 1])
    loss = F.cross_entropy(x, target)
    target += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_wrong_class_is_named_and_changes_nothing():
    x = torch.zeros(2, 3, requires_grad=True)
    for bad in (3, -1):
        with fails(IndexError, f"Target {bad} is out of bounds."):
            F.cross_entropy(x, torch.tensor([0, bad]))
    assert x.grad is None


@pytest.mark.parametrize(
    "target, hint",
    [
        (torch.zeros(2), "convert them with .long()"),
        (torch.zeros(2, 1, dtype=torch.int64), "target must have shape [2], but has [2, 1]"),
        (torch.zeros(2, dtype=torch.int32), "convert them with .long()"),
    ],
)
def test_errors_say_how_to_mend_the_target(target, hint):
    with pytest.raises(RuntimeError) as caught:
        F.cross_entropy(torch.zeros(2, 3), target)
    assert hint in str(caught.value).split("\n")[1]


def test_loss_of_many_pixels():
    logits = torch.randn(2, 4, 5, 6, dtype=torch.float64, requires_grad=True)
    target = torch.randint(4, (2, 5, 6))
    F.cross_entropy(logits, target).backward()
    flat = logits.detach().permute(0, 2, 3, 1).reshape(-1, 4).requires_grad_()
    F.cross_entropy(flat, target.reshape(-1)).backward()
    expected = flat.grad.reshape(2, 5, 6, 4).permute(0, 3, 1, 2)
    np.testing.assert_allclose(logits.grad.numpy(), expected.numpy(), atol=1e-12)


# --- Elementwise losses ------------------------------------------------------------------------


def test_legacy_flags():
    x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
    for flags, expected in (
        ({"size_average": False}, 5.0),
        ({"reduce": True}, 2.5),
        ({"reduce": False}, [1.0, 4.0]),
        ({"size_average": True, "reduce": False}, [1.0, 4.0]),
    ):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            assert F.mse_loss(x, y, **flags).tolist() == expected
    with fails(ValueError, "median is not a valid value for reduction"):
        F.mse_loss(x, y, reduction="median")


def test_different_shapes_warn_and_broadcast():
    x, y = torch.ones(2, 3, requires_grad=True), torch.zeros(3, requires_grad=True)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss):
        x.grad = y.grad = None
        with pytest.warns(UserWarning, match="different to the input size"):
            loss(x, y, reduction="sum").backward()
        assert x.grad.shape == (2, 3) and y.grad.shape == (3,)
        np.testing.assert_allclose(y.grad.numpy(), -x.grad.numpy().sum(0))


def test_element_weights():
    x, y, w = torch.tensor([1.0, 2.0]), torch.zeros(2), torch.tensor([3.0, 1.0])
    assert F.mse_loss(x, y, weight=w).item() == pytest.approx(7 / 4)
    assert F.l1_loss(x, y, weight=w, reduction="none").tolist() == [3, 2]
    with fails(ValueError, "Weights and input must have the same size."):
        F.mse_loss(x, y, weight=torch.ones(1))


def test_weighted_binary_cross_entropies_agree():
    x = torch.tensor([[-2.0, 0.0, 1.5], [3.0, -1.0, 0.5]], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[0.0, 1.0, 0.3], [1.0, 0.9, 0.0]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)
    for reduction in ("mean", "sum"):
        grads = [
            torch.autograd.grad(loss, (x, y))
            for loss in (
                F.binary_cross_entropy(torch.sigmoid(x), y, weight, reduction=reduction),
                F.binary_cross_entropy_with_logits(x, y, weight, reduction=reduction),
            )
        ]
        for one, other in zip(*grads):
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-12)


def test_positive_weight():
    x = torch.tensor([-2.0, 0.5], dtype=torch.float64, requires_grad=True)
    y, factor = torch.tensor([1.0, 0.25], dtype=torch.float64), torch.tensor([3.0, 2.0]).double()
    loss = F.binary_cross_entropy_with_logits(x, y, pos_weight=factor, reduction="sum")
    s = 1 / (1 + np.exp(-x.detach().numpy()))
    y, factor = y.numpy(), factor.numpy()
    assert loss.item() == pytest.approx((-factor * y * np.log(s) - (1 - y) * np.log(1 - s)).sum())
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 - y) * s - factor * y * (1 - s))


def test_multilabel_margin_of_many_rows():
    """The input exceeds one chunk, and the rows have different numbers of labels."""
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.standard_normal((700, 300)), requires_grad=True)
    labels = rng.permuted(np.tile(np.arange(300), (700, 1)), axis=1)
    labels[np.arange(300) >= rng.integers(0, 4, (700, 1))] = -1
    losses = F.multilabel_margin_loss(scores, torch.tensor(labels), reduction="none")
    losses.sum().backward()
    for i in (0, 1, 436, 437, 699):
        alone = scores[i].detach().requires_grad_()
        loss = F.multilabel_margin_loss(alone, torch.tensor(labels[i]))
        loss.backward()
        np.testing.assert_allclose(losses[i].item(), loss.item())
        np.testing.assert_allclose(scores.grad[i].numpy(), alone.grad.numpy())


@pytest.mark.parametrize("classes", [1, 5, 16, 37])
def test_multilabel_margin_by_a_loop_and_by_numpy(classes):
    """Half precision has no loop and uses NumPy; results for small integers agree across dtypes."""
    rng = np.random.default_rng(classes)
    scores, labels = rng.integers(-3, 4, (9, classes)), rng.integers(-1, classes, (9, classes))
    scores = [torch.tensor(scores, dtype=t, requires_grad=True) for t in (torch.float16, torch.float32, torch.float64)]
    for x in scores:
        losses = F.multilabel_margin_loss(x, torch.tensor(labels), reduction="none") * classes
        losses.sum().backward()
        np.testing.assert_allclose(losses.tolist(), _margins(x.tolist(), labels), rtol=1e-3)
    for x in scores[1:]:
        np.testing.assert_allclose(x.grad.double().numpy(), scores[0].grad.double().numpy(), rtol=2e-3, atol=1e-3)


def _margins(scores, labels):
    rows = [(x, [*row, -1]) for x, row in zip(scores, labels.tolist())]
    rows = [(x, row[: row.index(-1)]) for x, row in rows]
    return [sum(max(0, 1 - x[i] + x[j]) for i in own for j in range(len(x)) if j not in own) for x, own in rows]


def test_gradients_of_no_bags():
    table, weights = torch.ones(4, 3, requires_grad=True), torch.ones(2, requires_grad=True)
    none = torch.tensor([], dtype=torch.int64)
    F.embedding_bag(torch.tensor([1, 2]), table, none, mode="sum", per_sample_weights=weights).sum().backward()
    assert not table.grad.any() and weights.grad.tolist() == [0, 0]
    for mode in ("mean", "max"):
        assert F.embedding_bag(torch.tensor([1, 2]), table, none, mode=mode).shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("label", [-2, 3, -(2**63), 2**63 - 1])
def test_labels_out_of_range_behind_the_last(label, dtype):
    with pytest.raises(RuntimeError, match="argument #2 'target' is out of range"):
        F.multilabel_margin_loss(torch.ones(2, 3, dtype=dtype), torch.tensor([[0, -1, 1], [1, -1, label]]))
    x = torch.tensor([1.0, float("nan"), 0.5], dtype=dtype)
    assert abs(F.multilabel_margin_loss(x, torch.tensor([0, -1, 2])).item() - 0.5 / 3) < 1e-3


def test_windows_of_random_places_are_inside_for_any_number():
    x = torch.arange(49.0).view(1, 1, 7, 7)
    for number in (np.nan, 0.0, 0.5, 1.0):
        values, places = F.fractional_max_pool2d(
            x, 2, output_size=3, _random_samples=torch.full((1, 1, 2), number), return_indices=True
        )
        assert values.tolist() == places.float().tolist() and values[..., -1, -1].item() == 48


def test_soft_margin_of_large_scores():
    x = torch.tensor([800.0, -800.0], requires_grad=True)
    loss = F.soft_margin_loss(x, torch.ones(2), reduction="none")
    assert loss.tolist() == [0, 800]
    assert torch.autograd.grad(loss.sum(), x)[0].tolist() == [0, -1]


def test_weights_have_no_gradient():
    x, y, w = torch.full((2,), 0.5), torch.ones(2), torch.ones(2, requires_grad=True)
    for call, name in (
        (lambda: F.binary_cross_entropy(x, y, w), "binary_cross_entropy"),
        (lambda: F.binary_cross_entropy_with_logits(x, y, w), "binary_cross_entropy_with_logits"),
        (lambda: F.nll_loss(x, torch.tensor(0), w), "nll_loss_forward"),
    ):
        with pytest.raises(RuntimeError, match=f"The function '{name}' is not differentiable"):
            call()


def test_what_nn_functional_offers_is_in_one_place():
    for name in F.__all__:
        assert callable(getattr(F, name))
    assert F.linear is not None and not hasattr(torch, "cross_entropy")
    assert {"softmax", "log_softmax", "dropout", "relu"} <= set(dir(torch))


# --- Activations that overwrite or draw random numbers -----------------------------------------

OVERWRITING = {
    "relu": (),
    "relu6": (),
    "leaky_relu": (0.1,),
    "elu": (0.5,),
    "selu": (),
    "celu": (0.5,),
    "silu": (),
    "mish": (),
    "hardtanh": (-0.5, 0.7),
    "hardsigmoid": (),
    "hardswish": (),
    "threshold": (0.1, 3.0),
    "rrelu": (0.1, 0.3),
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_activation_in_place(name):
    function, args = getattr(F, name), OVERWRITING[name]
    leaf = torch.tensor([-2.0, -0.3, 0.4, 5.0], requires_grad=True)
    expected = function(leaf, *args)
    (grad,) = torch.autograd.grad(expected.sum(), leaf)
    for overwrite in (lambda x: function(x, *args, inplace=True), getattr(F, name + "_", None)):
        if overwrite is not None:
            x = leaf.clone()
            out = overwrite(x) if overwrite.__name__ == "<lambda>" else overwrite(x, *args)
            assert out is x and out.tolist() == expected.tolist()
            assert torch.autograd.grad(out.sum(), leaf)[0].tolist() == grad.tolist()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
        function(leaf, *args, inplace=True)


def test_random_slopes():
    x = torch.full((1000,), -1.0, dtype=torch.float64, requires_grad=True)
    out = F.rrelu(x, 0.2, 0.4, training=True)
    slopes = -out.detach().numpy()
    assert slopes.min() >= 0.2 and slopes.max() < 0.4 and 0.28 < slopes.mean() < 0.32
    (grad,) = torch.autograd.grad(out.sum(), x)
    np.testing.assert_allclose(grad.numpy(), slopes)
    assert F.rrelu(torch.ones(3), training=True).tolist() == [1, 1, 1]
    first = torch.rrelu(x, 0.2, 0.4, True, torch.Generator().manual_seed(3))
    assert torch.equal(first, torch.rrelu(x, 0.2, 0.4, True, torch.Generator().manual_seed(3)))


def test_gumbel_draws():
    logits = torch.tensor([0.1, 0.6, 0.3], dtype=torch.float64).log().expand(20000, 3)
    hard = F.gumbel_softmax(logits, hard=True)
    np.testing.assert_allclose(hard.mean(0).numpy(), [0.1, 0.6, 0.3], atol=0.02)
    assert set(hard.flatten().tolist()) == {0, 1} and hard.sum(1).eq(1).all()
    leaf = torch.zeros(2, 3, requires_grad=True)
    torch.manual_seed(1)
    soft = F.gumbel_softmax(leaf, tau=0.5)
    torch.manual_seed(1)
    hard = F.gumbel_softmax(leaf, tau=0.5, hard=True)
    weights = torch.arange(6.0).reshape(2, 3)
    expected, found = (torch.autograd.grad((out * weights).sum(), leaf)[0] for out in (soft, hard))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


# --- Forms of dropout --------------------------------------------------------------------------


def test_channels_are_dropped_as_one():
    x = torch.ones(50, 20, 3, 2)
    for out in (F.dropout2d(x, 0.25), torch.feature_dropout(x, 0.25, True), F.dropout3d(x[..., None], 0.25)):
        channels = out.reshape(1000, 6)
        assert torch.equal(channels, channels[:, :1].expand(1000, 6))
        assert {round(v, 4) for v in channels.flatten().tolist()} == {0, 1.3333}
        assert 0.18 < (channels == 0).float().mean() < 0.32


def test_alpha_dropout_keeps_mean_and_variance():
    x = torch.randn(200, 500, requires_grad=True)
    for function in (F.alpha_dropout, F.feature_alpha_dropout):
        out = function(x, 0.3, training=True)
        assert abs(out.mean().item()) < 0.02 and abs(out.var().item() - 1) < 0.02
        (grad,) = torch.autograd.grad(out.sum(), x)
        assert len(set(grad.flatten().tolist())) == 2
        dropped = out[grad == 0]
        assert len(set(dropped.tolist())) == 1 and dropped[0] < -1


def test_rows_of_large_norm_are_scaled_in_place():
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], requires_grad=True)
    out = F.embedding(torch.tensor([0, 1]), table, max_norm=1.0)
    np.testing.assert_allclose(table.detach().numpy(), [[0.6, 0.8], [0.3, 0.4], [6, 8]], rtol=1e-6)
    assert out.tolist() == table[:2].tolist() and table._version == 1


def test_gradients_divided_by_frequency():
    table = torch.zeros(4, 2, requires_grad=True)
    indices = torch.tensor([1, 3, 1, 1])
    for out in (
        F.embedding(indices, table, scale_grad_by_freq=True),
        F.embedding_bag(indices, table, torch.tensor([0, 2]), mode="sum", scale_grad_by_freq=True),
    ):
        (grad,) = torch.autograd.grad(out.sum(), table)
        np.testing.assert_allclose(grad.numpy(), [[0, 0], [1, 1], [0, 0], [1, 1]], rtol=1e-6)


def test_ctc_can_be_differentiated_once():
    x = torch.randn(4, 1, 3, requires_grad=True)
    loss = F.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2]]), (4,), (2,))
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(NotImplementedError, match="derivative for '_ctc_loss_backward' is not implemented"):
        grad.sum().backward()


def test_targets_of_ctc_are_symbols():
    with pytest.raises(RuntimeError, match="outside the 3 symbols"):
        F.ctc_loss(torch.zeros(4, 1, 3), torch.tensor([[1, 3]]), (4,), (2,))


# --- Empty input -------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 3, 0), (2, 0, 2, 2)])
def test_batch_norm_of_nothing(shape, training):
    x = torch.ones(shape, requires_grad=True)
    found = F.batch_norm(x, None, None, training=training)
    assert found.shape == shape and found.requires_grad
    weight, bias = (torch.ones(shape[1] if len(shape) > 1 else 1, requires_grad=True) for _ in range(2))
    found = F.batch_norm(x, None, None, weight, bias, training=training)
    grads = torch.autograd.grad(found.sum(), (x, weight, bias))
    assert found.shape == shape and [g.tolist() for g in grads[1:]] == [[0.0] * weight.numel()] * 2


def test_batch_norm_without_statistics_still_fails_for_elements():
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        F.batch_norm(torch.ones(2, 3), None, None)


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 0, 2, 2), (0, 3, 2), (0, 0, 2)])
def test_instance_norm_of_nothing(shape):
    assert F.instance_norm(torch.ones(shape)).shape == shape
    weight, bias = (torch.ones(shape[1], requires_grad=True) for _ in range(2))
    found = F.instance_norm(torch.ones(shape), None, None, weight, bias)
    assert found.shape == shape and torch.autograd.grad(found.sum(), weight)[0].tolist() == [0.0] * shape[1]


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (
            lambda: F.fold(torch.ones(1, 12, 12), (4, 5), 2, dilation=8),
            "Given output_size=(4, 5), kernel_size=(2, 2), dilation=(8, 8), padding=(0, 0), stride=(1, 1), calculated "
            "shape of the array of sliding blocks as (-4, -3), which is too small (non-positive)",
        ),
        (
            lambda: F.grid_sample(torch.ones(1, 2, 2), torch.ones(1, 1, 1, 2), align_corners=False),
            "grid_sampler(): expected grid to have size 1 in last dimension, but got grid with sizes [1, 1, 1, 2]",
        ),
        (
            lambda: F.grid_sample(torch.ones(1, 2, 2), torch.ones(1, 1, 1), align_corners=False),
            "grid_sampler(): expected 5D input and grid with same number of dimensions, but got input with sizes "
            "[1, 2, 2] and grid with sizes [1, 1, 1]",
        ),
    ],
)
def test_wrong_sizes_of_images(function, line):
    with fails(RuntimeError, line):
        function()


@pytest.mark.parametrize(
    ("dims", "shape", "kernel", "size", "message"),
    [
        (2, (2, 7, 7), (1,), (3, 3), "kernel_size must either be a single Int or tuple of Ints"),
        (2, (2, 7, 7), 2, (3,), "output_size must either be a single Int or tuple of Ints"),
        (3, (2, 7, 7, 7), 2, (), "output_size must either be a single Int or tuple of three Ints"),
        (2, (1, 0, 7, 7), 2, 3, "Expected input to have non-zero size"),
        (3, (1, 2, 7, 0, 7), 2, 3, "Expected input to have non-zero size"),
    ],
)
def test_fractional_pools_check_their_sizes(dims, shape, kernel, size, message):
    with pytest.raises(RuntimeError, match=f"^fractional_max_pool{dims}d.*{message}"):
        getattr(F, f"fractional_max_pool{dims}d")(torch.ones(shape), kernel, size)


def test_fractional_pools_of_no_windows():
    x = torch.ones(2, 7, 7, requires_grad=True)
    found = F.fractional_max_pool2d(x, 2, (0, 1))
    found.sum().backward()
    assert found.shape == (2, 0, 1) and not x.grad.any()


def test_more_windows_than_there_are_numbers():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        F.adaptive_max_pool1d(torch.ones(2, 2, 2), 2**62 - 1)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", [lambda x, at: F.threshold(x, at, 20), lambda x, at: F.softplus(x, 1, at)])
def test_gradients_in_half_precision_compare_as_results_do(function, dtype, recorded):
    for at in (0.1, 0.3, 0.7):  # not numbers of half precision
        x = torch.tensor([at], dtype=dtype, requires_grad=True)
        y = function(x, at)
        (found,) = torch.autograd.grad(y, x, create_graph=recorded)
        above = x.detach().float() > at
        assert found.dtype is dtype
        assert (found == 1).item() == above.item() == (y == x).item()


@pytest.mark.parametrize("function", [F.gelu, F.logsigmoid, F.softplus])
def test_activations_into_out(function):
    x, out = torch.linspace(-1, 1, 6).reshape(2, 3).t(), torch.empty(0)
    assert function(x, out=out) is out and out.equal(function(x))
    strided = torch.empty(2, 3).t()
    assert function(x, out=strided) is strided and strided.equal(function(x))
    with pytest.raises(RuntimeError, match="^unsupported operation"):
        function(x, out=torch.empty(1).expand(3, 2))
    with pytest.raises(RuntimeError, match="arguments don't support automatic differentiation"):
        function(x.clone().requires_grad_(), out=torch.empty(0))
