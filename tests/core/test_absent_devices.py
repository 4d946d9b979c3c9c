"""Devices that only PyTorch has: they can be named, and answer as on a machine without them."""

import importlib
import pickle

import pytest

import cygrad as torch
from helpers import fails

KINDS = "xpu mps hpu mtia xla ipu lazy vulkan hip ve fpga maia privateuseone".split()
OF_AUTOCAST = {"xpu": "float16", "mps": "float16", "mtia": "float16", "ipu": "float16", "hpu": "bfloat16"}
OF_AUTOCAST |= {"maia": "bfloat16", "xla": "bfloat16"}
NO_BACKEND = "Could not run 'aten::empty.memory_format' with arguments from the '{}' backend. ..."


@pytest.mark.parametrize("kind", KINDS)
def test_names(kind):
    device = torch.device(kind, 1)
    assert (device.type, device.index, str(device)) == (kind, 1, f"{kind}:1") and device != torch.device("cpu")
    assert device == torch.device(f"{kind}:1") == pickle.loads(pickle.dumps(device))


def test_unknown_names():
    with fails(RuntimeError, "Expected one of cpu, cuda, ipu, xpu, ... device type at start of device string: foo"):
        torch.device("foo")


@pytest.mark.parametrize(
    ("kind", "error", "line"),
    [
        ("mps", NotImplementedError, NO_BACKEND.format("MPS")),
        ("xla", NotImplementedError, NO_BACKEND.format("XLA")),
        ("vulkan", NotImplementedError, NO_BACKEND.format("Vulkan")),
        ("xpu", AssertionError, "Torch not compiled with XPU enabled"),
        ("mtia", AssertionError, "Torch not compiled with MTIA enabled. Ensure you have ..."),
        ("hpu", ModuleNotFoundError, "No module named 'torch.hpu'"),
    ],
)
def test_no_tensors(kind, error, line):
    for call in (
        lambda: torch.zeros(2, device=kind),
        lambda: torch.empty_like(torch.ones(2), device=kind),
        lambda: torch.nn.Linear(2, 2, device=kind),
    ):
        with fails(error, line):
            call()
    with fails(error if error is not NotImplementedError else RuntimeError, "..."):
        torch.ones(2).to(kind)
    assert not getattr(torch.ones(2), f"is_{kind}", False)


def test_moves():
    with fails(RuntimeError, "PyTorch is not linked with support for mps devices"):
        torch.ones(2).to("mps")
    with fails(RuntimeError, "PyTorch is not linked with support for mps devices"):
        torch.nn.Linear(2, 2).to("mps")


def test_default_device():
    torch.set_default_device("mps")
    try:
        assert torch.get_default_device() == torch.device("mps")
        with fails(NotImplementedError, NO_BACKEND.format("MPS")):
            torch.zeros(2)
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).is_cpu


# --- autocast ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OF_AUTOCAST)
def test_autocast(kind):
    assert torch.amp.is_autocast_available(kind) and not torch.is_autocast_enabled(kind)
    assert torch.get_autocast_dtype(kind) is getattr(torch, OF_AUTOCAST[kind])
    x = torch.ones(2, 2)
    with torch.autocast(kind):
        assert torch.is_autocast_enabled(kind) and not torch.is_autocast_enabled("cpu")
        assert (x @ x).dtype is torch.float32
        with torch.autocast("cpu", dtype=torch.float16):
            assert (x @ x).dtype is torch.float16
    assert not torch.is_autocast_enabled(kind)
    torch.set_autocast_dtype(kind, torch.float16)
    torch.set_autocast_enabled(kind, True)
    assert torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) is torch.float16
    torch.set_autocast_enabled(kind, False)
    torch.set_autocast_dtype(kind, getattr(torch, OF_AUTOCAST[kind]))
    assert torch.amp.GradScaler(kind).is_enabled()


def test_autocast_of_other_dtypes():
    with pytest.warns(UserWarning, match="^In MPS autocast, but the target dtype is not supported"):
        assert not torch.autocast("mps", dtype=torch.float32)._enabled


def test_no_autocast():
    assert not torch.amp.is_autocast_available("meta")
    with fails(RuntimeError, "unknown device type for autocast in get_autocast_dispatch_key_from_device_type"):
        torch.is_autocast_enabled("vulkan")
    with fails(RuntimeError, "unsupported scalarType"):
        torch.get_autocast_dtype("meta")
    with fails(RuntimeError, "User specified an unsupported autocast device_type 'meta'"):
        torch.autocast("meta")


def test_meta_tensors_are_not_cast():
    x = torch.ones(2, 2, device="meta")
    with torch.autocast("cpu", dtype=torch.float16):
        assert (x @ x).dtype is torch.float32


# --- modules of devices ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mps", "mtia", "xpu"])
def test_modules(kind):
    module = torch.get_device_module(kind)
    assert module is getattr(torch, kind) is torch.get_device_module(torch.device(kind))
    assert not module.is_available() and module.device_count() == 0
    module.manual_seed(1)
    assert all(hasattr(module, name) for name in module.__all__)


def test_module_of_a_device():
    assert torch.get_device_module("cpu") is torch.cpu and torch.get_device_module("cuda") is torch.cuda
    with fails(RuntimeError, "Device 'hpu' does not have a corresponding module registered as 'torch.hpu'."):
        torch.get_device_module("hpu")
    with fails(RuntimeError, "Invalid value of device '3', expect torch.device, str, or None"):
        torch.get_device_module(3)


