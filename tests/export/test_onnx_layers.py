"""Each layer of `nn` as an ONNX model, which onnxruntime runs with other batch sizes than it was exported with."""

import pytest
from export.onnx_support import check

import cygrad as torch
from cygrad import nn

pytest.importorskip("onnxruntime", reason="needs cygrad[onnx]")
pytest.importorskip("onnx", reason="needs cygrad[onnx]")

BATCH, BOTH = {0: "batch"}, {0: "first", 1: "second"}
PLANES = {1: (9,), 2: (9, 8), 3: (7, 6, 8)}
LAYERS = {}  # name: (layer, arguments, dimensions that vary, other arguments)


def layer(name, module, *shapes, dims=BATCH, others=None):
    """A layer on random arguments, whose dimension 0 is 2 and then 5 unless `others` are given."""
    others = (
        [tuple(5 if d in dims and d == 0 else n for d, n in enumerate(s)) for s in shapes] if others is None else others
    )
    draw = torch.Generator().manual_seed(3)

    def numbers(shape):
        return torch.randn(*shape, generator=draw)

    LAYERS[name] = module, tuple(map(numbers, shapes)), (dims,) * len(shapes), tuple(map(numbers, others))


def of_dimensions(kind, n):
    return getattr(nn, f"{kind}{n}d")


for n, plane in PLANES.items():
    x = (2, 4, *plane)
    for kind in ("Conv", "ConvTranspose"):
        make = of_dimensions(kind, n)
        layer(f"{kind}{n}d", make(4, 6, 3), x)
        layer(f"{kind}{n}d-options", make(4, 6, 3, stride=2, padding=1, groups=2, dilation=2, bias=False), x)
    layer(f"ConvTranspose{n}d-longer", of_dimensions("ConvTranspose", n)(4, 6, 3, stride=2, output_padding=1), x)
    layer(f"Conv{n}d-same", of_dimensions("Conv", n)(4, 6, 4, padding="same"), x)
    layer(f"Conv{n}d-single", of_dimensions("Conv", n)(4, 6, 3), x[1:], dims={}, others=[x[1:]])
    for mode in ("reflect", "replicate", "circular"):
        layer(f"Conv{n}d-{mode}", of_dimensions("Conv", n)(4, 6, 3, padding=1, padding_mode=mode), x)
    for ceil in (False, True):
        layer(f"MaxPool{n}d-{ceil}", of_dimensions("MaxPool", n)(3, 2, 1, ceil_mode=ceil), x)
        for include in (False, True):
            make = of_dimensions("AvgPool", n)
            layer(f"AvgPool{n}d-{ceil}-{include}", make(3, 2, 1, ceil_mode=ceil, count_include_pad=include), x)
        layer(f"LPPool{n}d-{ceil}", of_dimensions("LPPool", n)(2, 3, 2, ceil_mode=ceil), x)
    layer(f"MaxPool{n}d-indices", of_dimensions("MaxPool", n)(3, 2, 1, return_indices=True), x)
    for size in (1, 3):
        layer(f"AdaptiveAvgPool{n}d-{size}", of_dimensions("AdaptiveAvgPool", n)(size), x)
        layer(f"AdaptiveMaxPool{n}d-{size}", of_dimensions("AdaptiveMaxPool", n)(size), x)
    layer(f"BatchNorm{n}d", of_dimensions("BatchNorm", n)(4), x)
    layer(f"BatchNorm{n}d-plain", of_dimensions("BatchNorm", n)(4, affine=False), x)
    layer(f"BatchNorm{n}d-batch", of_dimensions("BatchNorm", n)(4, track_running_stats=False), x)
    layer(f"InstanceNorm{n}d", of_dimensions("InstanceNorm", n)(4, affine=True), x)
    layer(f"InstanceNorm{n}d-running", of_dimensions("InstanceNorm", n)(4, track_running_stats=True), x)
    for kind in ("Reflection", "Replication", "Zero", "Circular"):
        layer(f"{kind}Pad{n}d", of_dimensions(f"{kind}Pad", n)(2), x)
    layer(f"ConstantPad{n}d", of_dimensions("ConstantPad", n)(2, 1.5), x)
    layer(f"Dropout{n}d", of_dimensions("Dropout", n)(), x)
    smooth = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[n]
    for mode in ("nearest", "nearest-exact", "area", *smooth):
        layer(f"Upsample{n}d-{mode}", nn.Upsample(scale_factor=2, mode=mode), x)
        layer(f"Upsample{n}d-{mode}-1.7", nn.Upsample(scale_factor=1.7, mode=mode), x)
        layer(f"Upsample{n}d-{mode}-size", nn.Upsample(size=[5] * n, mode=mode), x)
        if mode in smooth:
            layer(f"Upsample{n}d-{mode}-corners", nn.Upsample(scale_factor=2, mode=mode, align_corners=True), x)


