"""Convolutions through cuDNN's Python package, replaced by a stand-in with its names that computes on the CPU.

It accepts dense strides only, raises on request, and counts the plans that are built.
"""

import ctypes
import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.image import implicit_convolution
from cygrad._kernels.gpu.libraries import cudnn
from cygrad.nn import functional as F

TYPES = {"FLOAT": np.float32, "DOUBLE": np.float64, "HALF": np.float16}
SIZES = [  # images, filters, options
    ((2, 3, 9), (4, 3, 3), {"padding": 1}),
    ((2, 3, 8, 7), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    ((2, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"padding": 1, "stride": 2}),
    ((2, 6, 8, 7), (4, 3, 3, 2), {"padding": 1, "groups": 2}),
]


class Tensor:
    def __init__(self, dim=None, stride=None):
        self.dim, self.stride = dim, stride

    def set_output(self, value):
        return self

    set_data_type = set_output

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self


class Graph:
    """`cudnn.pygraph`."""

    built = 0
    done: set = set()  # kinds of convolution computed so far
    refuses: tuple = ()
    notes: tuple = ()

    def __init__(self, *, handle, io_data_type, intermediate_data_type, compute_data_type):
        self.dtype = TYPES[io_data_type]
        assert compute_data_type == intermediate_data_type == ("DOUBLE" if io_data_type == "DOUBLE" else "FLOAT")
        self.steps = []

    def tensor(self, *, name, dim, stride, data_type):
        return Tensor(dim, stride)

    def _convolution(self, kind, first, second, padding, stride, dilation):
        assert len(padding) == len(stride) == len(dilation) == len(first.dim) - 2 >= 2
        self.how = kind, {"padding": padding, "stride": stride, "dilation": dilation}
        return Tensor()

    def conv_fprop(self, image, weight, *, padding, stride, dilation):
        return self._convolution("conv_fprop", image, weight, padding, stride, dilation)

    def conv_dgrad(self, loss, filter, *, padding, stride, dilation):
        return self._convolution("conv_dgrad", loss, filter, padding, stride, dilation)

    def conv_wgrad(self, image, loss, *, padding, stride, dilation):
        return self._convolution("conv_wgrad", image, loss, padding, stride, dilation)

    def validate(self):
        self.steps.append("validate")

    def build_operation_graph(self):
        self.steps.append("build_operation_graph")

    def create_execution_plans(self, modes):
        assert modes == ["A", "FALLBACK"]
        self.steps.append("create_execution_plans")

    def deselect_numeric_notes(self, notes):
        assert self.steps[-1] == "create_execution_plans"
        Graph.notes = tuple(notes)

    def check_support(self):
        if self.how[0] in Graph.refuses:
            raise RuntimeError("cudnnGraphNotSupportedError")
        self.steps.append("check_support")

    def build_plans(self):
        assert self.steps == ["validate", "build_operation_graph", "create_execution_plans", "check_support"]
        Graph.built += 1

    def get_workspace_size(self):
        return 64

    def execute(self, pointers, workspace, handle):
        assert workspace
        arrays = []
        for tensor, pointer in pointers.items():
            assert tensor.stride == [math.prod(tensor.dim[i + 1 :]) for i in range(len(tensor.dim))]
            size = math.prod(tensor.dim)
            memory = (ctypes.c_char * (size * np.dtype(self.dtype).itemsize)).from_address(pointer)
            arrays.append(np.frombuffer(memory, self.dtype).reshape(tensor.dim))
        *given, out = arrays
        first, second = (torch.from_numpy(a.astype(np.float64)) for a in given)
        kind, how = self.how
        image, weight = {
            "conv_fprop": (first, second),
            "conv_dgrad": (torch.zeros(*out.shape, dtype=torch.float64).requires_grad_(), second),
            "conv_wgrad": (first, torch.zeros(*out.shape, dtype=torch.float64).requires_grad_()),
        }[kind]
        groups = image.shape[1] // weight.shape[1]
        with torch.enable_grad():  # also inside a backward pass
            found = (F.conv2d if out.ndim == 4 else F.conv3d)(image, weight, groups=groups, **how)
        if kind != "conv_fprop":
            (found,) = torch.autograd.grad(found, image if kind == "conv_dgrad" else weight,
                                           first if kind == "conv_dgrad" else second)  # fmt: skip
        out[...] = found.detach().numpy()
        Graph.done.add(kind)


@pytest.fixture(autouse=True)
def package(cupy, monkeypatch):
    """The stand-in as `import cudnn`."""
    if not torch.cuda.get_device_name().startswith("Stand-in"):
        pytest.skip("computes on the CPU")
    found = ModuleType("cudnn")
    found.backend_version = lambda: 91000
    found.create_handle = lambda: SimpleNamespace(stream=0)
    found.set_stream = lambda handle, stream: setattr(handle, "stream", stream)
    found.pygraph = Graph
    found.data_type = SimpleNamespace(FLOAT="FLOAT", DOUBLE="DOUBLE", HALF="HALF", BFLOAT16="BFLOAT16")
    found.heur_mode = SimpleNamespace(A="A", FALLBACK="FALLBACK")
    found.numerical_note = SimpleNamespace(TENSOR_CORE="TENSOR_CORE", NONDETERMINISTIC="NONDETERMINISTIC")
    monkeypatch.setitem(sys.modules, "cudnn", found)
    monkeypatch.setattr(Graph, "built", 0)
    monkeypatch.setattr(Graph, "done", set())
    monkeypatch.setattr(Graph, "refuses", ())
    monkeypatch.setattr(Graph, "notes", ())
    monkeypatch.setattr(implicit_convolution, "takes", lambda *args: False)  # in TF32, not as exact as these tests
    cudnn.module.cache_clear()
    cudnn._plans.clear()
    yield found
    cudnn.module.cache_clear()
    cudnn._plans.clear()


def run(device, shapes, options, transposed=False):
    """Return (result, gradients of images, filters and bias), on the CPU."""
    torch.manual_seed(0)
    images, filters = shapes
    x, w = torch.randn(*images), torch.randn(*filters)
    if transposed:
        x = torch.randn(images[0], filters[0], *images[2:])
    b = torch.randn(filters[1] * options.get("groups", 1) if transposed else filters[0])
    x, w, b = (t.to(device).requires_grad_() for t in (x, w, b))
    name = f"conv{'_transpose' if transposed else ''}{len(images) - 2}d"
    out = getattr(F, name)(x, w, b, **options)
    grads = torch.autograd.grad((out * out).sum(), (x, w, b))
    return [t.detach().cpu() for t in (out, *grads)]


@pytest.mark.parametrize("refuses", [(), ("conv_fprop",), ("conv_dgrad", "conv_wgrad")])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=["1d", "2d", "3d", "groups"])
def test_results_are_those_of_the_cpu(sizes, transposed, refuses):
    *shapes, options = sizes
    Graph.refuses = refuses
    expected = run("cpu", shapes, options, transposed)
    for _ in range(2):  # the second time with the cached plans
        for a, b in zip(run("cuda", shapes, options, transposed), expected, strict=True):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    assert Graph.done == {"conv_fprop", "conv_dgrad", "conv_wgrad"} - set(refuses)
    assert refuses or Graph.built == 3


