"""Layers that wrap functions match PyTorch's: results, gradients, repr and state, in training and evaluation mode."""

import inspect
import warnings

import numpy as np
import pytest

import cygrad
from helpers import first_line

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def places(*shape, below):
    return np.random.default_rng(sum(shape)).integers(0, below, shape)


SEQUENCES, IMAGES, VOLUMES = numbers(2, 4, 6), numbers(2, 4, 6, 5), numbers(2, 4, 6, 4, 5)
SIZES = {"1": SEQUENCES, "2": IMAGES, "3": VOLUMES}

# (constructor, inputs); a layer whose name ends in 1d, 2d, 3d is run on SIZES if no inputs are given.
LAYERS = [
    ("BatchNorm1d(4)", numbers(5, 4)),
    ("BatchNorm1d(4, momentum=None)",),
    ("BatchNorm2d(4, momentum=0.3, eps=1e-3, bias=False)",),
    ("BatchNorm2d(4, affine=False, track_running_stats=False)",),
    ("BatchNorm3d(4)",),
    ("InstanceNorm1d(4)",),
    ("InstanceNorm1d(4, affine=True)", numbers(4, 6)),
    ("InstanceNorm2d(4, affine=True, track_running_stats=True)",),
    ("InstanceNorm2d(3)",),
    ("InstanceNorm3d(4, track_running_stats=True, momentum=None)",),
    ("LayerNorm(5)", IMAGES),
    ("LayerNorm([6, 5], eps=1e-3, bias=False)", IMAGES),
    ("LayerNorm((5,), elementwise_affine=False)", IMAGES),
    ("RMSNorm(5)", IMAGES),
    ("RMSNorm([6, 5], eps=1e-3, elementwise_affine=False)", IMAGES),
    ("GroupNorm(2, 4)", IMAGES),
    ("GroupNorm(4, 4, bias=False)", SEQUENCES),
    ("GroupNorm(1, 4, affine=False)", SEQUENCES),
    ("LocalResponseNorm(2)", IMAGES),
    ("LocalResponseNorm(3, alpha=0.1, beta=0.5, k=2.0)", SEQUENCES),
    ("LinearCrossEntropyLoss(5, 7)", numbers(4, 5), places(4, below=7)),
    ("LinearCrossEntropyLoss(5, 7, bias=True, reduction='none', ignore_index=2)", numbers(4, 5), places(4, below=7)),
    ("LinearCrossEntropyLoss(5, 7, weight=torch.arange(7) / 7.0, reduction='sum')", numbers(4, 5), places(4, below=7)),
    ("LinearCrossEntropyLoss(5, 7, label_smoothing=0.1)", numbers(5), np.array(3)),
    (
        "LinearCrossEntropyLoss(5, 7, out_features=(2, 3), bias=True, reduction='sum')",
        *(numbers(4, 5), places(4, 2, 3, below=7)),
    ),
    ("LinearCrossEntropyLoss(5, 7, out_features=(2,))", numbers(4, 5), np.abs(numbers(4, 7, 2))),
    ("Embedding(7, 3)", places(4, 2, below=7)),
    ("Embedding(7, 3, padding_idx=-2)", places(4, 2, below=7)),
    ("Embedding(7, 3, 0, 1.0, 1.0, True)", places(4, 2, below=7)),
    ("Embedding.from_pretrained(torch.ones(7, 3))", places(4, 2, below=7)),
    ("Embedding.from_pretrained(torch.ones(7, 3), False, 2)", places(4, 2, below=7)),
    ("EmbeddingBag(7, 3)", places(4, 2, below=7)),
    ("EmbeddingBag(7, 3, 1.0, 1.0, mode='sum', padding_idx=-4)", places(8, below=7), np.array([0, 3, 3])),
    ("EmbeddingBag(7, 3, mode='max', include_last_offset=True)", places(8, below=7), np.array([0, 3, 8])),
    ("EmbeddingBag(7, 3, mode='sum')", places(4, 2, below=7), None, numbers(4, 2)),
    ("EmbeddingBag.from_pretrained(torch.ones(7, 3), mode='max')", places(4, 2, below=7)),
    ("EmbeddingBag.from_pretrained(torch.ones(7, 3), False, padding_idx=1)", places(4, 2, below=7)),
    *((f"{kind}({p})", IMAGES) for kind in ("Dropout", "AlphaDropout") for p in (0.0, 1.0)),
    *((f"Dropout{d}d({p})",) for d in (1, 2, 3) for p in (0.0, 1.0)),
    ("FeatureAlphaDropout(0.0, True)", IMAGES),
    ("FeatureAlphaDropout(1.0)", IMAGES),
    ("Bilinear(3, 4, 5)", numbers(2, 3), numbers(2, 4)),
    ("Bilinear(3, 4, 5, bias=False)", numbers(6, 2, 3), numbers(6, 2, 4)),
    ("Identity(3)", IMAGES),
    *((f"{kind}Pad{d}d(1)",) for kind in ("Zero", "Reflection", "Replication", "Circular") for d in (1, 2, 3)),
    ("ConstantPad1d(2, 3)",),
    ("ConstantPad2d([1, 2, 0, -1], 2.5)",),
    ("ConstantPad3d((1, 2, 0, 1, 2, 1), -1.0)",),
    ("ReflectionPad2d((1, 2, 0, 3))", IMAGES[0]),
    ("CircularPad2d((1, 2, 0, 3))", IMAGES[0]),
    ("Upsample(9)", SEQUENCES),
    ("Upsample((9, 4), mode='bilinear')", IMAGES),
    ("Upsample(scale_factor=(2, 1.5), mode='bicubic', align_corners=True)", IMAGES),
    ("Upsample(scale_factor=1.7, mode='trilinear', recompute_scale_factor=True)", VOLUMES),
    ("UpsamplingNearest2d((4, 9))",),
    ("UpsamplingNearest2d(scale_factor=2)",),
    ("UpsamplingBilinear2d(scale_factor=(2, 3))",),
    ("Unfold((3, 2), padding=1, stride=2)", IMAGES),
    ("Fold((6, 5), (3, 2), dilation=2)", numbers(2, 12, 6)),
    ("PixelShuffle(2)", IMAGES),
    ("PixelUnshuffle(2)", numbers(2, 3, 4, 6)),
    ("ChannelShuffle(2)", IMAGES),
    ("LPPool1d(2, 3)",),
    ("LPPool2d(1.5, (2, 3), stride=1, ceil_mode=True)", np.abs(IMAGES)),
    ("LPPool3d(3, 2)", np.abs(VOLUMES)),
    ("FractionalMaxPool2d(2, output_size=3, _random_samples=torch.full((2, 4, 2), 0.4).double())",),
    ("FractionalMaxPool2d((2, 1), output_ratio=0.5, _random_samples=torch.full((2, 4, 2), 0.4).double())",),
    ("FractionalMaxPool3d(2, (3, 2, 2), None, True, torch.full((2, 4, 3), 0.4).double())",),
    ("MaxUnpool1d(2)", numbers(1, 1, 2), np.array([[[1, 2]]])),
    ("MaxUnpool2d(2, 1, padding=0)", numbers(1, 1, 1, 2), np.array([[[[1, 2]]]])),
    ("MaxUnpool3d((1, 2, 1))", numbers(1, 1, 1, 1, 2), np.array([[[[[1, 2]]]]])),
    ("CosineSimilarity(dim=-1, eps=1e-3)", numbers(3, 4), numbers(5, 3, 4)),
    ("PairwiseDistance()", numbers(3, 4), numbers(5, 3, 4)),
    ("PairwiseDistance(1.0, 1e-3, True)", numbers(3, 4), numbers(3, 4)),
    ("Unflatten(1, (2, -1))", IMAGES),
    ("Unflatten(-1, [5, 1])", IMAGES),
    ("Flatten()", IMAGES),
]