class Unpooled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pool, self.unpool = of_dimensions("MaxPool", n)(2, return_indices=True), of_dimensions("MaxUnpool", n)(2)

    def forward(self, x):
        return self.unpool(*self.pool(x))


for n, plane in PLANES.items():
    layer(f"MaxUnpool{n}d", Unpooled(n), (2, 4, *plane))

for name in """ReLU ReLU6 RReLU ELU SELU CELU GELU SiLU Mish Hardtanh Hardswish Hardsigmoid Softplus Softsign Softshrink
    Hardshrink Tanhshrink LogSigmoid Sigmoid Tanh LeakyReLU PReLU Identity Dropout AlphaDropout FeatureAlphaDropout
    Flatten""".split():
    layer(name, getattr(nn, name)(), (2, 6))
for name in "Softmin Softmax LogSoftmax GLU".split():
    layer(name, getattr(nn, name)(dim=1), (2, 6))
layer("GELU-tanh", nn.GELU("tanh"), (2, 6))
layer("Threshold", nn.Threshold(0.1, 3.0), (2, 4))
layer("PReLU-4", nn.PReLU(4), (2, 4, 3))
layer("Softmax2d", nn.Softmax2d(), (2, 4, 3, 3))
layer("Linear", nn.Linear(4, 3), (2, 4))
layer("Linear-3", nn.Linear(4, 3, bias=False), (2, 5, 4))
layer("Bilinear", nn.Bilinear(4, 3, 5), (2, 4), (2, 3))
layer("LayerNorm", nn.LayerNorm(4), (2, 3, 4))
layer("LayerNorm-plain", nn.LayerNorm((3, 4), elementwise_affine=False), (2, 3, 4))
layer("LayerNorm-no-bias", nn.LayerNorm(4, bias=False), (2, 3, 4))
layer("GroupNorm", nn.GroupNorm(2, 4), (2, 4, 5, 5))
layer("RMSNorm", nn.RMSNorm(4), (2, 3, 4))
layer("LocalResponseNorm", nn.LocalResponseNorm(3), (2, 6, 5, 5))
layer("LocalResponseNorm-even", nn.LocalResponseNorm(4), (2, 6, 5))
layer("CosineSimilarity", nn.CosineSimilarity(), (2, 4, 5), (2, 4, 5))
layer("PairwiseDistance", nn.PairwiseDistance(), (2, 4), (2, 4))
layer("PairwiseDistance-1", nn.PairwiseDistance(1, keepdim=True), (2, 4), (2, 4))
layer("PixelShuffle", nn.PixelShuffle(2), (2, 8, 3, 3))
layer("PixelShuffle-3", nn.PixelShuffle(2), (8, 3, 3), dims={}, others=[(8, 3, 3)])
layer("PixelUnshuffle", nn.PixelUnshuffle(2), (2, 3, 4, 6))
layer("ChannelShuffle", nn.ChannelShuffle(2), (2, 4, 3, 3))
layer("Unflatten", nn.Unflatten(1, (2, -1)), (2, 6, 3))
layer("Unfold", nn.Unfold((2, 3), padding=1, stride=2), (2, 3, 6, 7))
layer("Fold", nn.Fold((5, 6), (2, 3), padding=1, stride=2), (2, 18, 9))
layer("UpsamplingBilinear2d", nn.UpsamplingBilinear2d(scale_factor=2), (2, 3, 4, 4))
layer("UpsamplingNearest2d", nn.UpsamplingNearest2d(scale_factor=2), (2, 3, 4, 4))

