"""Attention and transformers match PyTorch's: results, gradients, states, reprs, errors."""

import importlib
import inspect

import numpy as np
import pytest

import cygrad
from helpers import first_line

torch = pytest.importorskip("torch")
torch_bias = pytest.importorskip("torch.nn.attention.bias")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:Support for mismatched"),
]


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


X, MEMORY = numbers(4, 2, 6), numbers(5, 2, 6)
CAUSAL = np.triu(np.full((4, 4), -np.inf), 1)
PADDING = np.array([[False] * 5, [False, False, True, True, True]])
MASK = np.zeros((4, 5), bool)
MASK[0, 1:] = MASK[2, 0] = True
HEADS = numbers(4, 4, 5)

# (constructor, inputs, other arguments)
CALLS = [
    ("MultiheadAttention(6, 2)", (X, MEMORY, MEMORY), {}),
    ("MultiheadAttention(6, 2)", (X, X, X), {"need_weights": False}),
    ("MultiheadAttention(6, 3, bias=False)", (X, MEMORY, MEMORY), {"average_attn_weights": False}),
    ("MultiheadAttention(6, 2, batch_first=True)", (X, X, X), {"attn_mask": CAUSAL[:2, :2]}),
    ("MultiheadAttention(6, 2, kdim=3, vdim=5)", (X, numbers(5, 2, 3), numbers(5, 2, 5)), {"attn_mask": MASK}),
    ("MultiheadAttention(6, 2, add_bias_kv=True)", (X, MEMORY, MEMORY), {"key_padding_mask": PADDING}),
    ("MultiheadAttention(6, 2, add_zero_attn=True)", (X, MEMORY, MEMORY), {"attn_mask": HEADS}),
    (
        "MultiheadAttention(6, 2, add_zero_attn=True, add_bias_kv=True)",
        (X, MEMORY, MEMORY),
        {"attn_mask": MASK, "key_padding_mask": PADDING, "need_weights": False},
    ),
    ("MultiheadAttention(6, 2)", (X, X, X), {"attn_mask": CAUSAL, "is_causal": True, "need_weights": False}),
    ("MultiheadAttention(6, 2)", (X, X, X), {"attn_mask": CAUSAL, "is_causal": True}),
    ("MultiheadAttention(6, 2)", (X[:, 0], MEMORY[:, 0], MEMORY[:, 1]), {"key_padding_mask": PADDING[1]}),
    ("MultiheadAttention(6, 2, batch_first=True)", (X[:, 0], X[:, 0], X[:, 0]), {"need_weights": False}),
    ("MultiheadAttention(6, 2)", (X[:, :0], MEMORY[:, :0], MEMORY[:, :0]), {}),
    ("TransformerEncoderLayer(6, 2, 8)", (X,), {}),
    ("TransformerEncoderLayer(6, 2, 8, activation='gelu', norm_first=True)", (X,), {"src_mask": CAUSAL}),
    ("TransformerEncoderLayer(6, 2, 8, activation=torch.tanh, bias=False)", (X[:, 0],), {}),
    (
        "TransformerEncoderLayer(6, 2, 8, 0.3, nn.GELU(), 1e-3, True)",
        (MEMORY.swapaxes(0, 1),),
        {"src_key_padding_mask": PADDING},
    ),
    ("TransformerDecoderLayer(6, 2, 8)", (X, MEMORY), {}),
    (
        "TransformerDecoderLayer(6, 2, 8, norm_first=True, batch_first=True)",
        (X.swapaxes(0, 1), MEMORY.swapaxes(0, 1)),
        {"tgt_mask": CAUSAL, "memory_key_padding_mask": PADDING, "tgt_is_causal": True},
    ),
    ("TransformerDecoderLayer(6, 2, 8, bias=False)", (X, MEMORY), {"memory_mask": MASK}),
    ("TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2)", (X,), {"mask": CAUSAL}),
    (
        "TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2, nn.LayerNorm(6))",
        (MEMORY,),
        {"src_key_padding_mask": PADDING},
    ),
    ("TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 2, nn.LayerNorm(6))", (X, MEMORY), {"tgt_mask": CAUSAL}),
    ("Transformer(6, 2, 1, 2, 8)", (MEMORY, X), {"tgt_mask": CAUSAL, "src_key_padding_mask": PADDING}),
    ("Transformer(6, 2, 1, 1, 8, activation='gelu', norm_first=True, bias=False)", (MEMORY[:, 0], X[:, 1]), {}),
]