@pytest.mark.parametrize(
    ("call", "error", "line"),
    [
        ("mps.synchronize", RuntimeError, "Cannot execute deviceSynchronize() without MPS backend."),
        ("mps.current_allocated_memory", RuntimeError, "Cannot execute getCurrentAllocatedMemory() without ..."),
        ("mps.Event", RuntimeError, "Cannot execute acquireEvent() without MPS backend."),
        ("mps.profiler.start", RuntimeError, "Cannot execute profilerStartTrace() without MPS backend."),
        ("xpu.synchronize", AssertionError, "Torch not compiled with XPU enabled"),
        ("xpu.mem_get_info", AssertionError, "Torch not compiled with XPU enabled"),
        ("xpu.Stream", RuntimeError, "Tried to instantiate dummy base class Stream"),
        ("mtia.empty_cache", RuntimeError, "Cannot execute emptyCache() without MTIA backend."),
        ("backends.mps.is_macos_or_newer", RuntimeError, "Cannot execute isOnMacOSorNewer() without MPS backend."),
    ],
)
def test_refusals(call, error, line):
    module, _, name = call.rpartition(".")
    with fails(error, line):
        getattr(importlib.import_module(f"cygrad.{module}"), name)()


def test_answers():
    assert torch.xpu.memory_allocated() == 0 and torch.xpu.get_rng_state_all() == []
    torch.xpu.memory_stats()["own"] = 1
    assert torch.xpu.memory_stats() == {}, "each call gives a new one"
    assert torch.xpu.empty_cache() is torch.xpu.seed() is None
    with torch.xpu.device(-1), torch.xpu.device_of(torch.ones(1)):
        pass
    with fails(AssertionError, "Torch not compiled with XPU enabled"), torch.xpu.device(0):
        pass


# --- streams and events of the CPU -------------------------------------------------------------


def test_streams():
    stream, event = torch.Stream("cpu"), torch.Event("cpu")
    assert stream == torch.Stream() and hash(stream) == hash(torch.Stream()) and stream.device == torch.device("cpu")
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and stream.query()
    assert event.query() and stream.wait_event(event) is event.wait() is stream.synchronize() is None
    with stream as same:
        assert same is stream
    for call in (event.record, stream.record_event, lambda: stream.wait_stream(stream)):
        with fails(RuntimeError, "cpu backend doesn't support events."):
            call()
    with fails(ValueError, "Both events must be created with argument 'enable_timing=True'."):
        event.elapsed_time(event)
    with fails(RuntimeError, "PyTorch is not linked with support for mps devices"):
        torch.Stream("mps")


def test_the_cpu_as_a_device():
    cpu = torch.cpu
    assert cpu.is_available() and cpu.is_initialized() and cpu.device_count() == 1 and cpu.current_device() == "cpu"
    assert cpu.synchronize() is cpu.set_device("cpu") is None
    own, former = cpu.Stream(), cpu.current_stream()
    with cpu.stream(own):
        assert cpu.current_stream() is own
    assert cpu.current_stream() is former and cpu.Event().query()
    with pytest.warns(FutureWarning, match="torch.amp.autocast\\('cpu'"), cpu.amp.autocast(dtype=torch.float16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float16


# --- the accelerator, and GPUs -----------------------------------------------------------------


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_an_accelerator():
    accelerator = torch.accelerator
    assert not accelerator.is_available() and accelerator.current_accelerator() is None
    for name in "current_device_index synchronize get_memory_info memory_stats empty_cache current_stream".split():
        with fails(RuntimeError, "Cannot access accelerator device when none is available."):
            getattr(accelerator, name)()
    with accelerator.device_index(None):
        pass
    assert torch.cuda.get_arch_list() == [] and torch.cuda.default_generators == () and not torch.cuda._initialized
    with fails(AssertionError, "Torch not compiled with CUDA enabled"):
        torch.cuda.cudart()
    with fails(AssertionError, "Torch not compiled with CUDA enabled"), torch.cuda.profiler.profile():
        pass
    with fails(TypeError, "type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled."):
        torch.cuda.FloatTensor([1])
    with pytest.warns(FutureWarning, match="^torch.cuda.reset_max_memory_allocated now calls"):
        torch.cuda.reset_max_memory_allocated()


def test_types_on_gpus():
    assert repr(torch.cuda.HalfTensor) == "<class 'torch.cuda.HalfTensor'>" and torch.cuda.HalfTensor.is_cuda
    assert not isinstance(torch.ones(2), torch.cuda.FloatTensor | torch.cuda.sparse.FloatTensor)


# --- settings of backends ----------------------------------------------------------------------


def test_backends():
    backends = torch.backends
    assert backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    assert backends.quantized.engine == "none" and not backends.xnnpack.enabled and not backends.nnpack.is_available()
    with fails(RuntimeError, "foo is not a valid value for quantized engine"):
        backends.quantized.engine = "foo"
    with fails(RuntimeError, "quantized engine FBGEMM is not supported"):
        backends.quantized.engine = "fbgemm"
    x = torch.ones(1, 1, 2, 2)
    params = backends.cuda.SDPAParams(x, x, x, None, 0.0, False, False)
    assert params.query is x and not backends.cuda.can_use_flash_attention(params, debug=True)
    with backends.__allow_nonbracketed_mutation():
        backends.cudnn.benchmark = backends.cudnn.benchmark
    assert not backends.flags_frozen() and importlib.util.find_spec("cygrad.backends.mps").name == "cygrad.backends.mps"


# --- random numbers ----------------------------------------------------------------------------


def test_fork_rng():
    torch.manual_seed(3)
    expected = torch.rand(2)
    for kind in ("mps", "xpu", None):
        torch.manual_seed(3)
        with torch.random.fork_rng(device_type=kind):
            torch.rand(5)
        assert torch.rand(2).equal(expected)
    with torch.random.fork_rng(device_type="meta"):
        torch.manual_seed(3)
    assert torch.rand(2).equal(expected), "the device meta has no numbers to restore"
