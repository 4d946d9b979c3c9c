"""Names, dimensions, versions and weights of ONNX files; what cannot be exported; the networks of the examples."""

import io
import warnings

import numpy as np
import pytest
from checkout import imported
from export.onnx_support import check, compare

import cygrad as torch
from cygrad import nn
from cygrad.onnx import OnnxExporterError, OperatorExportTypes, TrainingMode
from cygrad.onnx.errors import UnsupportedOperatorError

onnxruntime = pytest.importorskip("onnxruntime", reason="needs cygrad[onnx]")
onnx = pytest.importorskip("onnx", reason="needs cygrad[onnx]")


def model():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(8, 3))


def names(values):
    return [value.name for value in values]


def lengths(value):
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_the_older_form_writes_a_file_with_names(tmp_path):
    path, network, x = tmp_path / "model.onnx", model(), torch.randn(2, 1, 4, 4)
    axes = {"image": {0: "batch"}, "scores": {0: "batch"}}
    done = torch.onnx.export(
        network, x, path, input_names=["image"], output_names=["scores"], dynamic_axes=axes, opset_version=17,
        export_params=True, do_constant_folding=True, dynamo=False)  # fmt: skip
    assert done is None and all(module.training for module in network.modules())
    file = onnx.load(path)
    onnx.checker.check_model(file, full_check=True)
    assert file.opset_import[0].version == 17 and file.producer_name == "cygrad"
    assert names(file.graph.input) == ["image"] and names(file.graph.output) == ["scores"]
    assert lengths(file.graph.input[0]) == ["batch", 1, 4, 4]
    assert {"0.weight", "1.running_mean", "5.bias"} <= set(names(file.graph.initializer))
    session = onnxruntime.InferenceSession(path)
    x = np.random.default_rng(0).standard_normal((5, 1, 4, 4), np.float32)
    with torch.no_grad():
        expected = network.eval()(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(session.run(None, {"image": x})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 20, 23])
