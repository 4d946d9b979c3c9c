"""Invalid calls of layers and losses raise PyTorch's exceptions with PyTorch's first lines."""

import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

CALLS = {
    "a row of output too long": lambda t: t.nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=2)(t.zeros(1, 2, 5)),
    "an image of output too large": lambda t: t.nn.ConvTranspose2d(2, 3, 3, output_padding=1)(t.zeros(1, 2, 5, 5)),
    "averages of a row": lambda t: t.nn.AvgPool2d(2)(t.zeros(5)),
    "averages of a matrix": lambda t: t.nn.AvgPool2d(2)(t.zeros(5, 4)),
    "averages of a number": lambda t: t.nn.AvgPool2d(2)(t.tensor(1.0)),
    "averages of a video": lambda t: t.nn.AvgPool2d(2)(t.zeros(1, 1, 1, 5, 4)),
    "averages of a row as a video": lambda t: t.nn.AvgPool3d(2)(t.zeros(5)),
    "filters without rows": lambda t: t.nn.functional.conv2d(t.zeros(1, 2, 5, 5), t.zeros(3, 2, 0, 3)),
    "filters without elements": lambda t: t.nn.functional.conv1d(t.zeros(1, 2, 5), t.zeros(3, 2, 0)),
    "filters without a time": lambda t: t.nn.functional.conv3d(t.zeros(1, 2, 5, 5, 5), t.zeros(3, 2, 0, 1, 2)),
    "transposed filters without elements": lambda t: t.nn.functional.conv_transpose1d(
        t.zeros(1, 2, 5), t.zeros(2, 3, 0)
    ),
    "too smooth labels": lambda t: t.nn.CrossEntropyLoss(label_smoothing=2.0)(t.zeros(2, 3), t.tensor([0, 1])),
    "labels smoothed by a text": lambda t: t.nn.CrossEntropyLoss(label_smoothing="2.0")(
        t.zeros(2, 3), t.tensor([0, 1])
    ),
    "offsets of a matrix": lambda t: t.nn.EmbeddingBag(5, 3)(t.zeros(2, 2, dtype=t.long), t.tensor([0, 1])),
    "sequences of two widths": lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2, 2), t.ones(3, 3)]),
    "memory of a lazy layer": lambda t: t.nn.LazyLinear(2).share_memory(),
    "offsets behind the end": lambda t: t.nn.EmbeddingBag(5, 3)(t.zeros(4, dtype=t.long), t.tensor([0, 9])),
    "no offsets of a vector": lambda t: t.nn.EmbeddingBag(5, 3)(t.zeros(4, dtype=t.long)),
}


def outcome(library, call):
    try:
        return tuple(call(library).shape)
    except Exception as error:
        kind = type(error) if type(error).__module__ == "builtins" else type(error).__base__
        return kind, str(error).split("\n")[0].replace("cygrad.Tensor", "torch.Tensor")


@pytest.mark.parametrize("name", CALLS)
def test_raises_as_pytorch(name):
    assert outcome(cygrad, CALLS[name]) == outcome(torch, CALLS[name])
