"""Names that programs import from submodules, as in PyTorch."""

import importlib

import pytest

import cygrad as torch
from cygrad import nn

PLACES = """
accelerator: is_available current_accelerator device_count
nn.common_types: _size_1_t _size_2_t _size_3_t _size_any_t
functional: F einsum
multiprocessing.spawn: ProcessRaisedException
distributions.kl: _KL_REGISTRY
nn.functional: _verify_batch_size _check_key_padding_mask
nn.init: _calculate_fan_in_and_fan_out
nn.modules.activation: MultiheadAttention ReLU GELU Softmax Tanh PReLU
nn.modules.batchnorm: _BatchNorm _NormBase BatchNorm2d
nn.modules.conv: _ConvNd _ConvTransposeNd Conv2d
nn.modules.dropout: _DropoutNd
nn.modules.module: _addindent
nn.modules.loss: _Loss _WeightedLoss CrossEntropyLoss
nn.modules.pooling: _MaxPoolNd
nn.modules.utils: _ntuple _single _pair _triple _quadruple
optim.adamw: AdamW
optim.optimizer: ParamsT
optim.lr_scheduler: _LRScheduler
utils.data._utils.collate: default_collate default_convert
version: cuda hip
"""


def places():
    for line in PLACES.strip().splitlines():
        place, _, names = line.partition(": ")
        yield from ((place, name) for name in names.split())


@pytest.mark.parametrize(("place", "name"), list(places()))
def test_name_is_in_its_place(place, name):
    assert hasattr(importlib.import_module(f"cygrad.{place}"), name)


@pytest.mark.oracle
@pytest.mark.parametrize(("place", "name"), list(places()))
def test_pytorch_has_it_there(place, name):
    pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
    assert hasattr(importlib.import_module(f"torch.{place}"), name)


def test_the_first_lines_of_pytorchs_tutorial():
    device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
    assert nn.Linear(2, 2).to(device).weight.device.type == "cpu"


def test_bases_are_what_they_are_asked_for():
    assert isinstance(nn.AlphaDropout(), nn.modules.dropout._DropoutNd)
    assert isinstance(nn.InstanceNorm1d(2), nn.modules.batchnorm._NormBase)
    assert isinstance(nn.NLLLoss(), nn.modules.loss._WeightedLoss)
    assert isinstance(nn.ConvTranspose1d(1, 1, 1), nn.modules.conv._ConvTransposeNd)
    assert nn.modules.activation.MultiheadAttention is nn.MultiheadAttention
    with pytest.raises(AttributeError, match="has no attribute 'Linear'"):
        nn.modules.activation.Linear  # noqa: B018


def test_bases_for_own_classes():
    class Focal(nn.modules.loss._WeightedLoss):
        def __init__(self, gamma, weight=None, reduction="mean"):
            super().__init__(weight, None, None, reduction)
            self.gamma = gamma

        def forward(self, input, target):
            p = input.softmax(1).gather(1, target[:, None])
            loss = -((1 - p) ** self.gamma) * p.log()
            return loss.mean() if self.reduction == "mean" else loss.sum()

    class Half(torch.optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    scores = torch.tensor([[1.0, 2.0], [0.5, 0.0]])
    target = torch.tensor([1, 0])
    assert torch.allclose(Focal(0)(scores, target), nn.functional.cross_entropy(scores, target))
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = Half(optimizer)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5]
    assert nn.modules.utils._pair(3) == (3, 3) and nn.modules.utils._ntuple(2)([1, 2]) == (1, 2)
    assert nn.modules.module._addindent("a\nb\nc", 3) == "a\n   b\n   c"


def test_activations_are_found_by_search():
    found = {name for name, value in vars(nn.modules.activation).items() if isinstance(value, type)}
    assert found >= {"ReLU", "ELU", "GELU", "SiLU", "Softplus", "Tanh", "Softmax", "MultiheadAttention"}


def test_layers_of_libraries_ask_for_the_output_padding():
    layer, x = nn.ConvTranspose2d(1, 1, 3, stride=2, output_padding=1), torch.ones(1, 1, 4, 4)
    assert tuple(layer._output_padding(x, [9, 10], layer.stride, layer.padding, (3, 3), num_spatial_dims=2)) == (0, 1)
    assert tuple(layer._output_padding(x, None, layer.stride, layer.padding, (3, 3), 2, layer.dilation)) == (1, 1)
