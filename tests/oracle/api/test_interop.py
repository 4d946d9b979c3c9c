"""A network's weights move between PyTorch and cygrad in files, and both compute the same outputs with them."""

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from safetensors import torch as format_of_torch  # noqa: E402

pytestmark = pytest.mark.oracle


def mlp(library):
    nn = library.nn
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Linear(32, 4))


def resnet18(library):
    """ResNet-18 with an eighth of its channels."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.downsample = None
            if stride != 1 or channels != out:
                self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            y = self.bn2(self.conv2(library.relu(self.bn1(self.conv1(x)))))
            return library.relu(y + (x if self.downsample is None else self.downsample(x)))

    layers = [nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 8
    for out, stride in ((8, 1), (16, 2), (32, 2), (64, 2)):
        layers += [Block(channels, out, stride), Block(out, out, 1)]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def lstm(library):
    class Reader(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = library.nn.Embedding(20, 8)
            self.lstm = library.nn.LSTM(8, 16, num_layers=2, batch_first=True, bidirectional=True)
            self.out = library.nn.Linear(32, 5)

        def forward(self, tokens):
            return self.out(self.lstm(self.embedding(tokens))[0])

    return Reader()


def gpt2(library):
    """GPT-2 blocks with an output layer that shares the embedding weights."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(32), nn.LayerNorm(32)
            self.attn = nn.MultiheadAttention(32, 4, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(approximate="tanh"), nn.Linear(128, 32))

        def forward(self, x, mask):
            y = self.ln_1(x)
            x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(20, 32), nn.Embedding(16, 32)
            self.h = nn.ModuleList([Block() for _ in range(3)])
            self.ln_f = nn.LayerNorm(32)
            self.lm_head = nn.Linear(32, 20, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, tokens):
            length = tokens.shape[1]
            mask = library.ones(length, length, dtype=library.bool).triu(1)
            x = self.wte(tokens) + self.wpe(library.arange(length))
            for block in self.h:
                x = block(x, mask)
            return self.lm_head(self.ln_f(x))

    return GPT()


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def tokens(*shape):
    return np.random.default_rng(0).integers(0, 20, shape)


NETWORKS = {mlp: numbers(6, 10), resnet18: numbers(2, 3, 64, 64), lstm: tokens(3, 7), gpt2: tokens(2, 12)}


def outputs(library, model, data):
    """Outputs in evaluation mode."""
    model.eval()
    with library.no_grad():
        return model(library.from_numpy(data)).numpy()


def one_step(library, model, data):
    """Change the weights and the running statistics by one step."""
    model.train()
    optimizer = library.optim.SGD(model.parameters(), 0.01)
    model(library.from_numpy(data)).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize(("network", "data"), NETWORKS.items(), ids=[network.__name__ for network in NETWORKS])
def test_weights_go_both_ways(network, data, tmp_path):
    torch.manual_seed(0)
    theirs, ours = network(torch), network(cygrad)
    one_step(torch, theirs, data)
    torch.save(theirs.state_dict(), tmp_path / "theirs.pt")
    ours.load_state_dict(cygrad.load(tmp_path / "theirs.pt"))
    np.testing.assert_allclose(outputs(cygrad, ours, data), outputs(torch, theirs, data), rtol=1e-5, atol=1e-5)

    one_step(cygrad, ours, data)
    state = ours.state_dict()
    assert list(state) == list(theirs.state_dict())
    cygrad.save(state, tmp_path / "ours.safetensors")
    other = network(torch)
    other.load_state_dict(format_of_torch.load_file(tmp_path / "ours.safetensors"))
    np.testing.assert_allclose(outputs(torch, other, data), outputs(cygrad, ours, data), rtol=1e-5, atol=1e-5)
    assert np.abs(outputs(torch, other, data) - outputs(torch, theirs, data)).max() > 1e-4
