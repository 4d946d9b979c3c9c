"""The same seed gives PyTorch's initial weights, bit for bit, and the losses of whole training scripts."""

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

LAYERS = """
nn.Linear(7, 5)
nn.Linear(7, 5, bias=False)
nn.Bilinear(3, 4, 5)
nn.Conv1d(4, 6, 3)
nn.Conv2d(4, 6, 3, groups=2)
nn.Conv3d(2, 3, 2)
nn.ConvTranspose1d(4, 6, 3)
nn.ConvTranspose2d(4, 6, 3)
nn.ConvTranspose3d(2, 4, 2)
nn.Embedding(10, 7)
nn.Embedding(10, 7, padding_idx=2)
nn.EmbeddingBag(9, 5)
nn.RNN(4, 5, 2)
nn.RNN(4, 5, 1, bidirectional=True)
nn.LSTM(4, 5, 2)
nn.LSTM(4, 6, 2, proj_size=3)
nn.GRU(4, 5, 2, bidirectional=True)
nn.RNNCell(3, 4)
nn.LSTMCell(3, 4)
nn.GRUCell(3, 4)
nn.MultiheadAttention(8, 2)
nn.MultiheadAttention(8, 2, kdim=3, vdim=5)
nn.MultiheadAttention(8, 2, add_bias_kv=True)
nn.TransformerEncoderLayer(8, 2, 16)
nn.TransformerDecoderLayer(8, 2, 16)
nn.Transformer(8, 2, 2, 2, 16)
nn.BatchNorm1d(3)
nn.BatchNorm2d(3)
nn.LayerNorm(4)
nn.GroupNorm(2, 4)
nn.InstanceNorm2d(3, affine=True)
nn.RMSNorm(4)
nn.PReLU(3)
nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
nn.LazyLinear(4)
nn.Linear(7, 5, dtype=torch.float64)
nn.Conv2d(4, 6, 3, dtype=torch.float64)
nn.Embedding(10, 7, dtype=torch.bfloat16)
""".strip().splitlines()

INITIALIZERS = """
uniform_(w)
uniform_(w, -0.3, 0.2)
normal_(w)
normal_(w, 1, 0.2)
trunc_normal_(w)
trunc_normal_(w, 0.1, 0.3, -0.2, 0.6)
trunc_normal_(w, a=1.0, b=2.0)
xavier_uniform_(w)
xavier_normal_(w)
kaiming_uniform_(w)
kaiming_uniform_(w, a=5**0.5)
kaiming_normal_(w)
kaiming_normal_(w, mode="fan_out", nonlinearity="relu")
sparse_(w, 0.4)
orthogonal_(w)
orthogonal_(w, gain=0.5)
""".strip().splitlines()


def weights(lib, expression):
    lib.manual_seed(4)
    layer = eval(expression, {"nn": lib.nn, "torch": lib})
    if "Lazy" in expression:
        layer(lib.ones(2, 3))
    return {name: value.double().numpy() for name, value in layer.state_dict().items()}, lib.rand(1).item()


@pytest.mark.filterwarnings("ignore:(enable_nested_tensor|Initializing zero-element|Lazy modules)")
@pytest.mark.parametrize("expression", LAYERS)
def test_layers(expression):
    (found, following), (expected, expected_following) = (weights(lib, expression) for lib in (cygrad, torch))
    assert list(found) == list(expected) and following == expected_following
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


@pytest.mark.parametrize("expression", INITIALIZERS)
@pytest.mark.parametrize("shape", [(5, 3), (40, 7), (3, 50)])
def test_initializers(expression, shape):
    def filled(lib):
        lib.manual_seed(4)
        w = eval(f"init.{expression}", {"init": lib.nn.init, "w": lib.empty(*shape)})
        return w.numpy(), lib.rand(1).item()

    (found, following), (expected, expected_following) = filled(cygrad), filled(torch)
    assert following == expected_following
    if expression.startswith("orthogonal"):  # the last bits are LAPACK's
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


def losses(torch, make_model, shape):
    """Train for two epochs as tutorials do; return the losses."""
    nn, data = torch.nn, torch.utils.data
    torch.manual_seed(0)
    inputs = torch.randn(120, *shape)
    targets = (inputs.flatten(1).sum(1) > 0).long() + (inputs.flatten(1)[:, 0] > 0.5).long()
    train, test = data.random_split(data.TensorDataset(inputs, targets), [100, 20])
    model, found = make_model(nn), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        model.train()
        for x, y in data.DataLoader(train, batch_size=16, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        model.eval()
        with torch.no_grad():
            found += [nn.functional.cross_entropy(model(x), y).item() for x, y in data.DataLoader(test, batch_size=20)]
    return found


def perceptron(nn):
    return nn.Sequential(
        nn.Linear(10, 32),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(32, 32),
        nn.RReLU(),
        nn.AlphaDropout(0.2),
        nn.Linear(32, 3),
    )


def convolutions(nn):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),  # whose gradient, up to rounding, would be 0
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout2d(0.25),
        nn.Conv2d(8, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(32, 3),
    )


@pytest.mark.parametrize("make_model, shape", [(perceptron, (10,)), (convolutions, (1, 8, 8))])
def test_training_scripts_print_the_same_losses(make_model, shape):
    found, expected = (losses(lib, make_model, shape) for lib in (cygrad, torch))
    assert len(found) == 16 and len(set(found)) == 16
    np.testing.assert_allclose(found, expected, 1e-5)
