"""Queries and settings of GPUs and compilers in scripts work here, where there are none."""

import warnings

import pytest

import cygrad as torch


def test_the_first_lines_of_a_script(monkeypatch):
    for settings, name in (("cudnn", "benchmark"), ("cudnn", "deterministic"), ("cuda.matmul", "allow_tf32")):
        monkeypatch.setattr(f"cygrad.backends.{settings}.{name}", False)  # restored at the end
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.cuda.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert not torch.backends.mps.is_available() and not torch.backends.cudnn.is_available()
    model = torch.compile(torch.nn.Linear(2, 1).to(device), mode="reduce-overhead")
    assert type(model._orig_mod) is torch.nn.Linear and model(torch.ones(3, 2, device=device)).shape == (3, 1)
    torch.cuda.empty_cache()
    assert torch.cuda.device_count() == torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated(0) == 0


def test_libraries_that_are_not_in_use(monkeypatch):
    backends = torch.backends
    assert not (backends.mkl.is_available() or backends.mkldnn.is_available() or backends.openmp.is_available())
    for way in ("flash", "math", "mem_efficient", "cudnn"):
        is_enabled = getattr(backends.cuda, f"{way}_sdp_enabled")
        assert is_enabled()
        getattr(backends.cuda, f"enable_{way}_sdp")(False)
        assert not is_enabled()
        getattr(backends.cuda, f"enable_{way}_sdp")(True)
    with pytest.raises(KeyError), backends.cuda.sdp_kernel(enable_flash=False):
        assert not backends.cuda.flash_sdp_enabled()
        raise KeyError
    assert backends.cuda.flash_sdp_enabled()
    for library, other in (("linalg", "magma"), ("blas", "cublaslt"), ("rocm_fa", "aotriton")):
        choose = getattr(backends.cuda, f"preferred_{library}_library")
        before = choose()
        assert choose(other) is choose() is not before and choose(before) is before
        with pytest.raises(RuntimeError, match="Unknown input value. Choose from: default, "):
            choose("other")
        with pytest.raises(RuntimeError, match="Unknown input value type."):
            choose(3)
    with backends.mkldnn.flags(enabled=False):
        backends.mha.set_fastpath_enabled(False)
    assert not backends.mha.get_fastpath_enabled()
    backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize(
    "call", ["current_device()", "synchronize()", "get_device_name(0)", "get_device_properties(0)", "set_device(0)"]
)
def test_what_needs_a_gpu_says_that_there_is_none(call):
    with pytest.raises(RuntimeError, match="^No CUDA GPUs are available\n.*device='cpu'"):
        eval(f"torch.cuda.{call}")


def test_mixed_precision_for_gpus_is_off():
    model, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaler = torch.cuda.amp.GradScaler()
        with torch.cuda.amp.autocast():
            loss = model(x).sum()
    assert [w.category for w in caught] == [FutureWarning, UserWarning] * 2
    assert loss.dtype == torch.float32 and not scaler.is_enabled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.bias.item()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert model.bias.item() == pytest.approx(before - 0.3)


def test_an_unknown_precision_changes_nothing():
    with pytest.warns(UserWarning, match="^x is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("x")
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "text",
    """
    cuda.is_available() cuda.device_count() cuda.is_initialized() cuda.memory_allocated() cuda.max_memory_allocated()
    cuda.memory_reserved() cuda.max_memory_reserved() cuda.empty_cache() cuda.manual_seed(3) cuda.manual_seed_all(3)
    cuda.is_bf16_supported() cuda.set_device(-1) backends.cudnn.enabled backends.cudnn.benchmark
    backends.cudnn.deterministic backends.cudnn.allow_tf32 backends.cudnn.is_available() backends.cudnn.version()
    backends.cuda.is_built() backends.cuda.matmul.allow_tf32 backends.mps.is_available() backends.mps.is_built()
    get_float32_matmul_precision() cuda.amp.GradScaler().is_enabled() cuda.amp.autocast().fast_dtype
    """.split(),
)
def test_as_pytorch_without_gpu(text):
    pytorch = pytest.importorskip("torch")
    if pytorch.cuda.is_available():
        pytest.skip("PyTorch has a GPU here")
    assert str(eval(f"torch.{text}")) == str(eval(f"pytorch.{text}"))