def test_what_is_not_for_it_goes_the_other_way():
    x, w = torch.randn(1, 4, 6, 6).cuda(), torch.randn(4, 1, 3, 3).cuda()
    F.conv2d(x, w, groups=4)  # uses our own kernels
    with torch.backends.cudnn.flags(enabled=False):
        F.conv2d(x, torch.randn(2, 4, 2, 2).cuda())
    assert Graph.built == 0
    a, b = torch.randn(1, 4, 6, 6, dtype=torch.complex64), torch.randn(2, 4, 2, 2, dtype=torch.complex64)
    assert torch.allclose(F.conv2d(a.cuda(), b.cuda()).cpu(), F.conv2d(a, b), atol=1e-5)
    assert Graph.built == 1  # one plan for real and imaginary parts


def test_kernels_of_two_sizes_that_give_the_same_shapes():
    for _ in range(2):
        for size in (3, 4):  # with a stride of 2, both reduce 8 to 4
            shapes, options = ((1, 2, 8, 8), (3, 2, size, size)), {"padding": 1, "stride": 2}
            for a, b in zip(run("cuda", shapes, options), run("cpu", shapes, options), strict=True):
                assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    assert Graph.built == 6


def test_settings_choose_among_plans():
    x, w = torch.randn(1, 2, 6, 6).cuda(), torch.randn(2, 2, 3, 3).cuda()
    F.conv2d(x, w)
    assert Graph.notes == ()
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        F.conv2d(x, w)
    assert Graph.notes == ("NONDETERMINISTIC", "TENSOR_CORE")
    F.conv2d(x, w)
    assert Graph.built == 2
    assert torch.backends.cudnn.is_available()
    assert torch.backends.cudnn.version() == 91000
    assert torch.backends.cudnn.source() == "nvidia-cudnn-frontend"
    assert torch.backends.cudnn.is_acceptable(x)


