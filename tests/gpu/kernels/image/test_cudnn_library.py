"""Convolutions by cuDNN's library without its package, replaced by functions of its names that compute on the CPU.

They check the order of calls, the types of attributes, and that what is finalized is complete. Whether the real library
takes these descriptors was tried with version 9.28, without a GPU; no GPU has run them.
"""

import ctypes
import math
from types import SimpleNamespace

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.gpu.image import implicit_convolution
from cygrad._kernels.gpu.libraries import cudnn, cudnn_library
from cygrad.nn import functional as F

ELEMENTS = {0: np.float32, 1: np.float64, 2: np.float16}  # by cudnnDataType_t
NEEDED = {  # by kind of descriptor: its attributes, and the type of each
    1: {100: 1, 101: 7, 102: 3, 103: 3, 104: 3, 105: 3, 106: 3},
    4: {200: 8, 201: 15},
    5: {400: 0, 401: 15},
    10: {700: (4, 5), 701: (4, 5), 702: 15, 703: 15, 704: 15, 705: 15},
    11: {712: (4, 5), 713: (4, 5), 714: 15, 715: 15, 716: 15, 717: 15},
    12: {706: (4, 5), 707: (4, 5), 708: 15, 709: 15, 710: 15, 711: 15},
    15: {800: 0, 801: 15},
    16: {1000: 3, 1001: 6, 1003: 6},
    17: {900: 3, 901: 1, 902: 3, 903: 3, 906: 3},
}
OPERATIONS = {10: ("conv_fprop", 704, 703, 705), 11: ("conv_wgrad", 716, 717, 715), 12: ("conv_dgrad", 711, 709, 710)}
BAD_PARAM, NOT_SUPPORTED, NOT_INITIALIZED = 2000, 3000, 1001


