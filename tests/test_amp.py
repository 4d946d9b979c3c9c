"""cygrad.amp without PyTorch: results, messages, threads."""

import copy
import pickle
import threading

import pytest

import cygrad
from cygrad import nn
from cygrad.amp import GradScaler, autocast, op_lists


def test_the_scaler_is_public_where_autocast_is():
    assert cygrad.GradScaler is GradScaler and cygrad.autocast is autocast


def float16():
    return autocast("cpu", dtype=cygrad.float16)


def test_op_lists_name_ops():
    lists = op_lists()
    assert "linear" in lists["lower"]
    assert "cross_entropy" in lists["float32"]
    for names in lists.values():
        for name in names:
            if "_pad" in name:  # ops that `pad` is composed of
                continue
            places = (cygrad, nn.functional, cygrad.linalg, cygrad.fft)
            assert any(hasattr(place, name.removeprefix("linalg_")) for place in places), name


def test_products_are_lower_and_losses_are_not():
    x, w = cygrad.randn(4, 3), cygrad.randn(3, 3)
    with float16():
        assert (x @ w).dtype is cygrad.float16
        assert nn.functional.linear(x, w, cygrad.ones(3)).dtype is cygrad.float16
        assert x.mm(w).matmul(w).dtype is cygrad.float16
        assert nn.functional.conv1d(x[None], cygrad.randn(2, 4, 2)).dtype is cygrad.float16
        assert nn.functional.mse_loss((x @ w), x).dtype is cygrad.float32
        assert (x.double() @ w.double()).dtype is cygrad.float64
        lowered = x @ w
    assert cygrad.allclose(lowered.float(), x.half().float() @ w.half().float(), atol=2e-2)
    assert (x @ w).dtype is cygrad.float32


def test_the_state_of_a_gru_is_as_precise_as_it_comes():
    layer, x = nn.GRU(3, 2), cygrad.randn(5, 1, 3)
    expected, last = layer(x)
    with float16():
        found, state = layer(x)
        assert found.dtype is state.dtype is cygrad.float32
        assert cygrad.equal(found, expected) and cygrad.equal(state, last)
        assert layer(x.half())[0].dtype is cygrad.float16
        assert layer(x.half(), last)[0].dtype is cygrad.float32
        assert nn.LSTM(3, 2)(x)[0].dtype is cygrad.float16
        packed = nn.utils.rnn.pack_sequence([x[:, 0], x[:2, 0]])
        assert layer(packed)[0].data.dtype is cygrad.float32
    found.sum().backward()
    assert layer.weight_hh_l0.grad.dtype is cygrad.float32


def test_bilinear_forms_are_not_lowered():
    with float16():
        assert nn.Bilinear(3, 2, 4, bias=False)(cygrad.ones(5, 3), cygrad.ones(5, 2)).dtype is cygrad.float32


def test_other_threads_are_left_alone():
    x, seen = cygrad.ones(2, 2), []
    with float16():
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert seen == [cygrad.float32]


def test_a_changed_parameter_is_cast_anew():
    weight = nn.Parameter(cygrad.ones(2, 2))
    with float16():
        before = cygrad.eye(2) @ weight
        with cygrad.no_grad():
            weight.mul_(2)
        assert ((cygrad.eye(2) @ weight) == 2 * before).all()


def test_casts_made_without_recording_are_not_kept():
    weight = nn.Parameter(cygrad.ones(2, 2))
    with float16():
        with cygrad.no_grad():
            cygrad.eye(2) @ weight
        (cygrad.eye(2) @ weight).float().sum().backward()
    assert weight.grad.dtype is cygrad.float32


def test_training_in_half_precision_learns():
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer, scaler = cygrad.optim.Adam(model.parameters(), lr=0.02), GradScaler("cpu")
    x = cygrad.randn(64, 2)
    y = (x[:, :1] * x[:, 1:]).tanh()
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        with float16():
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_nan_loss_leaves_the_weights_and_halves_the_scale():
    weight = nn.Parameter(cygrad.ones(1))
    optimizer, scaler = cygrad.optim.SGD([weight], lr=1.0), GradScaler("cpu", init_scale=8.0)
    scaler.scale(weight * float("nan")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == 1
    assert scaler.get_scale() == 4


def test_errors_say_what_to_do():
    weight = nn.Parameter(cygrad.ones(1))
    optimizer, scaler = cygrad.optim.SGD([weight], lr=1.0), GradScaler("cpu")
    scaler.scale(weight)
    with pytest.raises(AssertionError, match=r"No inf checks(?s:.*)was scaler.scale\(loss\).backward\(\) called"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match=r"prior to update.\nCall scaler.step\(optimizer\) first"):
        scaler.update()
    weight.data, weight.grad = weight.data.half(), None
    weight.grad = cygrad.ones(1).half()
    with pytest.raises(ValueError, match=r"FP16 gradients.\nKeep the parameters in float32"):
        scaler.unscale_(cygrad.optim.SGD([weight], lr=1.0))
    with pytest.warns(UserWarning, match=r'use autocast\("cpu"\)'):
        autocast("cuda")


def test_scalers_are_copied_and_pickled_between_iterations():
    weight = nn.Parameter(cygrad.ones(1))
    optimizer, scaler = cygrad.optim.SGD([weight], lr=1.0), GradScaler("cpu", init_scale=8.0)
    scaler.scale(weight).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled at the beginning"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    scaler.update()
    for other in (copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))):
        assert other.state_dict() == scaler.state_dict()