def made(library, text):
    return eval(f"nn.{text}", {"nn": library.nn, "torch": library, "x": library.zeros(5, 2, 6)})


def run(library, layer, arrays, named):
    """Return results, gradients, and second-order gradients."""
    known, inputs = {}, []
    for array in arrays:
        if id(array) not in known:
            known[id(array)] = library.from_numpy(array.copy()).requires_grad_()
        inputs.append(known[id(array)])
    named = {k: library.from_numpy(v.copy()) if isinstance(v, np.ndarray) else v for k, v in named.items()}
    results = layer(*inputs, **named)
    results = [r for r in (results if isinstance(results, tuple) else (results,)) if r is not None]
    weights = [library.from_numpy(numbers(*r.shape)) for r in results]
    leaves = [*known.values(), *layer.parameters()]
    first = library.autograd.grad(sum((r * w).sum() for r, w in zip(results, weights)), leaves, create_graph=True)
    second = library.autograd.grad(sum((g * g).sum() for g in first), leaves, materialize_grads=True)
    return [t.detach().numpy() for t in (*results, *first, *second)]


@pytest.mark.parametrize(("text", "arrays", "named"), CALLS)
def test_layer(text, arrays, named):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the others have no second derivative
        ours, theirs = (made(library, text).double().eval() for library in (cygrad, torch))
        assert repr(ours) == repr(theirs)
        ours.load_state_dict({k: cygrad.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
        for found, expected in zip(run(cygrad, ours, arrays, named), run(torch, theirs, arrays, named), strict=True):
            assert found.shape == expected.shape and found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-7, 1e-7)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    public = [{k for k in vars(layer) if k[0] != "_"} for layer in (ours, theirs)]
    assert public[0] == public[1]


ENCODERS = [  # (layer arguments, encoder arguments, padding, mask, whether in evaluation mode)
    ("", "", "end", False, True),
    ("activation='gelu'", "norm=nn.LayerNorm(6)", "float", False, True),
    ("norm_first=True", "", "end", False, True),
    ("bias=False", "", "end", False, True),
    ("", "enable_nested_tensor=False", "end", False, True),
    ("", "", "start", False, True),
    ("", "", "end", True, True),
    ("", "", "end", False, False),
]


@pytest.mark.parametrize(("layer", "encoder", "padded", "masked", "evaluated"), ENCODERS)
def test_padding_gives_zeros_where_pytorch_leaves_it_out(layer, encoder, padded, masked, evaluated):
    text = f"TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True, {layer}), 2, {encoder})"
    ours, theirs = (made(library, text).train(not evaluated) for library in (cygrad, torch))
    assert ours.use_nested_tensor == theirs.use_nested_tensor
    ours.load_state_dict({k: cygrad.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    padding = {"end": PADDING, "start": PADDING[:, ::-1].copy()}.get(padded)
    padding = np.where(PADDING, np.float32(-np.inf), np.float32(0)) if padding is None else padding
    results = []
    for library, model in ((cygrad, ours), (torch, theirs)):
        mask = library.zeros(5, 5) if masked else None
        with library.no_grad():
            x = library.from_numpy(MEMORY.swapaxes(0, 1).astype(np.float32).copy())
            results.append(model(x, mask, src_key_padding_mask=library.from_numpy(padding)).numpy())
    np.testing.assert_allclose(*results, 1e-4, 1e-5)


@pytest.mark.parametrize("kind", sorted({row[0].partition("(")[0] for row in CALLS}))
def test_signatures(kind):
    names = ("__init__", "forward", *(["merge_masks"] if kind == "MultiheadAttention" else []))
    for name in names:
        found, expected = (inspect.signature(getattr(getattr(n, kind), name)) for n in (cygrad.nn, torch.nn))
        for a, b in zip(found.parameters.values(), expected.parameters.values(), strict=True):
            assert (a.name, a.kind) == (b.name, b.kind)
            assert a.default == b.default or callable(a.default)


FIRST = ["MultiheadAttention(64, 4, kdim=32, add_bias_kv=True)", "Transformer(64, 4, 1, 1, 128)"]


@pytest.mark.parametrize("text", [*FIRST, "MultiheadAttention(64, 4)", "TransformerEncoderLayer(64, 4, 128)"])
def test_first_parameters_have_pytorchs_distribution(text):
    ours, theirs = made(cygrad, text), made(torch, text)
    for (name, a), (other, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == other and tuple(a.shape) == tuple(b.shape)
        assert a.detach().std().item() == pytest.approx(b.detach().std().item(), rel=0.4)
        if a.ndim == 2:  # uniform; the others are 64 normal numbers
            assert a.detach().abs().max().item() == pytest.approx(b.detach().abs().max().item(), rel=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "MultiheadAttention(8, 3)",
        "MultiheadAttention(0, 3)",
        "MultiheadAttention(6, 2)(x, x, x, is_causal=True)",
        "MultiheadAttention(6, 2)(x[0, 0], x, x)",
        "MultiheadAttention(6, 2)(x, x, x[0])",
        "MultiheadAttention(6, 2)(x, x, x, key_padding_mask=torch.zeros(2, 5).long())",
        "MultiheadAttention(6, 2)(x, x, x, key_padding_mask=torch.zeros(2, 4))",
        "MultiheadAttention(6, 2)(x, x, x, key_padding_mask=torch.zeros(1, 5))",
        "MultiheadAttention(6, 2, kdim=3)(x, torch.zeros(5, 2, 3), x[:4])",
        "MultiheadAttention(6, 2, kdim=3)(x[:, 0], torch.zeros(5, 3), x[:4, 0])",
        "MultiheadAttention(6, 2)(x, x, x[:4])",
        "TransformerEncoderLayer(6, 2, activation='foo')",
        "TransformerEncoderLayer(6, 2)(x, is_causal=True)",
        "TransformerEncoderLayer(6, 2)(torch.zeros(5, 2, 7))",
        "TransformerEncoderLayer(6, 2)(torch.zeros(2, 2, 2, 6))",
        "TransformerEncoder(nn.TransformerEncoderLayer(6, 2), 1)(x, mask=torch.zeros(5, 5).long())",
        "TransformerEncoder(nn.TransformerEncoderLayer(6, 2), 1)(x, mask=torch.zeros(4, 5).bool())",
        "TransformerDecoderLayer(6, 2)(x, x, tgt_is_causal=True)",
        "Transformer(6, 2, 1, 1, 8)(x, x[:, :1])",
        "Transformer(6, 2, 1, 1, 8)(x, torch.zeros(3, 2, 7))",
        "Transformer(6, 2, 1, 1, 8)(x[:, 0], x)",
    ],
)
def test_errors(text):
    told = []
    for library in (cygrad, torch):
        with pytest.raises(Exception) as found:
            made(library, text)
        told.append((found.type, first_line(found.value)))
    assert told[0] == told[1]


def test_masks():
    found, expected = (n.nn.Transformer.generate_square_subsequent_mask(3, dtype=n.float64) for n in (cygrad, torch))
    assert repr(found) == repr(expected)
    for text in (
        "None, None",
        "None, x[0, :, :5]",
        "torch.ones(2, 2), x[0, 0, :2].expand(5, 2)",
        "torch.zeros(10, 2, 2), None",
    ):
        told = [made(n, f"MultiheadAttention(6, 2).merge_masks({text}, x)") for n in (cygrad, torch)]
        assert repr(told[0]) == repr(told[1])


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (5, 2)])
@pytest.mark.parametrize("corner", ["causal_upper_left", "causal_lower_right"])
@pytest.mark.filterwarnings("ignore:Lower right causal bias will produce NaNs")
def test_causal_bias(corner, sizes):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 3, size, 4)) for size in (sizes[0], sizes[1], sizes[1])]
    results = []
    for library, bias in ((cygrad, importlib.import_module("cygrad.nn.attention.bias")), (torch, torch_bias)):
        given = [library.tensor(array, requires_grad=True) for array in arrays]
        mask = getattr(bias, corner)(*sizes)
        out = library.nn.functional.scaled_dot_product_attention(*given, mask)
        out.square().sum().backward()
        results.append([repr(mask), *(t.detach().numpy() for t in (out, *(x.grad for x in given)))])
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1:], results[1][1:]):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    ours = importlib.import_module("cygrad.nn.attention").SDPBackend
    assert {b.name: int(b) for b in ours} == {n: int(b) for n, b in torch.nn.attention.SDPBackend.__members__.items()}
