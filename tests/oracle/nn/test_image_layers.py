"""Convolutional and pooling layers with PyTorch's weights give PyTorch's results and have the same repr."""

import numpy as np
import pytest

import cygrad
from helpers import first_line

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

LAYERS = [
    "Conv1d(2, 4, 3)",
    "Conv1d(2, 4, 3, padding='same', padding_mode='circular')",
    "Conv2d(2, 4, (3, 2), stride=2, padding=1, groups=2, bias=False)",
    "Conv2d(2, 4, 3, padding=(1, 2), padding_mode='reflect')",
    "Conv2d(2, 2, 2, padding='same', dilation=2)",
    "Conv3d(2, 3, 2, padding=1, padding_mode='replicate')",
    "ConvTranspose1d(2, 3, 3, stride=2, output_padding=1)",
    "ConvTranspose2d(2, 4, 3, stride=2, padding=1, groups=2, dilation=2)",
    "ConvTranspose3d(2, 3, 2, bias=False)",
    "MaxPool1d(2)",
    "MaxPool2d((2, 3), stride=1, padding=1, ceil_mode=True)",
    "MaxPool3d(2, return_indices=True)",
    "AvgPool1d(3, 2, 1)",
    "AvgPool2d(2, count_include_pad=False, padding=1)",
    "AvgPool3d(2, divisor_override=3)",
    "AdaptiveAvgPool1d(3)",
    "AdaptiveAvgPool2d((3, None))",
    "AdaptiveAvgPool3d(1)",
    "AdaptiveMaxPool1d(3)",
    "AdaptiveMaxPool2d(3, return_indices=True)",
    "AdaptiveMaxPool3d((1, 2, 3))",
]


@pytest.mark.parametrize("text", LAYERS)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_layer(text):
    ours, theirs = eval(f"nn.{text}", {"nn": cygrad.nn}), eval(f"nn.{text}", {"nn": torch.nn})
    assert repr(ours) == repr(theirs)
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    ours.load_state_dict({k: cygrad.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    dims = int(text.partition("d(")[0][-1])
    x = np.random.default_rng(0).standard_normal((2, 2, 6, 5, 7)[: dims + 2]).astype(np.float32)
    found, expected = ours(cygrad.from_numpy(x)), theirs(torch.from_numpy(x))
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-5, 1e-5)


def test_first_weights_are_in_pytorchs_range():
    for made in ("Conv2d(3, 64, 3)", "ConvTranspose2d(3, 64, 3)"):
        for library in (cygrad, torch):
            layer = eval(f"nn.{made}", {"nn": library.nn})
            bound = 1 / (layer.weight.shape[1] * 9) ** 0.5
            for parameter in layer.parameters():
                largest = parameter.detach().abs().max().item()
                assert 0.9 * bound < largest <= bound


def test_output_size():
    for library in (cygrad, torch):
        layer = library.nn.ConvTranspose2d(1, 1, 3, stride=2)
        assert layer(library.ones(1, 1, 4, 4), output_size=(10, 9)).shape == (1, 1, 10, 9)


@pytest.mark.parametrize(
    "text",
    [
        "Conv2d(3, 4, 3, groups=2)",
        "Conv2d(4, 3, 3, groups=2)",
        "Conv2d(4, 3, 3, groups=0)",
        "Conv2d(4, 3, 3, padding='same', stride=2)",
        "ConvTranspose2d(4, 3, 3, padding_mode='reflect')",
        "ConvTranspose2d(1, 1, 3, stride=2)(torch.ones(1, 1, 4, 4), output_size=(11, 9))",
        "ConvTranspose2d(1, 1, 3, stride=2)(torch.ones(1, 1, 4, 4), output_size=(9,))",
    ],
)
def test_errors(text):
    texts = []
    for library in (cygrad, torch):
        with pytest.raises(ValueError) as found:
            eval(f"torch.nn.{text}", {"torch": library})
        texts.append(first_line(found.value))
    assert texts[0] == texts[1]