def test_a_failing_plan_is_not_tried_again(monkeypatch):
    def fail(self, pointers, workspace, handle):
        raise RuntimeError("cuDNN")

    x, w = torch.randn(1, 2, 6, 6).cuda(), torch.randn(2, 2, 3, 3).cuda()
    monkeypatch.setattr(Graph, "execute", fail)
    found = F.conv2d(x, w)
    monkeypatch.undo()
    assert torch.allclose(found.cpu(), F.conv2d(x.cpu(), w.cpu()), atol=1e-5)
    assert list(cudnn._plans.values()) == [None]
    assert cupy_library.is_available()


# -- the compiled object in newer packages, which runs a plan without their checks in Python ------


class NewGraph(Graph):
    """`cudnn.pygraph` of newer packages: tensors have uids, and compiled plans take addresses keyed by uid."""

    calls: list = []
    index = 3
    selected_engine = None
    fails = False

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.tensors = []
        self._lowered_graph, self._plan_index, self._plans = self, 0, [SimpleNamespace(cpp_index=self.index)]

    def _numbered(self, tensor):
        tensor.uid = 10 + len(self.tensors)
        self.tensors.append(tensor)
        return tensor

    def tensor(self, **kwargs):
        return self._numbered(super().tensor(**kwargs))

    def _convolution(self, *args):
        return self._numbered(super()._convolution(*args))

    def execute(self, pointers, workspace, handle):
        self.calls.append("execute")
        super().execute(pointers, workspace, handle)

    def _execute_plan_at_index(self, pointers, workspace, index, handle):
        assert index == self.index == 3
        self._compute(pointers, workspace, handle)

    def _execute(self, pointers, workspace, handle):
        assert self.index is None
        self._compute(pointers, workspace, handle)

    def _compute(self, pointers, workspace, handle):
        assert handle == 7
        if self.fails:
            raise TypeError("incompatible function arguments")
        self.calls.append("compiled")
        super().execute({self.tensors[uid - 10]: pointer for uid, pointer in pointers.items()}, workspace, handle)


@pytest.fixture
def newer(package, monkeypatch):
    package.pygraph = NewGraph
    package.create_handle = lambda: SimpleNamespace(stream=0, backend_handle=7)
    monkeypatch.setattr(cudnn, "_of_thread", cudnn.local())
    monkeypatch.setattr(NewGraph, "calls", [])
    return monkeypatch


def same(times):
    *shapes, options = SIZES[1]
    expected = run("cpu", shapes, options)
    for _ in range(times):
        for a, b in zip(run("cuda", shapes, options), expected, strict=True):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("index", [3, None])
def test_plans_run_by_what_is_compiled_from_the_second_time(newer, index):
    newer.setattr(NewGraph, "index", index)
    same(3)
    assert NewGraph.calls == ["execute"] * 3 + ["compiled"] * 6
    assert Graph.built == 3


def test_plans_of_python_run_by_the_package(newer):
    newer.setattr(NewGraph, "selected_engine", object())
    same(2)
    assert NewGraph.calls == ["execute"] * 6


def test_what_is_compiled_and_fails_is_not_tried_again(newer):
    newer.setattr(NewGraph, "fails", True)
    same(2)
    newer.setattr(NewGraph, "fails", False)
    same(1)
    assert NewGraph.calls == ["execute"] * 9