def made(library, text):
    return eval(f"nn.{text}", {"nn": library.nn, "torch": library})


def default_input(text):
    return SIZES[text.partition("d(")[0][-1]]


def run(library, layer, arrays, of_inputs=True):
    """Return the results of one call, then all gradients."""
    given = [None if a is None else library.from_numpy(a.copy()) for a in arrays]
    leaves = [x.requires_grad_(of_inputs) for x in given if x is not None and x.is_floating_point()]
    layer.zero_grad()
    # In-place layers cannot modify leaves.
    results = layer(*(x * 1 if x is not None and x.is_floating_point() else x for x in given))
    results = results if isinstance(results, tuple) else (results,)
    if results[0].requires_grad:
        weights = library.from_numpy(np.random.default_rng(9).standard_normal(tuple(results[0].shape)))
        (results[0] * weights).sum().backward()
    gradients = [x.grad for x in (*leaves, *layer.parameters())]
    return [None if x is None else x.detach().numpy() for x in (*results, *gradients)]


def close(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, 1e-9, 1e-9)


@pytest.mark.parametrize("row", LAYERS, ids=lambda row: row[0])
@pytest.mark.filterwarnings("ignore:input's size at dim")
@pytest.mark.filterwarnings("ignore:dropout2d. Received a 3-D input")
def test_layer(row):
    text, *arrays = row
    arrays = arrays or [default_input(text)]
    ours, theirs = made(cygrad, text).double(), made(torch, text).double()
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: cygrad.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    for _ in range(2):
        close(run(cygrad, ours, arrays), run(torch, theirs, arrays))
    close(run(cygrad, ours.eval(), arrays), run(torch, theirs.eval(), arrays))
    close(run(cygrad, ours.train(), arrays, False), run(torch, theirs.train(), arrays, False))
    expected = theirs.state_dict()
    found = ours.state_dict()
    assert list(found) == list(expected)
    close([v.numpy() for v in found.values()], [v.numpy() for v in expected.values()])
    assert dict(found._metadata) == dict(expected._metadata)
    assert [name for name, _ in ours.named_buffers()] == [name for name, _ in theirs.named_buffers()]
    assert [p.requires_grad for p in ours.parameters()] == [p.requires_grad for p in theirs.parameters()]
    public = [{k for k in vars(layer) if k[0] != "_"} for layer in (ours, theirs)]
    assert public[0] == public[1]


