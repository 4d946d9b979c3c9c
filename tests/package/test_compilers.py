"""Programs written for TorchScript, PyTorch's compiler, ONNX and quantization find its names."""

import sys
import types
import warnings
from typing import Any

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.jit.annotations import Dict, List, Optional, Tuple, Union


def test_script_modules_are_modules():
    class Scale(torch.jit.ScriptModule):
        __constants__ = ["factor"]
        factor: torch.jit.Final[float]

        def __init__(self):
            super().__init__()
            self.factor = 2.0
            self.weight = nn.Parameter(torch.ones(2))

        @torch.jit.script_method
        def forward(self, x):
            return self.factor * x * self.weight

    model = Scale()
    model(torch.ones(2)).sum().backward()
    assert model.weight.grad.tolist() == [2, 2] and list(model.state_dict()) == ["weight"]
    assert not isinstance(torch.jit.script(nn.Linear(1, 1)), torch.jit.ScriptModule)
    for call in (lambda: model.save("m.pt"), lambda: model.define("def f(self): return 1")):
        with pytest.raises(RuntimeError, match="cygrad has no TorchScript"):
            call()
    with pytest.raises(TypeError, match="No constructor defined"):
        torch.jit.ScriptFunction()
    assert issubclass(torch.jit.TopLevelTracedModule, torch.jit.ScriptModule)


def test_marks_of_scripts():
    def plain(x):
        return x

    modifiers = torch._jit_internal.FunctionModifiers
    mark = torch._jit_internal.get_torchscript_modifier
    assert mark(plain) == modifiers.DEFAULT and mark(3) is None
    assert torch.jit.export(plain) is plain and mark(plain) == modifiers.EXPORT
    assert torch.jit.unused(plain) is plain and mark(plain) == modifiers.UNUSED
    assert torch.jit.ignore(plain) is plain and mark(plain) == modifiers.IGNORE
    assert torch.jit.ignore(drop=True)(plain) is plain and mark(plain) == modifiers.UNUSED
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        torch.jit.ignore("drop")
    assert torch.jit.annotate(List[int], []) == [] and torch.jit.Attribute(1, int).type is int
    assert torch.jit._overload(plain) is plain is torch.jit._overload_method(plain)
    assert torch.jit._script_if_tracing(plain) is plain
    assert torch.jit.interface(list) is list
    with pytest.raises(RuntimeError, match="applied to a class"):
        torch.jit.interface(plain)

    class Model(nn.Module):
        @torch.jit.export
        def twice(self):
            return 2

        @torch.jit.unused
        def forward(self):
            return 1

    assert [m.__name__ for m in torch.jit._recursive.infer_methods_to_compile(Model())] == ["twice"]
    assert [m.__name__ for m in torch.jit._recursive.infer_methods_to_compile(nn.Linear(1, 1))] == ["forward"]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1, 2], List[int], True),
        ([1, "2"], List[int], False),
        ([], list[str], True),
        ({"a": 1}, Dict[str, int], True),
        ({"a": "b"}, Dict[str, int], False),
        ((1, "a"), Tuple[int, str], True),
        ((1, "a"), Tuple[int, int], False),
        ((1,), Tuple[int, int], False),
        (None, Optional[int], True),
        ([1], Optional[list[int]], True),
        ([None, 2], List[Optional[int]], True),
        (2.0, Union[int, float], True),
        (2.0, int | str, False),
        (2, (str, int), True),
        ([[1], [2]], List[List[int]], True),
        ([["1"], [2]], list[list[int]], False),
        (3, Any, True),
        (3, str, False),
    ],
)
def test_isinstance_looks_into_containers(value, kind, expected):
    assert torch.jit.isinstance(value, kind) is expected


def test_questions_about_types():
    internal = torch._jit_internal
    assert internal.is_optional(Optional[int]) and not internal.is_optional(Union[int, str])
    assert internal.is_list(List[int]) and internal.is_dict(dict[str, int]) and internal.is_tuple(Tuple[int, int])
    assert internal.BroadcastingList2[int] == List[int]
    with pytest.raises(RuntimeError, match="without a contained type"):
        torch.jit.isinstance([], List)
    choose = internal.boolean_dispatch("both", 1, False, lambda x, both: (x, x), lambda x, both=False: x, "m", "choose")
    assert choose(1) == 1 and choose(1, True) == (1, 1) and choose(1, both=True) == (1, 1)
    assert choose.__name__ == "choose"


