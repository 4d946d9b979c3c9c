"""Layers whose ops keep auxiliary tensors work in inference mode, where tensors have no version counter."""

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn.functional import cross_entropy, scaled_dot_product_attention

CALLS = {
    "LSTM": (lambda: nn.LSTM(4, 3, 2, bidirectional=True), lambda: [torch.ones(5, 2, 4)]),
    "LSTM with states": (lambda: nn.LSTM(4, 3), lambda: [torch.ones(5, 2, 4), (torch.ones(1, 2, 3),) * 2]),
    "GRU": (lambda: nn.GRU(4, 3), lambda: [torch.ones(5, 2, 4)]),
    "RNN": (lambda: nn.RNN(4, 3), lambda: [torch.ones(5, 2, 4)]),
    "cross_entropy of many scores": (
        lambda: cross_entropy,
        lambda: [torch.ones(70, 1000), torch.arange(70), torch.ones(1000)],
    ),
    "attention of many scores, masked": (
        lambda: scaled_dot_product_attention,
        lambda: [*[torch.ones(2, 2, 200, 8)] * 3, torch.zeros(200, 200)],
    ),
}


def parts(result):
    return [t for part in (result if isinstance(result, tuple) else (result,)) for t in part]


@pytest.mark.parametrize("name", CALLS)
def test_inference_mode_gives_the_same(name):
    make, inputs = CALLS[name]
    function = make()
    result = function(*inputs())
    expected = [t.detach() for t in (parts(result) if isinstance(result, tuple) else [result])]
    with torch.inference_mode():
        result = function(*inputs())
        found = parts(result) if isinstance(result, tuple) else [result]
        assert all(t.is_inference() for t in found)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_tensors_of_inference_mode_are_not_saved_for_backward(kind):
    with torch.inference_mode():
        x = torch.ones(5, 2, 4)
    with pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward"):
        kind(4, 3)(x)
    with torch.no_grad():
        kind(4, 3)(x)


def test_many_scores_are_not_compared_with_targets_of_inference_mode():
    with torch.inference_mode():
        target = torch.arange(70)
    scores = torch.ones(70, 1000, requires_grad=True)
    with pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward"):
        cross_entropy(scores, target)
    assert cross_entropy(scores.detach(), target) == pytest.approx(6.907755)
