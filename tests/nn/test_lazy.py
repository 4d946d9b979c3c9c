"""Modules that infer their sizes from the first input, and the adaptive softmax."""

import copy
import pickle

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn import functional as F
from cygrad.nn.parameter import is_lazy
from helpers import fails

LAYERS = [
    (nn.LazyLinear(3), (2, 4), "Linear(in_features=4, out_features=3, bias=True)"),
    (nn.LazyLinear(3, False), (4,), "Linear(in_features=4, out_features=3, bias=False)"),
    (nn.LazyConv1d(4, 3), (6, 5), "Conv1d(6, 4, kernel_size=(3,), stride=(1,))"),
    (nn.LazyConv2d(4, 3, groups=2), (1, 6, 5, 5), "Conv2d(6, 4, kernel_size=(3, 3), stride=(1, 1), groups=2)"),
    (nn.LazyConvTranspose1d(4, 2), (1, 6, 5), "ConvTranspose1d(6, 4, kernel_size=(2,), stride=(1,))"),
    (
        nn.LazyBatchNorm1d(),
        (2, 3),
        "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
    ),
    (
        nn.LazyInstanceNorm2d(affine=False),
        (2, 3, 4, 4),
        "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)",
    ),
]


@pytest.mark.parametrize(("layer", "shape", "expected"), LAYERS, ids=[row[2] for row in LAYERS])
def test_first_input_gives_the_sizes(layer, shape, expected):
    layer, x = copy.deepcopy(layer), torch.randn(shape, requires_grad=True)
    assert layer.has_uninitialized_params()
    result = layer(x)
    assert repr(layer) == expected and type(layer).__name__ == expected.partition("(")[0]
    assert not any(is_lazy(t) for t in layer.state_dict().values())
    assert all(type(p) is nn.Parameter for p in layer.parameters())
    result.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_parameters_are_the_same_objects_before_and_after():
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    first = model[0].weight
    model(torch.ones(1, 4)).sum().backward()
    assert model[0].weight is first
    optimizer.step()
    assert {id(p) for p in model.parameters()} == {id(p) for p in optimizer.param_groups[0]["params"]}


def test_conversion_comes_before_the_sizes():
    layer = nn.LazyBatchNorm1d().double()
    layer(torch.ones(2, 3, dtype=torch.float64))
    assert {t.dtype for t in (layer.weight, layer.bias, layer.running_mean)} == {torch.float64}


@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_stay_lazy(again):
    layer = nn.LazyConv2d(4, 3)
    other = again(layer)
    other(torch.ones(1, 2, 5, 5))
    assert other.in_channels == 2 and layer.has_uninitialized_params()


def test_state_gives_the_sizes():
    layer, known = nn.LazyLinear(3), nn.Linear(4, 3)
    layer.load_state_dict(known.state_dict())
    x = torch.randn(2, 4)
    assert torch.equal(layer(x), known(x)) and type(layer) is nn.Linear
    lazy = nn.LazyLinear(3)
    lazy.load_state_dict(nn.LazyLinear(3).state_dict())
    assert lazy.has_uninitialized_params()
    with fails(RuntimeError, "Can't access the shape of an uninitialized parameter or buffer. This error usually..."):
        known.load_state_dict(lazy.state_dict())


def test_initialized_once():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        calls = 0

        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x, extra=0):
            self.calls += 1 + extra
            self.factor.materialize(x.shape)
            nn.init.ones_(self.factor)

        def forward(self, x, extra=0):
            return x * self.factor

    model = Scale()
    for _ in range(2):
        assert model(torch.ones(3), extra=1).tolist() == [1, 1, 1]
    assert model.calls == 2 and type(model) is Scale


def test_errors():
    class Lacking(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

    class Idle(Lacking):
        def initialize_parameters(self, x):
            pass

    with fails(NotImplementedError, "initialize_parameters is not implemented for Lacking"):
        Lacking()(torch.ones(2))
    with fails(RuntimeError, "module Idle has not been fully initialized"):
        Idle()(torch.ones(2))
    with fails(ValueError, "in_channels must be divisible by groups"):
        nn.LazyConv1d(4, 3, groups=4)(torch.ones(6, 5))


@pytest.mark.parametrize(
    "use", ["w + 1", "1 - w", "w @ w", "-w", "w[0]", "len(w)", "w.sum()", "w.detach()", "float(w)", "nn.init.zeros_(w)"]
)
def test_nothing_is_computed_with_what_has_no_shape(use):
    with fails(ValueError, "Attempted to use an uninitialized parameter in ..."):
        eval(use, {"w": nn.UninitializedParameter(), "nn": nn})


# --- Adaptive softmax --------------------------------------------------------------------------


def test_adaptive_softmax_is_one_distribution():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0, head_bias=True, dtype=torch.float64)
    x, target = torch.randn(5, 8, dtype=torch.float64), torch.tensor([0, 4, 11, 6, 2])
    every = layer.log_prob(x)
    assert torch.allclose(every.exp().sum(1), torch.ones(5, dtype=torch.float64))
    output, loss = layer(x, target)
    assert torch.allclose(output, every.gather(1, target[:, None])[:, 0])
    assert torch.allclose(loss, F.nll_loss(every, target))
    assert torch.equal(layer.predict(x), every.argmax(1))
    head = F.log_softmax(layer.head(x), 1)
    assert torch.allclose(every[:, 3:6], head[:, 3:4] + F.log_softmax(layer.tail[0](x), 1))


@pytest.mark.parametrize("wrap", [nn.utils.weight_norm, nn.utils.spectral_norm])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_uninitialized_weights_are_not_normalized(wrap):
    layer = nn.LazyLinear(2)
    with pytest.raises(ValueError, match="can't have uninitialized parameters. Make sure to run the dummy forward"):
        wrap(layer)
    assert list(dict(layer.named_parameters())) == ["weight", "bias"]


def test_a_length_materializes():
    parameter = nn.UninitializedParameter()
    parameter.materialize(3)
    assert parameter.shape == (3,)


def test_uninitialized_modules_are_not_scripted():
    layer = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(RuntimeError, match="LazyLinear' has uninitialized parameters weight. Did you forget to run a"):
        torch.jit.script(layer)
    layer(torch.ones(1, 3))
    assert torch.jit.script(layer) is layer


def test_attributes_that_need_no_shape_can_be_read():
    p = nn.UninitializedParameter(dtype=torch.float64)
    assert (p.is_sparse, p.is_meta, p.is_quantized, p.is_cpu, p.retains_grad) == (False, False, False, True, False)
    assert (p.itemsize, p.output_nr, p.char().dtype) == (8, 0, torch.int8)
