"""Lazy modules and the adaptive softmax match PyTorch's: reprs, states, errors, numbers."""

import inspect

import numpy as np
import pytest

import cygrad
from helpers import first_line

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

LAZY = sorted(name for name in dir(torch.nn) if name.startswith("Lazy"))


def called(layer, *inputs):
    layer(*inputs)
    return layer


def loaded(layer, state, **how):
    return layer.load_state_dict(state, **how), layer, list(layer.state_dict())


def made(library, text):
    names = {"nn": library.nn, "torch": library, "called": called, "loaded": loaded}
    return eval(text, names)


CALLS = [
    *(f"nn.{name}()" for name in LAZY if "Norm" in name),
    "nn.LazyLinear(3)",
    "nn.LazyLinear(3).weight, nn.LazyLinear(3, False).bias",
    "nn.LazyLinear(3).weight.dtype, nn.LazyLinear(3).double().weight.dtype, nn.LazyLinear(3).weight.data",
    "nn.LazyLinear(3).state_dict()",
    "nn.LazyBatchNorm1d().state_dict()",
    "nn.LazyConv2d(4, 3, 2, 1, bias=False, groups=2, padding_mode='reflect')",
    "called(nn.LazyLinear(3), torch.ones(5, 2, 8))",
    "called(nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2)), torch.ones(2, 4))",
    "called(nn.LazyConv2d(4, 3), torch.ones(1, 6, 5, 5)), called(nn.LazyConv1d(4, 3), torch.ones(6, 5))",
    "called(nn.LazyConv3d(4, 3), torch.ones(1, 6, 5, 5, 5))",
    "called(nn.LazyConvTranspose1d(4, 3, 2, 1, 1), torch.ones(1, 6, 5))",
    "called(nn.LazyConvTranspose3d(4, 3, groups=2), torch.ones(1, 6, 5, 5, 5)).weight.shape",
    "nn.LazyConvTranspose2d(4, 3)(torch.ones(1, 6, 5, 5), [7, 7]).shape",
    "called(nn.LazyBatchNorm2d(1e-3, 0.2, False), torch.ones(2, 3, 4, 4))",
    "called(nn.LazyBatchNorm3d(track_running_stats=False), torch.ones(2, 3, 4, 4, 4))",
    "called(nn.LazyBatchNorm1d().double(), torch.ones(2, 6).double()).running_mean",
    "called(nn.LazyInstanceNorm1d(), torch.ones(2, 3, 4)).state_dict()",
    "called(nn.LazyLinear(3), torch.ones(2, 0)).weight.shape",
    "loaded(nn.LazyLinear(3), nn.Linear(4, 3).state_dict())",
    "loaded(nn.LazyLinear(3), nn.LazyLinear(3).state_dict())",
    "loaded(nn.LazyLinear(3), {'weight': torch.ones(3, 4)}, strict=False)",
    "loaded(nn.LazyLinear(3), nn.Linear(4, 3).state_dict(), assign=True)[1].weight.shape",
    "loaded(nn.LazyBatchNorm1d(), nn.BatchNorm1d(3).state_dict())[1].running_mean",
    "nn.parameter.is_lazy(nn.UninitializedParameter()), nn.parameter.is_lazy(3)",
    "nn.UninitializedParameter(requires_grad=False).requires_grad, nn.UninitializedBuffer().requires_grad",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], 2.0, True)",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, (3,)).cutoffs",
]


@pytest.mark.parametrize("text", CALLS)
def test_repr(text):
    assert repr(made(cygrad, text)) == repr(made(torch, text))


ERRORS = [
    "nn.UninitializedParameter().shape",
    "nn.UninitializedParameter().share_memory_()",
    "nn.UninitializedParameter().foo",
    "loaded(nn.Linear(4, 3), nn.LazyLinear(3).state_dict())",
    "called(loaded(nn.LazyLinear(3), nn.Linear(4, 3).state_dict())[1], torch.ones(2, 5))",
    "called(nn.LazyConv2d(4, 3, groups=4), torch.ones(1, 6, 5, 5))",
    "called(nn.LazyConv2d(4, 3), torch.ones(6, 5))",
    "called(nn.LazyConv1d(4, 3), torch.ones(4))",
    "called(nn.LazyBatchNorm2d(), torch.ones(2, 3))",
    "called(nn.LazyInstanceNorm2d(), torch.ones(3, 4, 4))",
    "called(nn.LazyLinear(3), torch.ones(()))",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 3])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [0])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [10])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(torch.ones(4, 8), torch.tensor([0, 3, 7]))",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(torch.ones(4, 8), torch.tensor([0, 3, 7, 10]))",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(torch.ones(4, 8), torch.tensor([0, 3, 7, -1]))",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(torch.ones(4, 8), torch.tensor(1))",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(torch.ones(8), torch.tensor([[1]]))",
]


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    told = []
    for library in (cygrad, torch):
        with pytest.raises(Exception) as found:
            made(library, text)
        told.append((found.type, first_line(found.value)))
    assert told[0] == told[1]


@pytest.mark.parametrize("name", [*LAZY, "AdaptiveLogSoftmaxWithLoss"])
def test_signatures(name):
    methods = ("__init__", "forward", *(["initialize_parameters"] if name in LAZY else ["predict", "log_prob"]))
    for method in methods:
        found, expected = (inspect.signature(getattr(getattr(n, name), method)) for n in (cygrad.nn, torch.nn))
        assert [(p.name, p.kind, p.default) for p in found.parameters.values()] == [
            (p.name, p.kind, p.default) for p in expected.parameters.values()
        ]
    if name in LAZY:
        assert getattr(cygrad.nn, name).cls_to_become.__name__ == getattr(torch.nn, name).cls_to_become.__name__


@pytest.mark.parametrize("target", [[0, 3, 7, 9], [1, 2, 0, 1], [5, 5, 4, 3], 4])
def test_adaptive_softmax(target):
    layers = [n.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], 2.0, True).double() for n in (cygrad, torch)]
    layers[0].load_state_dict({k: cygrad.from_numpy(v.numpy().copy()) for k, v in layers[1].state_dict().items()})
    random = np.random.default_rng(0).standard_normal((8,) if isinstance(target, int) else (4, 8))
    found = []
    for library, layer in zip((cygrad, torch), layers):
        x = library.from_numpy(random.copy()).requires_grad_()
        output, loss = layer(x, library.tensor(target))
        (loss + output.sum()).backward()
        batch = x if x.ndim == 2 else x[None]
        results = [output, loss, layer.log_prob(batch), layer.predict(batch), x.grad]
        # a cluster without targets has no gradient here, zeros or none in PyTorch
        gradients = [p.grad if p.grad is not None else library.zeros_like(p) for p in layer.parameters()]
        found.append([t.detach().numpy() for t in (*results, *gradients)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)
    assert {k for k in vars(layers[0]) if k[0] != "_"} == {k for k in vars(layers[1]) if k[0] != "_"}


@pytest.mark.parametrize("place", ["batchnorm", "instancenorm"])
def test_norms_stand_in_pytorchs_place(place):
    found, expected = (getattr(library.nn.modules, place) for library in (cygrad, torch))
    assert set(found.__all__) >= set(expected.__all__)
    bases = [name for name in dir(expected) if name.startswith(("_BatchNorm", "_InstanceNorm"))]
    for name in expected.__all__:
        for base in bases:
            ours, theirs = (issubclass(getattr(module, name), getattr(module, base)) for module in (found, expected))
            assert ours == theirs, (name, base)