@pytest.mark.parametrize("name", sorted({row[0].partition("(")[0] for row in LAYERS}))
def test_signatures(name):
    name, _, constructor = name.partition(".")
    for method in (constructor,) if constructor else ("__init__", "forward"):
        found, expected = (inspect.signature(getattr(getattr(n, name), method)) for n in (cygrad.nn, torch.nn))
        assert [(p.name, p.kind, p.default) for p in found.parameters.values()] == [
            (p.name, p.kind, p.default) for p in expected.parameters.values()
        ]


FIRST = ["Bilinear(9, 30, 20)", "Embedding(30, 50, 2)", "EmbeddingBag(30, 50)", "BatchNorm2d(4)", "LayerNorm((4, 5))"]


@pytest.mark.parametrize("text", FIRST)
def test_first_parameters_have_pytorchs_distribution(text):
    ours, theirs = made(cygrad, text), made(torch, text)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert str(a.dtype) == str(b.dtype)
        assert a.detach().mean().item() == pytest.approx(b.detach().mean().item(), abs=0.2)
        assert a.detach().std().item() == pytest.approx(b.detach().std().item(), abs=0.15)


@pytest.mark.parametrize("version", [None, 1, 2])
def test_old_state_without_a_count(version):
    texts = []
    for library in (cygrad, torch):
        layer = library.nn.Sequential(library.nn.BatchNorm1d(2))
        state = layer.state_dict()
        del state["0.num_batches_tracked"]
        state._metadata["0"] = {} if version is None else {"version": version}
        try:
            texts.append(str(layer.load_state_dict(state)))
        except RuntimeError as error:
            texts.append(first_line(error))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "text",
    [
        "BatchNorm1d(3)(torch.ones(2, 3, 4, 5))",
        "BatchNorm2d(3)(torch.ones(2, 3))",
        "BatchNorm3d(3)(torch.ones(2, 3))",
        "BatchNorm1d(3)(torch.ones(1, 3))",
        "InstanceNorm1d(3)(torch.ones(3))",
        "InstanceNorm2d(3, affine=True)(torch.ones(4, 3, 3))",
        "InstanceNorm2d(3, affine=True)(torch.ones(2, 4, 3, 3))",
        "GroupNorm(2, 5)",
        "Embedding(3, 4, padding_idx=3)",
        "Embedding(3, 4, padding_idx=-4)",
        "Embedding(3, 4, _weight=torch.ones(2, 2))",
        "Embedding.from_pretrained(torch.ones(2))",
        "EmbeddingBag(3, 4, padding_idx=4)",
        "EmbeddingBag.from_pretrained(torch.ones(2))",
        "Dropout2d(2)",
        "Bilinear(0, 3, 4)",
        "CircularPad2d(1)(torch.ones(4))",
        "FractionalMaxPool2d(2)",
        "FractionalMaxPool3d(2, 3, 0.5)",
        "FractionalMaxPool3d(2, output_ratio=1.5)",
        "Fold(4, 2)(torch.ones(3, 4))",
        "Fold(4, 2)(torch.ones(1, 4, 5))",
        "Fold(4, 2)(torch.ones(4, 5))",
        "Unflatten(1, 2)",
        "Unflatten(1, (2, 'a'))",
    ],
)
def test_errors(text):
    told = []
    for library in (cygrad, torch):
        with pytest.raises(Exception) as found:
            made(library, text)
        told.append((found.type, first_line(found.value)))
    assert told[0] == told[1]


