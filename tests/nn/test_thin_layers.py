"""Each layer that wraps a function computes that function with the layer's settings."""

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn import functional as F


def images(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).cos()


SEQUENCES, IMAGES, VOLUMES = images(2, 4, 6), images(2, 4, 6, 5), images(2, 4, 6, 4, 5)
SAMPLES = torch.full((2, 4, 2), 0.4)
WORDS = torch.tensor([[0, 2, 2], [3, 1, 0]])
ROWS = images(4, 3)

# (layer, its inputs, the function with the same settings)
LAYERS = [
    (nn.BatchNorm2d(4, 1e-3), IMAGES, lambda x: F.batch_norm(x, None, None, training=True, eps=1e-3)),
    (nn.BatchNorm1d(4).eval(), SEQUENCES, lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4))),
    (nn.InstanceNorm2d(4), IMAGES, F.instance_norm),
    (nn.InstanceNorm2d(4), IMAGES[0], lambda x: F.instance_norm(x[None])[0]),
    (nn.LayerNorm([6, 5]), IMAGES, lambda x: F.layer_norm(x, (6, 5))),
    (nn.RMSNorm(5, 0.1), IMAGES, lambda x: F.rms_norm(x, (5,), eps=0.1)),
    (nn.GroupNorm(2, 4), IMAGES, lambda x: F.group_norm(x, 2)),
    (nn.LocalResponseNorm(2, k=2.0), IMAGES, lambda x: F.local_response_norm(x, 2, k=2.0)),
    (nn.Embedding.from_pretrained(ROWS), WORDS, lambda i: F.embedding(i, ROWS)),
    (nn.EmbeddingBag.from_pretrained(ROWS, mode="max"), WORDS, lambda i: F.embedding_bag(i, ROWS, mode="max")),
    (nn.ZeroPad2d(1), IMAGES, lambda x: F.pad(x, (1, 1, 1, 1))),
    (nn.ConstantPad1d((1, 2), 3.0), SEQUENCES, lambda x: F.pad(x, (1, 2), value=3.0)),
    (nn.ReflectionPad3d(1), VOLUMES, lambda x: F.pad(x, (1,) * 6, "reflect")),
    (nn.ReplicationPad2d((1, 2, 0, 1)), IMAGES, lambda x: F.pad(x, (1, 2, 0, 1), "replicate")),
    (nn.CircularPad1d(2), SEQUENCES, lambda x: F.pad(x, (2, 2), "circular")),
    (nn.Upsample(9), SEQUENCES, lambda x: F.interpolate(x, 9)),
    (nn.UpsamplingNearest2d(scale_factor=2), IMAGES, lambda x: F.interpolate(x, scale_factor=2.0)),
    (nn.UpsamplingBilinear2d((7, 3)), IMAGES, lambda x: F.interpolate(x, (7, 3), None, "bilinear", True)),
    (nn.Unfold(2, 1, 1, 2), IMAGES, lambda x: F.unfold(x, 2, 1, 1, 2)),
    (nn.Fold((6, 5), 2, 2), images(2, 12, 12), lambda x: F.fold(x, (6, 5), 2, 2)),
    (nn.PixelShuffle(2), IMAGES, lambda x: F.pixel_shuffle(x, 2)),
    (nn.PixelUnshuffle(2), images(2, 3, 4, 6), lambda x: F.pixel_unshuffle(x, 2)),
    (nn.ChannelShuffle(2), IMAGES, lambda x: F.channel_shuffle(x, 2)),
    (nn.LPPool1d(2, 3, 1), SEQUENCES, lambda x: F.lp_pool1d(x, 2.0, 3, 1)),
    (nn.LPPool2d(2, 3, ceil_mode=True), IMAGES, lambda x: F.lp_pool2d(x, 2.0, 3, None, True)),
    (
        nn.FractionalMaxPool2d(2, 3, _random_samples=SAMPLES),
        IMAGES,
        lambda x: F.fractional_max_pool2d(x, 2, 3, _random_samples=SAMPLES),
    ),
    (nn.CosineSimilarity(2), (IMAGES, IMAGES + 1), lambda a, b: F.cosine_similarity(a, b, 2)),
    (nn.PairwiseDistance(1.0, 0.1, True), (IMAGES, IMAGES + 1), lambda a, b: F.pairwise_distance(a, b, 1.0, 0.1, True)),
    (nn.Unflatten(1, (2, 2)), IMAGES, lambda x: x.unflatten(1, (2, 2))),
]


@pytest.mark.parametrize(("layer", "inputs", "function"), LAYERS, ids=[repr(row[0]) for row in LAYERS])
def test_layer_is_its_function(layer, inputs, function):
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    assert torch.equal(layer(*inputs), function(*inputs))