for kind in (nn.LSTM, nn.GRU, nn.RNN):
    for first in (False, True):
        for both in (False, True):
            module = kind(3, 4, 2, batch_first=first, bidirectional=both)
            layer(f"{kind.__name__}-{first}-{both}", module, (2, 5, 3), dims=BOTH, others=[(4, 6, 3)])
layer("RNN-relu", nn.RNN(3, 4, nonlinearity="relu", bias=False), (2, 5, 3), dims=BOTH, others=[(4, 6, 3)])
layer("LSTM-single", nn.LSTM(3, 4), (5, 3), dims={}, others=[(5, 3)])
for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
    layer(kind.__name__, kind(3, 4), (2, 3))


class Attention(nn.Module):
    """Attention to itself, or to a second argument."""

    def __init__(self, **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, **options)

    def forward(self, query, key=None):
        key = query if key is None else key
        return self.inner(query, key, key)


layer("MultiheadAttention", Attention(), (2, 5, 4), dims=BOTH, others=[(3, 4, 4)])
layer("MultiheadAttention-batch", Attention(batch_first=True, bias=False), (2, 5, 4), dims=BOTH, others=[(3, 4, 4)])
layer(
    "MultiheadAttention-kdim",
    Attention(kdim=3, vdim=3),
    (2, 5, 4),
    (6, 5, 3),
    dims={1: "b"},
    others=[(2, 3, 4), (6, 3, 3)],
)
layer(
    "MultiheadAttention-bias", Attention(add_bias_kv=True, add_zero_attn=True), (2, 5, 4), dims=BOTH, others=[(3, 4, 4)]
)
layer("MultiheadAttention-single", Attention(), (5, 4), dims={0: "n"}, others=[(3, 4)])
for first in (False, True):
    module = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=first)
    layer(f"TransformerEncoderLayer-{first}", module, (2, 5, 4), dims=BOTH, others=[(3, 6, 4)])
    module = nn.TransformerDecoderLayer(4, 2, 8, norm_first=first, activation="gelu")
    layer(
        f"TransformerDecoderLayer-{first}", module, (2, 5, 4), (3, 5, 4), dims={1: "b"}, others=[(2, 3, 4), (3, 3, 4)]
    )
decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)
layer("TransformerDecoder", decoder, (2, 5, 4), (3, 5, 4), dims={1: "b"}, others=[(2, 3, 4), (3, 3, 4)])
layer("SyncBatchNorm", nn.SyncBatchNorm(4), (2, 4, 5))
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, enable_nested_tensor=False)
layer("TransformerEncoder", encoder, (2, 5, 4), dims=BOTH, others=[(3, 6, 4)])
layer("Transformer", nn.Transformer(4, 2, 1, 1, 8), (2, 5, 4), (3, 5, 4), dims={1: "b"}, others=[(2, 3, 4), (3, 3, 4)])


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    module, args, dims, others = LAYERS[name]
    check(module.eval(), args, dims, others)


@pytest.mark.parametrize("padding_idx", [None, 2])
def test_embedding(padding_idx):
    at = torch.tensor([[1, 2, 3, 2], [0, 9, 2, 2]]), torch.tensor([[2, 2, 2, 2], [4, 5, 6, 7], [2, 1, 1, 2]])
    check(nn.Embedding(10, 3, padding_idx=padding_idx), (at[0],), (BATCH,), (at[1],))
    for mode in ("sum", "mean", "max"):
        check(nn.EmbeddingBag(10, 3, mode=mode, padding_idx=padding_idx), (at[0],), (BATCH,), (at[1],))


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("last", [False, True])
def test_bags_of_offsets(mode, last):
    module = nn.EmbeddingBag(10, 3, mode=mode, include_last_offset=last)
    end = [[8], [6]] if last else [[], []]
    args = torch.arange(8), torch.tensor([0, 3, 3, *end[0]])
    others = torch.arange(6), torch.tensor([0, 2, 3, 5, *end[1]])
    check(module, args, ({0: "numbers"}, {0: "bags"}), others)