def test_versions_of_ops(opset):
    network = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.GELU("tanh"), nn.Softmax(1))
    program = check(network, (torch.randn(2, 4),), ({0: "batch"},), (torch.randn(5, 4),), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset


class Assorted(nn.Module):
    """What older versions wrote otherwise."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(4), nn.Mish(), nn.Hardswish(), nn.BatchNorm1d(4), nn.PReLU())
        self.rnn = nn.GRU(4, 2)

    def forward(self, x):
        y = self.layers(x).softmax(1) + x.mean(1, keepdim=True) + x.sum(1).unsqueeze(1)
        parts = y.split([1, 3], 1)
        padded = nn.functional.pad(y.view(x.size(0), 2, 2), (1, 1), mode="reflect").flatten(1)
        return y.var(1), y.norm(dim=1), parts, padded, self.rnn(y[None])[0], torch.logsumexp(y, 1), y.max(1)


@pytest.mark.parametrize("opset", range(11, 24))
def test_older_and_newer_versions(opset):
    program = check(Assorted().eval(), (torch.randn(2, 4),), ({0: "n"},), (torch.randn(5, 4),), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset


def test_ops_that_a_version_lacks():
    with pytest.raises(OnnxExporterError, match="opset version 13 has not got Trilu; choose a newer one"):
        torch.onnx.export(lambda x: x.tril(), torch.ones(2, 2), opset_version=13)
    with pytest.raises(OnnxExporterError, match="has not got the attribute 'reduction' of ScatterElements"):
        torch.onnx.export(lambda x: x.scatter_add(0, x.argsort(0), x), torch.ones(2, 2), opset_version=15)


def test_the_newer_form_returns_a_program(tmp_path):
    network, x = model().eval(), torch.randn(2, 1, 4, 4)
    batch = torch.export.Dim("batch")
    program = torch.onnx.export(network, (x,), dynamic_shapes={"input": {0: batch}}, dynamo=True, verify=True)
    assert lengths(program.model_proto.graph.input[0]) == ["batch", 1, 4, 4]
    compare(program, network, (torch.randn(3, 1, 4, 4),))
    stream = io.BytesIO()
    program.save(stream)
    assert onnx.load_from_string(stream.getvalue()) == program.model_proto
    program.save(tmp_path / "m.onnx", external_data=True)
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx"}  # no weight is large
    program.save(tmp_path / "n.onnx", include_initializers=False)
    assert not onnx.load(tmp_path / "n.onnx").graph.initializer
    program.apply_weights({"5.bias": torch.full((3,), 7.0)})
    program.release()
    assert not torch.allclose(program(x)[0], network(x))
    assert "outputs=['output']" in repr(program)
    with pytest.raises(OnnxExporterError, match="output 0 of the ONNX model differs"):
        program.verify()


def test_large_weights_beside_the_file(tmp_path):
    network = nn.Linear(64, 64)
    torch.onnx.export(network, torch.ones(1, 64)).save(tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").stat().st_size >= 64 * 64 * 4
    found = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"input": np.ones((1, 64), np.float32)})[0]
    np.testing.assert_allclose(found, network(torch.ones(1, 64)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_weights_as_inputs():
    network = nn.Sequential(
        nn.Linear(4, 3),
        nn.LSTM(3, 2),
    )
    x = torch.randn(2, 5, 4)
    program = torch.onnx.export(network, x, export_params=False)
    assert set(names(program.model_proto.graph.input)) >= {"0.weight", "1.weight_ih_l0"}
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    given = {name: t.detach().numpy() for name, t in network.named_parameters()}
    found = session.run(None, {"input": x.numpy(), **given})
    np.testing.assert_allclose(found[0], network(x)[0].detach().numpy(), rtol=1e-4, atol=1e-5)
    program = torch.onnx.export(network, x, keep_initializers_as_inputs=True)
    assert "0.weight" in names(program.model_proto.graph.input)
    assert "0.weight" in names(program.model_proto.graph.initializer)


def test_arguments_of_several_kinds():
    class Model(nn.Module):
        def forward(self, x, pair, *, table, factor=1, missing=None):
            assert missing is None
            return (x * factor + pair[0] - pair[1]) @ table["a"]

    args = torch.ones(2, 3), (torch.ones(2, 3), torch.zeros(3))
    kwargs = {"table": {"a": torch.ones(3, 2)}, "factor": 3}
    program = torch.onnx.export(Model(), args, kwargs=kwargs)
    assert names(program.model_proto.graph.input) == ["x", "pair", "pair_1", "table"]
    assert program(*args, **kwargs)[0].tolist() == [[12, 12], [12, 12]]
    assert names(torch.onnx.export(Model(), (*args, kwargs)).model_proto.graph.input)[-1] == "table"


def test_traced_and_exported_programs_are_exported():
    network, x = model().eval(), torch.randn(2, 1, 4, 4)
    traced = torch.jit.trace(network, x)
    for each in (traced, torch.export.export(network, (x,)).module()):
        compare(torch.onnx.export(each, x), network, (x,))
    program = torch.onnx.export(traced, x, dynamic_axes={"input": [0]})
    compare(program, network, (torch.randn(7, 1, 4, 4),))
    assert lengths(program.model_proto.graph.input[0])[0] == "input_dynamic_axes_1"


def test_mode_while_exporting():
    seen = []

    class Model(nn.Module):
        def forward(self, x):
            seen.append((self.training, torch.onnx.is_in_onnx_export()))
            return x + 1

    network = Model()
    torch.onnx.export(network, torch.ones(1))
    torch.onnx.export(network, torch.ones(1), training=TrainingMode.TRAINING)
    assert seen == [(False, True), (True, True)] and network.training and not torch.onnx.is_in_onnx_export()


def test_arguments_and_weights_stay_as_they_are():
    network, x = nn.Sequential(nn.BatchNorm1d(3), nn.ReLU(inplace=True)), torch.randn(4, 3)
    before, state = x.clone(), {name: t.clone() for name, t in network.state_dict().items()}
    torch.onnx.export(lambda x: network[1](x), x)
    torch.onnx.export(network.eval(), x, dynamic_axes={"input": [0]})
    assert x.equal(before) and all(t.equal(state[name]) for name, t in network.state_dict().items())


# --- What cannot be exported ------------------------------------------------------------------------------


def test_ops_without_a_form_are_named_with_their_lines():
    def inverted(x):
        return torch.linalg.inv(x)

    with pytest.raises(UnsupportedOperatorError) as error:
        torch.onnx.export(inverted, torch.eye(2))
    first, second = str(error.value).split("\n")
    assert first == "Exporting the operator 'aten::inv' to ONNX opset version 20 is not supported"
    line = inverted.__code__.co_firstlineno + 1
    assert second == f"  torch.linalg.inv, at {__file__}:{line}: no ONNX form is known"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: nn.functional.dropout(x, 0.5), "dropout in training mode"),
        (lambda x: torch.randperm(2) + x, "no ONNX form is known"),
        (lambda x: torch.special.i1(x), "no ONNX form is known"),
        (lambda x: x.view(torch.int32), "a view in another dtype"),
        (lambda x: x.to(torch.complex64) * 2, "no torch.complex64"),
        (lambda x: nn.functional.one_hot(x.long()), "`num_classes=-1`"),
        (lambda x: torch.where(x > 0), "a condition alone"),
    ],
)
def test_arguments_without_a_form(function, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UnsupportedOperatorError, match=rf"{__file__}:\d+: .*{reason}"):
            torch.onnx.export(function, torch.ones(1, 2))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x.view(2, -1), "cannot vary\n  RuntimeError: shape .* is invalid"),
        (lambda x: x + torch.tensor([float(n) for n in range(x.size(0))])[:, None], "a tensor made of Python values"),
        (lambda x: sum(row for row in x), "unbind has other arguments or another number of results"),
        (lambda x: sum(x + n for n in range(x.size(0))), "the number of calls changes from 4 to 6"),
        (lambda x: x * 2 ** (x.size(0) % 3), "follows no formula"),
        (lambda x: x + 1 if x.size(0) == 2 else x * 2, "add becomes mul"),
        (lambda x: x.squeeze(), "squeeze"),
        (lambda x: torch.chunk(x, 2), "chunk.*other number or length"),
    ],
)
def test_models_for_one_length_only(function, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        with pytest.raises(OnnxExporterError, match=reason):
            torch.onnx.export(function, torch.ones(2, 3), dynamic_shapes=({0: "n"},))
        torch.onnx.export(function, torch.ones(2, 3))


def test_arguments_of_export_are_checked():
    with pytest.raises(ValueError, match="`f` must be given"):
        torch.onnx.export(nn.ReLU(), torch.ones(1), dynamo=False)
    with pytest.raises(NotImplementedError, match="OperatorExportTypes.ONNX"):
        torch.onnx.export(nn.ReLU(), torch.ones(1), operator_export_type=OperatorExportTypes.ONNX_ATEN)
    with pytest.raises(NotImplementedError, match="custom_translation_table"):
        torch.onnx.export(nn.ReLU(), torch.ones(1), custom_translation_table={1: 2})
    with pytest.raises(ValueError, match="input 'input' has 1 dimensions, and no dimension 3"):
        torch.onnx.export(nn.ReLU(), torch.ones(1), dynamic_axes={"input": [3]})
    with pytest.raises(ValueError, match="names of inputs and outputs occur twice"):
        torch.onnx.export(nn.ReLU(), torch.ones(1), input_names=["x"], output_names=["x"])
    with pytest.warns(UserWarning, match="Provided key y for dynamic axes is not a valid input/output name"):
        torch.onnx.export(nn.ReLU(), torch.ones(1), dynamic_axes={"y": [0]})
    with pytest.raises(UnsupportedOperatorError, match="a result of type int, which is no tensor"):
        torch.onnx.export(lambda x: (x + 1, 2), torch.ones(1))


# --- The examples -----------------------------------------------------------------------------------------


def example(name):
    for module in ("sklearn", "matplotlib", "tqdm", "gymnasium"):
        pytest.importorskip(module, reason="needs cygrad[examples]")
    return imported(f"examples/{name}.py")


@pytest.mark.parametrize("name", ["digits", "digits_conv"])
def test_networks_of_digits(name):
    shape = (1, 8, 8) if name == "digits_conv" else (64,)
    check(example(name).make_model().eval(), (torch.rand(2, *shape),), ({0: "batch"},), (torch.rand(5, *shape),))


def test_network_of_characters():
    module = example("characters")
    text = [torch.randint(0, module.LETTERS, shape) for shape in ((2, 7), (3, 11))]
    check(module.Writer().eval(), (text[0],), ({0: "batch", 1: "length"},), (text[1],))


def test_networks_of_oscillator_and_cartpole():
    check(example("oscillator").Solution(), (torch.rand(3, 1),), ({0: "times"},), (torch.rand(9, 1),))
    check(example("cartpole").network(2, 0.1), (torch.rand(3, 4),), ({0: "carts"},), (torch.rand(9, 4),))