def test_traces_and_freezing():
    model = nn.Sequential(nn.Linear(2, 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
        assert isinstance(torch.jit.trace_module(model, {"forward": torch.ones(2)}), torch.jit.TopLevelTracedModule)
        with pytest.raises(AttributeError, match="backwards"):
            torch.jit.trace_module(model, {"backwards": torch.ones(2)})
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        torch.jit.freeze(model)
    assert torch.jit.optimize_for_inference(torch.jit.freeze(model.eval())) is model
    with torch.jit.optimized_execution(False), torch.jit.fuser("fuser1"), torch.jit.strict_fusion():
        pass
    before = torch.jit.set_fusion_strategy([("STATIC", 1)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 1)]


def test_names_of_the_compiler():
    import cygrad._dynamo as dynamo

    model = nn.Linear(2, 1)
    assert not dynamo.is_compiling() and dynamo.is_dynamo_supported() and "inductor" in dynamo.list_backends()
    assert not torch.compiler.is_exporting() and not torch.compiler.is_dynamo_compiling()
    for mark in (dynamo.allow_in_graph, dynamo.run, dynamo.nonstrict_trace):
        assert mark(model) is model
    for wrap in (dynamo.optimize("inductor", nopython=True), dynamo.disable(recursive=False), dynamo.disallow_in_graph):
        assert wrap(model)._orig_mod is model
    x = torch.ones(2)
    dynamo.mark_dynamic(x, 0, min=1)
    dynamo.graph_break()
    dynamo.reset()
    assert torch.compiler.substitute_in_graph(abs)(max) is max
    with torch.compiler.set_stance("force_eager"):
        torch.compiler.cudagraph_mark_step_begin()
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'fast'"):
        torch.compiler.set_stance("fast")
    with pytest.raises(dynamo.exc.InvalidBackend, match="Invalid backend: 'inductor'"):
        dynamo.lookup_backend("inductor")
    with pytest.raises(RuntimeError, match="does not compile programs\n"):
        dynamo.export(model)
    with pytest.raises(RuntimeError, match="does not compile programs\n"):
        torch.compiler.load_compiled_function(None)


def test_a_module_that_stands_for_another():
    model = nn.Sequential(nn.Linear(2, 1))
    wrapped = torch._dynamo.eval_frame.OptimizedModule(model, None)
    x = torch.ones(2)
    assert torch.equal(wrapped(x), model(x)) and wrapped._orig_mod is model
    assert list(wrapped.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    wrapped.eval()
    assert not model.training and not wrapped.training
    with pytest.raises(AttributeError, match="no attribute 'lacking'"):
        wrapped.lacking  # noqa: B018


def test_settings_of_compilers(monkeypatch):
    config = torch._dynamo.config
    assert config.cache_size_limit == 8 and isinstance(config, types.ModuleType)
    with config.patch(cache_size_limit=64, suppress_errors=True):
        assert config.cache_size_limit == 64 and config.suppress_errors
    assert config.cache_size_limit == 8 and not config.suppress_errors

    @config.patch("verbose", True)
    def verbose():
        return config.verbose

    assert verbose() and not config.verbose
    with pytest.raises(AttributeError, match="no_such_setting does not exist"):
        config.no_such_setting  # noqa: B018
    inductor = torch._inductor.config
    with inductor.patch({"triton.cudagraphs": True}):
        assert inductor.triton.cudagraphs
    assert not inductor.triton.cudagraphs
    monkeypatch.setattr(inductor, "coordinate_descent_tuning", True)
    assert inductor.to_dict()["coordinate_descent_tuning"] is True
    assert "triton.cudagraphs" in torch._inductor.list_mode_options("max-autotune")


def test_numpy_functions_on_tensors():
    import numpy as np

    split = torch.compiler.wrap_numpy(lambda pair: {"sum": pair[0] + pair[1], "first": [np.float32(pair[0][0])]})
    found = split((torch.ones(2), torch.arange(2.0)))
    assert found["sum"].tolist() == [1, 2] and isinstance(found["first"][0], torch.Tensor)


def test_names_for_onnx():
    from cygrad.onnx import symbolic_helper, symbolic_opset11

    @symbolic_helper.parse_args("v", "i")
    def symbolic(g, x, dim):
        return symbolic_helper._get_tensor_dim_size(x, dim)

    assert symbolic._arg_descriptors == ("v", "i") and not torch.onnx.is_in_onnx_export()
    torch.onnx.register_custom_op_symbolic("mylib::op", symbolic, 11)
    torch.onnx.unregister_custom_op_symbolic("mylib::op", 11)
    with pytest.raises(torch.onnx.OnnxExporterError, match="must match the format domain::name"):
        torch.onnx.register_custom_op_symbolic("op", symbolic, 11)
    for call in (lambda: symbolic(None, 1, 2), lambda: symbolic_opset11.relu(None, 1)):
        with pytest.raises(torch.onnx.errors.OnnxExporterError, match="writes to an ONNX graph"):
            call()
    assert not hasattr(symbolic_opset11, "no_such_op") and not hasattr(symbolic_helper, "no_such_helper")
    assert sys.modules["cygrad.onnx.symbolic_opset11"] is symbolic_opset11
    assert torch.onnx.TensorProtoDataType.BFLOAT16 == 16 and torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH == 3
    model = nn.Dropout()
    with torch.onnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.EVAL):
        assert not model.training
    assert model.training
    model = nn.Sequential(nn.BatchNorm1d(1).eval())
    with torch.onnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.PRESERVE):
        assert model.training and not model[0].training
    assert not model[0].training
    assert issubclass(torch.onnx.errors.UnsupportedOperatorError, RuntimeError)


def test_descriptions_of_shapes():
    from cygrad.export import Dim, ExportedProgram, dims

    batch, length = dims("batch", "length", max=9)
    assert batch.__name__ == "batch" and length.max == 9
    derived = 2 * batch + 1
    assert repr(derived) == "2*batch + 1" and derived.max == 19 and derived.root is batch
    assert repr(Dim.AUTO) == "DimHint(AUTO)" and repr(Dim.DYNAMIC(max=3)) == "DimHint(DYNAMIC, max=3)"
    with pytest.raises(AssertionError, match="inconsistent min=4, max=2"):
        Dim("batch", min=4, max=2)
    with pytest.raises(AssertionError, match="valid identifier"):
        Dim("1")
    with pytest.raises(RuntimeError, match="torch.export.export makes exported programs"):
        ExportedProgram()
    with pytest.raises(AssertionError, match="Only dataclasses"):
        torch.export.register_dataclass(int)


def test_models_that_could_be_quantized_run_in_floating_point():
    from cygrad.ao.quantization import QuantWrapper

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.sum = nn.Linear(2, 2), nn.quantized.FloatFunctional()

        def forward(self, x):
            return self.sum.add_relu(x, self.layer(x))

    import cygrad.nn.quantized

    model = QuantWrapper(Block())
    x = torch.randn(3, 2)
    assert torch.equal(model(x), torch.relu(x + model.module.layer(x)))
    assert not isinstance(model.module.layer, cygrad.nn.quantized.Linear)
    for call in (lambda: torch.ao.quantization.quantize_dynamic(model), lambda: nn.quantized.dynamic.LSTM(2, 2)):
        with pytest.raises(RuntimeError, match="cygrad has no quantized tensors\n"):
            call()


def test_models_of_a_folder(tmp_path):
    (tmp_path / "beside.py").write_text("SIZE = 3\n", encoding="utf-8")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\n"
        "import cygrad\nimport beside\n"
        "def layer(outputs, bias=True):\n    return cygrad.nn.Linear(beside.SIZE, outputs, bias=bias)\n",
        encoding="utf-8",
    )
    before = list(sys.path)
    layer = torch.hub.load(tmp_path, "layer", 2, source="local", bias=False)
    sys.modules.pop("beside")
    assert layer.weight.shape == (2, 3) and layer.bias is None and sys.path == before
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        torch.hub.load(str(tmp_path), "other", source="local")
    sys.modules.pop("beside")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(tmp_path, "layer", source="elsewhere")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        torch.hub.load(tmp_path, "layer", source="local")


def test_folders_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.setattr("cygrad.hub._hub_dir", None)
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert torch.hub._get_torch_home() == str(tmp_path / "torch")
    assert torch.hub.get_dir() == str(tmp_path / "torch" / "hub")
    monkeypatch.setenv("TORCH_HOME", "~/models")
    assert torch.hub._get_torch_home().endswith("models") and "~" not in torch.hub._get_torch_home()
    assert torch.hub.HASH_REGEX.search("resnet18-f37072fd.pth")[1] == "f37072fd"
    assert torch.hub.urlparse("https://a/b").netloc == "a"


def test_observers_cannot_be_made_but_named():
    from cygrad.quantization.observer import HistogramObserver

    make = torch.quantization.QConfig(activation=HistogramObserver.with_args(bins=8), weight=None).activation
    with pytest.raises(RuntimeError, match="HistogramObserver: cygrad has no quantized tensors\n"):
        make()
    assert torch.quantization.QConfig is torch.ao.quantization.QConfig