def test_a_loss_that_is_always_nan_is_told_once():
    model, scaler = nn.Linear(2, 1), GradScaler("cpu")
    optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()

    def iterate(times):
        for _ in range(times):
            optimizer.zero_grad()
            scaler.scale(model(cygrad.full((1, 2), float("nan"))).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

    iterate(40)
    with pytest.warns(UserWarning, match="(?s)the scale of GradScaler has fallen to 3.0e-08.*detect_anomaly") as caught:
        iterate(1)
    assert caught[0].filename == __file__
    iterate(300)
    assert scaler.get_scale() == 0 and cygrad.equal(model.weight, before)


# --- Optimizers that unscale gradients themselves ----------------------------------------------


class _OfScaler(cygrad.optim.SGD):
    _step_supports_amp_scaling = True

    def step(self, closure=None, *, grad_scaler=None):
        self.seen = grad_scaler, hasattr(self, "found_inf")


class _OfNumbers(cygrad.optim.SGD):
    _step_supports_amp_scaling = True

    def step(self, closure=None):
        self.seen = self.grad_scale, self.found_inf
        return "done"


def scaled_gradient(kind, factor=1.0):
    w = cygrad.ones(2, requires_grad=True)
    scaler, optimizer = GradScaler("cpu", init_scale=4.0), kind([w], lr=0.1)
    scaler.scale((w * factor).sum()).backward()
    return scaler, optimizer, w


def test_such_an_optimizer_may_receive_the_scaler():
    scaler, optimizer, w = scaled_gradient(_OfScaler)
    with pytest.warns(FutureWarning, match="GradScaler is going to stop passing itself as a keyword argument"):
        scaler.step(optimizer)
    assert optimizer.seen == (scaler, False) and w.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="has already been called"):
        scaler.step(optimizer)


@pytest.mark.parametrize("factor, nonfinite", [(1.0, 0.0), (float("inf"), 1.0)])
def test_such_an_optimizer_receives_scale_and_finding(factor, nonfinite):
    scaler, optimizer, w = scaled_gradient(_OfNumbers, factor)
    assert scaler.step(optimizer) == "done"
    scale, found = optimizer.seen
    assert scale.item() == 4 and found.item() == nonfinite and w.grad.tolist() == [4 * factor] * 2
    assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    scaler.update()
    assert scaler.get_scale() == (2 if nonfinite else 4)


def test_such_an_optimizer_does_not_unscale_twice():
    scaler, optimizer, w = scaled_gradient(_OfNumbers)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert optimizer.seen[0] is None and optimizer.seen[1].item() == 0 and w.grad.tolist() == [1, 1]


# --- The steps of a scaler as functions --------------------------------------------------------


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [cygrad.float32, cygrad.float16])
def test_unscaling_finds_what_is_not_finite(bad, kind):
    found, scale = cygrad.zeros(1), cygrad.full((1,), 0.25)
    grads = [cygrad.full((3, 2), 4.0, dtype=kind).t(), cygrad.full((2, 4), 8.0, dtype=kind)[:, ::2]]
    cygrad._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    assert found.item() == 0 and grads[0].unique().tolist() == [1] and grads[1].unique().tolist() == [2]
    grads[1][1, 1] = bad
    cygrad._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    assert found.item() == 1
    with pytest.raises(RuntimeError, match="found_inf must be a float tensor"):
        cygrad._amp_foreach_non_finite_check_and_unscale_(grads, found.double(), scale)
    with pytest.raises(RuntimeError, match="inv_scale must be a 1-element tensor"):
        cygrad._amp_foreach_non_finite_check_and_unscale_(grads, found, cygrad.ones(2))


def test_updates_of_a_scale():
    scale, steps = cygrad.full((1,), 4.0), cygrad.zeros(1, dtype=cygrad.int32)
    expected = [(0.0, 4.0, 1), (0.0, 8.0, 0), (1.0, 2.0, 0), (0.0, 2.0, 1), (1.0, 0.5, 0)]
    for found, size, count in expected:
        assert cygrad._amp_update_scale_(scale, steps, cygrad.full((1,), found), 2.0, 0.25, 2) is scale
        assert (scale.item(), steps.item()) == (size, count)
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        cygrad._amp_update_scale_(scale, steps.float(), cygrad.zeros(1), 2.0, 0.25, 2)
    assert scale.item() == 0.5