DROPOUTS = {"Dropout": 1, "Dropout1d": 1, "Dropout2d": 2, "Dropout3d": 3, "AlphaDropout": 1, "FeatureAlphaDropout": 2}


@pytest.mark.parametrize("kind", DROPOUTS)
def test_dropout_draws_in_training_alone(kind):
    layer = getattr(nn, kind)(0.5)
    x = torch.ones(2, 200, *(3,) * DROPOUTS[kind])
    dropped = layer(x)
    assert len(set(dropped.flatten().tolist())) == 2
    by_channel = torch.equal(dropped, dropped.flatten(2)[..., :1].expand(2, 200, x[0, 0].numel()).reshape(x.shape))
    assert by_channel == (kind not in ("Dropout", "AlphaDropout"))
    assert torch.equal(layer.eval()(x), x)


def test_bilinear_is_its_formula():
    layer = nn.Bilinear(2, 3, 4)
    a, b = images(5, 2), images(5, 3)
    expected = torch.einsum("ni,oij,nj->no", a, layer.weight, b) + layer.bias
    assert torch.allclose(layer(a, b), expected)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_undoes_pooling(dims):
    x = {1: SEQUENCES, 2: IMAGES, 3: VOLUMES}[dims]
    largest, places = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)(x)
    back = getattr(nn, f"MaxUnpool{dims}d")(2)(largest, places, output_size=x.shape)
    assert torch.equal(back[back != 0], x[back != 0])
    assert int((back != 0).sum()) == largest.numel()


def test_running_statistics():
    layer = nn.BatchNorm1d(1, momentum=None)
    for batch in ([[1.0], [3.0]], [[5.0], [9.0]]):
        layer(torch.tensor(batch))
    assert layer.num_batches_tracked.item() == 2
    assert layer.running_mean.tolist() == [4.5]
    assert layer.running_var.tolist() == [5.0]
    layer.eval()(torch.ones(2, 1))
    assert layer.num_batches_tracked.item() == 2
    layer.reset_running_stats()
    assert (layer.running_mean.item(), layer.running_var.item(), layer.num_batches_tracked.item()) == (0, 1, 0)


@pytest.mark.parametrize("text", ["BatchNorm1d(4)", "LayerNorm(6)", "GroupNorm(2, 4)", "RMSNorm(6)"])
@pytest.mark.parametrize("order", [1, 2])
def test_parameters_learn_from_data_that_does_not(text, order):
    layer = eval(f"nn.{text}")
    x = SEQUENCES.clone().requires_grad_()
    gradients = []
    for data in (x, SEQUENCES):
        y = layer(data).square().sum()
        gradients.append(torch.autograd.grad(y, list(layer.parameters()), create_graph=order == 2))
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_padding_row_is_not_learnt():
    layer = nn.Embedding(4, 3, padding_idx=-1)
    layer(torch.tensor([0, 3])).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]
    assert layer.weight[3].tolist() == [0.0] * 3


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_cross_map_lrn_by_its_formula(size):
    x = images(2, 5, 3, 2).double().requires_grad_()
    layer = nn.CrossMapLRN2d(size, alpha=0.7, beta=0.6, k=1.5)
    reach = (size + 1) // 2
    for c in range(5):
        near = [i for i in range(5) if abs(i - c) < reach or (i == 0 and c > 0)]
        expected = x[:, c] / (1.5 + 0.7 / size * x[:, near].square().sum(1)) ** 0.6
        assert torch.allclose(layer(x)[:, c], expected)
    assert torch.autograd.gradcheck(layer, (x,))


def test_linear_cross_entropy_is_a_layer_and_a_loss():
    loss = nn.LinearCrossEntropyLoss(6, 5, bias=True)
    target = torch.tensor([0, 3])
    expected = F.cross_entropy(loss.linear(IMAGES[:, 0, 0, :1].expand(2, 6)), target)
    assert torch.equal(loss(IMAGES[:, 0, 0, :1].expand(2, 6), target), expected)
    assert [name for name, _ in loss.named_parameters()] == ["linear.weight", "linear.bias"]


@pytest.mark.parametrize(("layer", "x"), [(nn.Conv1d, SEQUENCES), (nn.Conv2d, IMAGES), (nn.Conv3d, VOLUMES)])
@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_subclasses_of_convolutions_convolve_with_other_weights(layer, x, mode):
    class Doubled(layer):
        def forward(self, input):
            return self._conv_forward(input, self.weight * 2, None)

    doubled = Doubled(4, 3, 3, padding=1, padding_mode=mode)
    plain = layer(4, 3, 3, padding=1, padding_mode=mode, bias=False)
    plain.load_state_dict({"weight": doubled.weight.detach() * 2})
    assert torch.equal(doubled(x), plain(x))
