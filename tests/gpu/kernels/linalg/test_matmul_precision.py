"""The requested precision of matrix products is passed on to cuBLAS, on a GPU or the stand-in."""

import importlib.util
from importlib import import_module

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.libraries import cublas as own
from cygrad._kernels.gpu.runtime.matmul_precision import Precision

matmul = torch.backends.cuda.matmul


@pytest.fixture(autouse=True)
def gpu(cupy, monkeypatch):
    for name in ("matmul", "fp16_accumulation"):
        monkeypatch.setattr(Precision, name, getattr(Precision, name))
    monkeypatch.setattr(Precision, "reduced", dict(Precision.reduced))
    yield import_module("cupy._core._routines_linalg")
    monkeypatch.undo()
    torch.set_float32_matmul_precision("highest")


def told(products, dtype):
    return products.get_compute_type(np.dtype(dtype))


def test_tf32_is_off_until_it_is_asked_for(gpu):
    assert not matmul.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
    assert told(gpu, "float32") == gpu.COMPUTE_TYPE_DEFAULT
    matmul.allow_tf32 = True
    assert torch.get_float32_matmul_precision() == "high"
    assert told(gpu, "float32") == gpu.COMPUTE_TYPE_TF32
    assert told(gpu, "float64") != gpu.COMPUTE_TYPE_TF32
    torch.set_float32_matmul_precision("highest")
    assert not matmul.allow_tf32
    assert told(gpu, "float32") == gpu.COMPUTE_TYPE_DEFAULT
    torch.set_float32_matmul_precision("medium")
    assert matmul.allow_tf32
    assert told(gpu, "float32") == gpu.COMPUTE_TYPE_TF32


def test_what_is_set_before_cupy_is_loaded_is_told_it(gpu, monkeypatch):
    monkeypatch.setattr(cupy_library, "_found", None)
    matmul.allow_tf32 = True
    assert told(gpu, "float32") == gpu.COMPUTE_TYPE_DEFAULT
    torch.zeros(1, device="cuda")
    assert told(gpu, "float32") == gpu.COMPUTE_TYPE_TF32


def test_half_precision(gpu, monkeypatch):
    cublas = import_module("cupy_backends.cuda.libs.cublas")
    modes, handle = [], cupy_library.cupy().cuda.get_cublas_handle()
    product = own.multiply

    def noted(*args):
        modes.append(cublas.getMathMode(handle))
        return product(*args)

    monkeypatch.setattr(own, "multiply", noted)
    half, single = (torch.ones(2, 2, device="cuda", dtype=dtype) for dtype in (torch.float16, torch.float32))
    assert matmul.allow_fp16_reduced_precision_reduction
    assert matmul.allow_bf16_reduced_precision_reduction
    _ = half @ half
    matmul.allow_fp16_reduced_precision_reduction = False
    _ = half @ half
    _ = single @ single
    matmul.allow_bf16_reduced_precision_reduction = False
    _ = single @ single
    assert modes == [0, 16, 0, 0]
    assert cublas.getMathMode(handle) == 0
    matmul.allow_fp16_accumulation = True
    assert told(gpu, "float16") == gpu.COMPUTE_TYPE_FP16
    matmul.allow_fp16_accumulation = False
    assert told(gpu, "float16") == gpu.COMPUTE_TYPE_DEFAULT


def test_wrong_values():
    with pytest.raises(RuntimeError, match="^set_allow_tf32_cublas expects a bool, but got int"):
        matmul.allow_tf32 = 1
    with pytest.raises(AttributeError):
        matmul.allow_tf23 = True
    with pytest.warns(UserWarning, match="is not one of 'highest'"):
        torch.set_float32_matmul_precision("low")
    assert torch.get_float32_matmul_precision() == "highest"


def test_flags_of_cudnn_are_kept():
    cudnn = torch.backends.cudnn
    assert cudnn.enabled
    with cudnn.flags(enabled=False, benchmark=True):
        assert not cudnn.enabled
        assert cudnn.benchmark
    assert cudnn.enabled
    assert not cudnn.benchmark
    if importlib.util.find_spec("cudnn") is None:
        assert not cudnn.is_available()
        assert cudnn.version() is None
    elif cudnn.is_available():
        assert cudnn.version() > 8000
