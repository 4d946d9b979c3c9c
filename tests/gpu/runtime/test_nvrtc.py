"""NVIDIA's compiler accepts all kernel sources. Needs CuPy and NVRTC (`pip install 'cupy-cuda12x[ctk]'`), no GPU.

With `CYGRAD_NVRTC=all`, every source for every dtype and length is compiled for three GPU architectures, which takes
many minutes; otherwise only one source per kernel, for one architecture.
"""

import functools
import importlib
import os
import pkgutil
import re
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType

import cupy_standin
import numpy as np
import pytest
from cupy_standin import nvrtc
from ops.calls import SAMPLES, Call, on_gpu

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._kernels import gpu
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.launch import captured_work
from cygrad._kernels.gpu.launch.elementwise_program import Elementwise
from cygrad._kernels.gpu.launch.program import Program

ALL = os.environ.get("CYGRAD_NVRTC") == "all"
KINDS = (70, 80, 90) if ALL else (80,)
TYPES = ("float16", "bfloat16", "float32", "float64") if ALL else ("bfloat16", "float64")
JOINED = "cygrad_group", "cygrad_rows"  # kernels that are made for each step
MOST_SHARED, MOST_SPILLED = 48 << 10, 96  # bytes per block, and per thread
OPTIMIZERS = "SGD Adam Adadelta Adagrad Adamax ASGD NAdam RAdam RMSprop Rprop".split()

pytestmark = [pytest.mark.slow, pytest.mark.leaks_ok("launches that do not run leave errors with frames")]


@pytest.fixture(scope="module")
def compiler():
    try:
        return nvrtc.Compiler()
    except ImportError as error:
        pytest.skip(str(error))


def steps(x):
    """Run the steps of all optimizers and of a GradScaler."""
    weight = x.detach().requires_grad_()
    weight.grad = torch.ones_like(weight)
    for name in OPTIMIZERS:
        getattr(torch.optim, name)([weight]).step()
        if name not in ("SGD", "Adagrad"):
            getattr(torch.optim, name)([weight], capturable=True).step()
        step = torch.compile(getattr(torch.optim, name)([weight]).step)
        for _ in range(4):  # then a graph has been captured, whose kernels read numbers that are sent to the GPU
            step()
    torch.optim.Muon([weight]).step()
    scaler, sgd = torch.amp.GradScaler("cuda"), torch.optim.SGD([weight])
    scaler.scale(torch.ones((), device="cuda"))
    scaler.step(sgd)
    scaler.update()


def of_shapes(x):
    """Run functions with special kernels for shapes that no sample has."""
    images = x.view(2, 3, -1)
    F.batch_norm(images, None, None, training=True).sum().backward()
    x.flatten().topk(3)
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        for heads in (20, 32, 64, 128):
            for count in (1, 100):  # fewer heads than multiprocessors, and more
                q = x.flatten()[: 4 * heads].view(1, 1, 4, heads).expand(count, 1, 4, heads)
                F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    torch.set_float32_matmul_precision("highest")