class Library:
    """cuDNN: two engines, of which the first uses tensor cores and the second is not deterministic, and a fallback."""

    def __init__(self):
        self.held, self.finalized, self.count, self.done = {}, set(), 0, []
        self.refused, self.stream, self.has_gpu = set(), None, True
        self.notes = {0: [0], 1: [4], 2: []}

    def cudnnGetVersion(self):
        return 92800

    def cudnnCreate(self, handle):
        handle._obj.value = 7
        return 0 if self.has_gpu else NOT_INITIALIZED

    def cudnnSetStream(self, handle, stream):
        assert handle.value == 7
        self.stream = stream
        return 0

    def cudnnBackendCreateDescriptor(self, kind, descriptor):
        self.count += 1
        descriptor._obj.value = self.count
        self.held[self.count] = {"kind": kind}
        return 0

    def cudnnBackendDestroyDescriptor(self, descriptor):
        del self.held[descriptor.value]
        return 0

    def cudnnBackendSetAttribute(self, descriptor, name, kind, count, values):
        held = self.held[descriptor.value]
        wanted = NEEDED[held["kind"]][name]
        assert descriptor.value not in self.finalized and kind in (wanted if isinstance(wanted, tuple) else (wanted,))
        held[name] = list(values)
        assert len(held[name]) == count
        return 0

    def cudnnBackendFinalize(self, descriptor):
        held = self.held[descriptor.value]
        assert set(held) - {"kind"} == set(NEEDED[held["kind"]])
        for name, kind in NEEDED[held["kind"]].items():
            assert kind != 15 or set(held[name]) <= self.finalized
        if held["kind"] == 5 and self.held[held[401][0]]["engine"] in self.refused:
            return NOT_SUPPORTED
        self.finalized.add(descriptor.value)
        return 0

    def cudnnBackendGetAttribute(self, descriptor, name, kind, most, count, values):
        held = self.held[descriptor.value]
        if name == 402:
            count._obj.value, values[0] = 1, 96
        elif name == 202:
            found = {3: [0, 1], 2: [2]}[held[200][0]]
            count._obj.value = len(found)
            for i in range(min(most, len(found))):
                self.held[values[i]] |= {"engine": found[i], "graph": held[201][0]}
                self.finalized.add(values[i])
        elif name == 300:
            count._obj.value = 1
            if most:
                self.held[values[0]]["engine"] = held["engine"]
        elif name == 1303:
            assert kind == 11
            notes = self.notes[held["engine"]]
            count._obj.value = len(notes)
            values[: len(notes)] = notes
        else:
            return BAD_PARAM
        return 0

    def cudnnBackendExecute(self, handle, plan, pack):
        assert {plan.value, pack.value} <= self.finalized and self.held[pack.value][1003][0]
        plan, pack = self.held[plan.value], self.held[pack.value]
        configuration = self.held[plan[401][0]]
        operation = self.held[self.held[configuration["graph"]][801][0]]
        kind, *places = OPERATIONS[operation["kind"]]
        arrays = [self._array(self.held[operation[place][0]], pack) for place in places]
        compute(kind, *arrays, self.held[operation[operation_of(operation)][0]])
        self.done.append((kind, configuration["engine"]))
        return 0

    def _array(self, tensor, pack):
        assert tensor[903] == [math.prod(tensor[902][i + 1 :]) for i in range(len(tensor[902]))]
        dtype, address = np.dtype(ELEMENTS[tensor[901][0]]), pack[1001][pack[1000].index(tensor[906][0])]
        assert address % tensor[900][0] == 0
        memory = (ctypes.c_char * (math.prod(tensor[902]) * dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, dtype).reshape(tensor[902])


def operation_of(operation):
    """The attribute that holds the convolution of an operation."""
    return {10: 702, 11: 714, 12: 708}[operation["kind"]]


def compute(kind, first, second, out, convolution):
    """Compute one of the three forms."""
    assert convolution[101] == [1] and convolution[104] == convolution[105]
    how = {"stride": convolution[103], "padding": convolution[104], "dilation": convolution[102]}
    first, second = (torch.from_numpy(a.astype(np.float64)) for a in (first, second))
    zeros = torch.zeros(*out.shape, dtype=torch.float64).requires_grad_()
    image, weight = {"conv_fprop": (first, second), "conv_dgrad": (zeros, second), "conv_wgrad": (first, zeros)}[kind]
    with torch.enable_grad():
        found = (F.conv2d if out.ndim == 4 else F.conv3d)(
            image, weight, groups=image.shape[1] // weight.shape[1], **how
        )
    if kind != "conv_fprop":
        (found,) = torch.autograd.grad(found, zeros, first if kind == "conv_dgrad" else second)
    out[...] = found.detach().numpy()


@pytest.fixture(autouse=True)
def library(cupy, monkeypatch):
    """The stand-in as the library, without the package."""
    if not torch.cuda.get_device_name().startswith("Stand-in"):
        pytest.skip("computes on the CPU")
    found = Library()
    monkeypatch.setattr(cudnn, "module", lambda: None)
    monkeypatch.setattr(cudnn, "_plans", {})
    monkeypatch.setattr(cudnn_library, "library", lambda: found)
    monkeypatch.setattr(cudnn_library, "_of_thread", SimpleNamespace())
    monkeypatch.setattr(implicit_convolution, "takes", lambda *args: False)
    cudnn_library.is_usable.cache_clear()
    yield found
    cudnn_library.is_usable.cache_clear()


SIZES = [  # images, filters, options
    ((2, 3, 9), (4, 3, 3), {"padding": 1}),
    ((2, 3, 8, 7), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    ((2, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"padding": 1, "stride": 2}),
    ((2, 6, 8, 7), (4, 3, 3, 2), {"padding": 1, "groups": 2}),
]


def results(device, images, filters, options, dtype):
    """Return (result, gradients of images, filters and bias), on the CPU."""
    torch.manual_seed(0)
    given = torch.randn(*images), torch.randn(*filters), torch.randn(filters[0])
    x, w, b = (t.to(dtype).to(device).requires_grad_() for t in given)
    out = getattr(F, f"conv{len(images) - 2}d")(x, w, b, **options)
    return [t.detach().cpu() for t in (out, *torch.autograd.grad(out.square().mean(), (x, w, b)))]


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
@pytest.mark.parametrize("sizes", SIZES, ids=["1d", "2d", "3d", "groups"])
def test_results_are_those_of_the_cpu(library, sizes, name):
    dtype, bound = getattr(torch, name), 1e-2 if name == "float16" else 1e-5
    expected = results("cpu", *sizes, dtype)
    for _ in range(2):  # the second time with the same plans
        for a, b in zip(results("cuda", *sizes, dtype), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=bound, atol=bound)
    assert library.done == [("conv_fprop", 0), ("conv_dgrad", 0), ("conv_wgrad", 0)] * 2
    assert len(cudnn._plans) == 3
    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() == 92800
    assert torch.backends.cudnn.source() == "libcudnn"


@pytest.mark.parametrize(
    ("settings", "refused", "engine"),
    [
        ({}, {0}, 1),
        ({}, {0, 1}, 2),
        ({"allow_tf32": False}, set(), 1),
        ({"deterministic": True}, {0}, 2),
        ({"allow_tf32": False, "deterministic": True}, set(), 2),
    ],
)
def test_engines_are_chosen(library, settings, refused, engine):
    library.refused = refused
    with torch.backends.cudnn.flags(enabled=True, **settings):
        F.conv2d(torch.randn(1, 2, 6, 6).cuda(), torch.randn(2, 2, 3, 3).cuda())
    assert library.done == [("conv_fprop", engine)]


def test_without_a_plan_convolutions_go_the_other_way(library):
    library.refused = {0, 1, 2}
    for a, b in zip(results("cuda", *SIZES[1], torch.float64), results("cpu", *SIZES[1], torch.float64), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    assert not library.done and list(cudnn._plans.values()) == [None] * 3


def test_a_library_that_does_not_work_here_is_none(library):
    library.has_gpu = False
    F.conv2d(torch.randn(1, 2, 6, 6).cuda(), torch.randn(2, 2, 3, 3).cuda())
    assert not library.done and torch.backends.cudnn.source() is None and not torch.backends.cudnn.is_available()


def test_all_descriptors_are_destroyed(library):
    results("cuda", *SIZES[1], torch.float32)
    cudnn._plans.clear()
    assert not library.held


def test_it_works_in_the_current_stream(library):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        F.conv2d(torch.randn(1, 2, 6, 6).cuda(), torch.randn(2, 2, 3, 3).cuda())
    assert library.stream == stream.cuda_stream
