"""Errors for common mistakes say how to mend them, below PyTorch's first line."""

import numpy as np
import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn, optim

x, i = torch.ones(2, 3), torch.arange(3)


class WithoutInit(nn.Module):
    def __init__(self):
        self.layer = nn.ReLU()


MISTAKES = {  # a call, and what the second line of its error says
    "misspelled keyword": (lambda: torch.add(x, x, alhpa=2), "did you mean 'alpha'?"),
    "misspelled keyword of a factory": (lambda: torch.zeros(2, dytpe=torch.int64), "did you mean 'dtype'?"),
    "misspelled name": (lambda: torch.tnesor([1]), "did you mean 'tensor'?"),
    "name of a dtype": (lambda: torch.zeros(2, dtype="float64"), "to fix it: write torch.float64, without quotes"),
    "name of a dtype as device": (lambda: x.to("torch.float64"), "to fix it: write torch.float64, without quotes"),
    "tensors without a list": (lambda: torch.cat(x, x), "to fix it: put the tensors into a list, as in cat([a, b])"),
    "ragged lists": (
        lambda: torch.tensor([[1], [2, 3]]),
        "nn.utils.rnn.pad_sequence makes one tensor of tensors that differ in length",
    ),
    "softmax of integers": (lambda: F.softmax(i, 0), "to fix it: convert it first, as in x.float()"),
    "fraction added to integers": (
        lambda: i.clone().add_(0.5),
        "to fix it: convert the tensor that is written to, or use the form that returns a new tensor, as in x = x + y",
    ),
    "classes": (
        lambda: F.cross_entropy(x, torch.tensor([0, 3])),
        "the input has scores for 3 classes, so that targets are 0 to 2",
    ),
    "channels": (
        lambda: nn.BatchNorm1d(4)(x),
        "the input has 3 channels, in dimension 1: the layer needs num_features=3",
    ),
    "too many of the largest": (lambda: x.topk(4), "k is 4, and there are 3 elements to choose from"),
    "pooling without channels": (
        lambda: F.adaptive_avg_pool2d(x, (1, 1)),
        "the input has shape (2, 3): adaptive_avg_pool2d pools images with 2 dimensions, behind those of the batch and "
        "the channels",
    ),
    "list of layers": (
        lambda: nn.Sequential([nn.ReLU()]),
        "to fix it: pass the modules one by one, as in nn.Sequential(*modules)",
    ),
    "class of layers": (
        lambda: nn.Sequential(nn.ReLU),
        "to fix it: pass an object of the class, as in ReLU(...)",
    ),
    "module before __init__": (WithoutInit, "to fix it: call super().__init__() at the beginning of __init__"),
    "array as parameter": (
        lambda: nn.Parameter(np.ones(2)),
        "to fix it: pass a tensor, as in nn.Parameter(torch.tensor(data))",
    ),
    "model in place of parameters": (
        lambda: optim.SGD(nn.Linear(1, 1), lr=0.1),
        "to fix it: pass model.parameters()",
    ),
    "no parameters": (
        lambda: optim.SGD([], lr=0.1),
        "parameters() can be iterated over once, and finds modules in attributes and in nn.ModuleList, but not in "
        "plain lists",
    ),
    "result as parameter": (
        lambda: optim.SGD([torch.ones(1, requires_grad=True) * 2], lr=0.1),
        "it is the result of an op: optimize the tensors that it was computed from, or make it a leaf, as in "
        "x.detach().requires_grad_()",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_second_line_says_how_to_mend_it(mistake):
    call, wanted = MISTAKES[mistake]
    with pytest.raises(Exception) as caught:  # the first lines are compared with PyTorch's elsewhere
        call()
    second = str(caught.value).split("\n")[1]
    assert second.strip() == wanted


def test_names_like_no_other_get_no_suggestion():
    assert not hasattr(torch, "xyzzy")
    with pytest.raises(AttributeError, match="has no attribute 'xyzzy'$"):
        torch.xyzzy  # noqa: B018
    with pytest.raises(TypeError, match="unexpected keyword argument 'xyzzy'$"):
        torch.add(x, x, xyzzy=1)