def test_weights_of_the_numbers_in_bags():
    module = nn.EmbeddingBag(10, 3, mode="sum")

    def weighted(x, w):
        return module(x, per_sample_weights=w)

    check(weighted, (torch.tensor([[1, 2], [3, 4]]), torch.rand(2, 2)), (BATCH, BATCH))


def test_states_of_recurrent_layers_as_arguments():
    module = nn.LSTM(3, 4)
    args = [(torch.randn(2, n, 3), (torch.randn(1, n, 4), torch.randn(1, n, 4))) for n in (5, 3)]
    dims = {1: "batch"}
    check(module, args[0], (dims, (dims, dims)), args[1])


class Masked(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True, **options)

    def forward(self, x, padding=None, mask=None):
        return self.inner(x, x, x, key_padding_mask=padding, attn_mask=mask, average_attn_weights=False)


def test_masks_of_attention():
    x = [torch.randn(n, 5, 4) for n in (2, 3)]
    hidden = [torch.tensor([[False] * 3 + [True] * 2] * n) for n in (2, 3)]
    check(Masked(), (x[0], hidden[0]), (BATCH, BATCH), (x[1], hidden[1]))
    check(
        Masked(),
        (x[0], None, torch.ones(5, 5).triu(1).bool()),
        (BATCH, None, None),
        (x[1], None, torch.ones(5, 5).triu(1).bool()),
    )
    check(Masked(add_zero_attn=True), (x[0], None, torch.randn(4, 5, 5)))
    check(Masked(add_bias_kv=True), (x[0], hidden[0], torch.eye(5).bool()))


@pytest.mark.parametrize("parametrize", ["weight_norm", "spectral_norm"])
def test_weights_that_are_computed(parametrize):
    module = getattr(nn.utils.parametrizations, parametrize)(nn.Linear(3, 4)).eval()
    check(module, (torch.randn(2, 3),), (BATCH,), (torch.randn(5, 3),))


def test_dtypes():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4))
    check(module.double(), (torch.randn(2, 3).double(),), (BATCH,), (torch.randn(5, 3).double(),))
    program = torch.onnx.export(module.half(), torch.randn(2, 3).half())
    torch.testing.assert_close(
        program(torch.ones(2, 3).half())[0], module(torch.ones(2, 3).half()), rtol=1e-2, atol=1e-2
    )
    program = torch.onnx.export(module.bfloat16(), torch.randn(2, 3).bfloat16())
    assert {each.data_type for each in program.model_proto.graph.initializer} == {16}


@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python")
@pytest.mark.parametrize("module", [nn.LSTM(3, 4, proj_size=2), nn.LSTM(3, 4)], ids=["proj_size", "packed sequences"])
def test_recurrent_layers_without_a_form(module, request):
    def run(x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]))
        return module(x if module.proj_size else packed)[0]

    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match=request.node.callspec.id):
        torch.onnx.export(run, torch.ones(3, 2, 3))


def test_layers_without_a_test():
    known = {name.partition("-")[0] for name in LAYERS} | {"Embedding", "EmbeddingBag"}
    layers = {
        name
        for name, kind in vars(nn).items()
        if isinstance(kind, type) and issubclass(kind, nn.Module) and "Loss" not in name
    }
    untested = """
        Container CrossMapLRN2d FractionalMaxPool2d FractionalMaxPool3d
        LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d
        LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear
        Module ModuleDict ModuleList ParameterDict ParameterList RNNBase RNNCellBase Sequential
        DataParallel Upsample
    """.split()
    assert layers - known <= set(untested), layers - known - set(untested)