def recurrent(x):
    """Run narrow layers, layers that are too wide for one launch, and a network twice under autocast."""
    relu = functools.partial(torch.nn.RNN, nonlinearity="relu")
    for make in (torch.nn.RNN, relu, torch.nn.GRU, torch.nn.LSTM):
        for width in (5, 520):
            make(2, width, device="cuda", dtype=x.dtype)(x.flatten()[:6].view(3, 1, 2))[0].sum().backward()
    layer = torch.nn.Linear(4, 3, device="cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            layer(torch.ones(2, 4, device="cuda")).sum().backward()


def joined(x):
    """Capture functions that are launched together."""
    work = captured_work.CapturedWork(0)
    with work.capturing([]):
        y = F.gelu(x.tanh() * x + x.exp() * 2.5) / x[:1] - F.softplus(x) * x[0, 0]
        z = (F.leaky_relu(y, 0.1) + x.sigmoid()).clamp(0, 1)
        del y
        (z * z).sum(), z.t() * z.t(), z.clone()
    for function in (F.softmax, F.log_softmax):
        rows_joined(work_of_rows(function), x)
    rows_joined(normalized_rows, x)
    rows_joined(reduced_rows, x)


def work_of_rows(function):
    def work(x):
        y = function(x.tanh() * x[:1] + x[0, 0], 1)
        return y, torch.autograd.grad(y, x, x.detach() * 2)

    return work


def normalized_rows(x):
    weight, bias = (t.detach().requires_grad_() for t in (x[0], x[1]))
    y = F.gelu(F.layer_norm(x * 2 + x.detach(), x.shape[1:], weight, bias) * x.detach())
    y = F.rms_norm(y, x.shape[1:]) + x
    return y, torch.autograd.grad(y, (x, weight, bias), x.detach() * 2)


def reduced_rows(x):
    x = x.detach()
    y = x - x.mean(1, keepdim=True) * x.std(1, keepdim=True) + x.logsumexp(1, keepdim=True)
    found = [(y * 2).norm(p, dim=1) for p in (0, 1, 2, torch.inf, -torch.inf)]
    return found, y.amax(1), y.amin(1) + 1, y.var(1), (y[:, :512].exp() * 2).mean(), torch.cat([x] * 4).tanh().sum()


def rows_joined(function, x):
    work = captured_work.CapturedWork(0)
    with work.capturing([]):
        kept = function(x)
    del kept


def run(name, sample, change, on):
    call = Call(name, sample, change, on=on)
    outputs = [out for out in call.run() if isinstance(out, torch.Tensor) and out.requires_grad]
    if outputs and call.leaves:
        call.gradients([torch.ones_like(out) for out in outputs], outputs)


@pytest.fixture(scope="module")
def texts(compiler):
    """{source: name} of the kernels that ops launch on the stand-in. None is run, so results are meaningless."""
    with cupy_standin.installed() as cupy, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy_library, "_found", None)
        cupy_library.cupy()
        found, on = nvrtc.recorded(patch), on_gpu(cupy)
        for kind in TYPES:
            dtype = getattr(torch, kind)
            torch.cuda.warmup(dtypes=[dtype])
            for workload in (steps, of_shapes, recurrent, joined):
                workload(torch.ones(6, 1024, dtype=dtype, device="cuda", requires_grad=True))

            def change(array, to=dtype.numpy):
                return array.astype(
                    {"f": to, "c": np.complex64 if to.itemsize < 8 else array.dtype}.get(array.dtype.kind, array.dtype)
                )

            for name, samples in SAMPLES.items():
                for sample in samples:
                    try:
                        run(name, sample, change, on)
                    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, ArithmeticError):
                        pass  # the op does not support the dtype, or inspects a result
        yield found


def held(value):
    """The names of the kernels in a module attribute."""
    if isinstance(value, Program):
        return {value.name}
    if isinstance(value, Elementwise):
        return {f"cygrad_{value.__name__}"}
    if isinstance(value, FunctionType):
        value = [cell.cell_contents for cell in value.__closure__ or ()]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return set().union(*map(held, inner))


def needs_tensor_cores(text):
    return "#define TENSOR 1" in text or "cp.async" in text


def test_all_kernels_are_there(texts):
    """Every kernel of every module has been launched, so that the other tests omit none."""
    modules = [importlib.import_module(info.name) for info in pkgutil.walk_packages(gpu.__path__, f"{gpu.__name__}.")]
    names = set().union(*(held(value) for module in modules for value in vars(module).values()))
    assert len(names) > 80
    assert names <= set(texts.values())


def test_the_compiler_takes_them(texts, compiler):
    """No errors or warnings, no more shared memory than a block has, and hardly any register spills."""
    chosen = {text if ALL or name in JOINED else name: (text, name) for text, name in texts.items()}.values()
    given = [(*item, kind) for item in chosen for kind in KINDS]
    given = [one for one in given if one[2] >= 80 or not needs_tensor_cores(one[0])]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        reports = list(threads.map(lambda one: compiler.compiled(*one), given))
    for (text, name, kind), (is_compiled, log) in zip(given, reports):
        assert is_compiled, f"{name} for {kind}:\n{log}\n{text}"
        warnings = re.findall(r"warning #(?!177-D).*", log)  # except for unused variables
        assert not warnings, f"{name} for {kind}:\n{log}"
        assert nvrtc.number(r"(\d+) bytes smem", log) <= MOST_SHARED, name
        assert nvrtc.number(r"(\d+) bytes spill stores", log) <= MOST_SPILLED, f"{name} for {kind}:\n{log}"


def test_the_compiler_says_what_is_wrong(compiler):
    is_compiled, log = compiler.compiled('extern "C" __global__ void f(float* x) { x[0] = y; }', "f", KINDS[0])
    assert not is_compiled
    assert 'identifier "y" is undefined' in log