def test_warning_about_channels():
    told = []
    for library in (cygrad, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.nn.InstanceNorm1d(3)(library.ones(2, 4, 5))
        told.append([(w.category, str(w.message)) for w in caught])
    assert told[0] == told[1] and told[0]


@pytest.mark.parametrize("text", ["1", "2, 0.5, 0.6, 1.3", "3, alpha=0.7", "4, 0.3, k=2.0", "5, 1.0, 0.5", "9, 0.2"])
def test_cross_map_lrn(text):
    """PyTorch's gradient does not match its formula, so only results are compared."""
    ours, theirs = (eval(f"nn.CrossMapLRN2d({text})", {"nn": library.nn}) for library in (cygrad, torch))
    assert repr(ours) == repr(theirs)
    for channels in (1, 2, 6):
        x = numbers(2, channels, 3, 2)
        close([ours(cygrad.from_numpy(x)).numpy()], [theirs(torch.from_numpy(x)).numpy()])
    assert inspect.signature(cygrad.nn.CrossMapLRN2d).parameters.keys() == {"size", "alpha", "beta", "k"}


@pytest.mark.parametrize(
    "text",
    [
        "CrossMapLRN2d(3)(torch.ones(2, 3, 4))",
        "LinearCrossEntropyLoss(3, 4, weight=torch.ones(3))",
        "LinearCrossEntropyLoss(3, 4, label_smoothing=2)",
        "LinearCrossEntropyLoss(3, 4)(torch.ones(2, 5), torch.ones(2, dtype=torch.int64))",
        "LinearCrossEntropyLoss(3, 4)(torch.ones(2, 2, 3), torch.ones(2, dtype=torch.int64))",
        "LinearCrossEntropyLoss(3, 4, out_features=(2,))(torch.ones(3), torch.ones(2, dtype=torch.int64))",
        "LinearCrossEntropyLoss(3, 4, ignore_index=1)(torch.ones(2, 3), torch.ones(2, 4))",
        "functional.linear_cross_entropy(torch.ones(2, 3), torch.ones(3), torch.ones(2, dtype=torch.int64))",
        "LinearCrossEntropyOptions(acc_policy='x')",
        "LinearCrossEntropyOptions(chunking_method='x')",
        "LinearCrossEntropyOptions(chunking_method='aspect_ratio:0')",
        "LinearCrossEntropyOptions(batch_chunk_size=0)",
    ],
)
def test_errors_of_new_layers(text):
    texts = []
    for library in (cygrad, torch):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            made(library, text)
        texts.append((isinstance(caught.value, ValueError), first_line(caught.value)))
    assert texts[0] == texts[1]


def test_options_of_linear_cross_entropy():
    losses = []
    for library in (cygrad, torch):
        options = library.nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None)
        loss = library.nn.LinearCrossEntropyLoss(5, 7, options=options)
        loss.linear.weight.data = library.from_numpy(numbers(7, 5))
        x = library.from_numpy(numbers(4, 5)).requires_grad_()
        out = loss(x, library.from_numpy(places(4, below=7)))
        out.backward()
        losses.append([out.detach().numpy(), x.grad.numpy(), loss.linear.weight.grad.numpy()])
    close(*losses)
