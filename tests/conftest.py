"""Fixtures and hooks for all tests: the installed package, sealed global state, seeds, leak checks."""

import faulthandler
import functools
import gc
import os
import random
import sys
import sysconfig
import time
import zlib
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.runner import runtestprotocol
from checkout import CHECKOUT

try:
    import cygrad
    from cygrad._core.errors import messages
    from cygrad._core.graph.internals import live_tensors
    from cygrad._ops.lazy_families import import_all
    from cygrad.autograd.graph import live_nodes

    import_all()  # many tests inspect every op
except ImportError:  # not compiled: only tests that read sources can pass
    cygrad = None

pytest_plugins = ["on_device"] if cygrad else []

# A shared machine may delay any single example, which means nothing. With CYGRAD_REPRODUCIBLE set, every run uses the
# same examples, so that a failing build is caused by the change; otherwise each run explores new ones.
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True)
hypothesis.settings.register_profile("reproducible", deadline=None, derandomize=True)
hypothesis.settings.load_profile("reproducible" if os.environ.get("CYGRAD_REPRODUCIBLE") else "explore")


# --- The package under test --------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _gil_stays_off():
    """On a free-threaded build that starts without the GIL, fail if anything enables it."""
    yield
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "an extension module has switched the GIL on"


def pytest_report_header():
    if cygrad is None:
        return "cygrad: not compiled (pip install -e .)"
    return f"cygrad: {cygrad.__version__} from {Path(cygrad.__file__).parent}"


def pytest_addoption(parser):
    what = "where the generic tests of ops run: on the CPU, or on a GPU or the stand-in for one"
    parser.addoption("--device", choices=("cpu", "cuda"), default="cpu", help=what)
    what = "run one in N of the tests, always the same ones, and all that are marked `interpreter`"
    parser.addoption("--sample", type=int, metavar="N", help=what)
    what = "seconds without a new test after which a process shows where it is; 0 for never"
    parser.addoption("--hangs-after", type=float, default=300, metavar="SECONDS", help=what)


def pytest_configure():
    # The sources in the checkout would hide files that are missing from the wheel.
    if os.environ.get("CYGRAD_TEST_INSTALLED"):
        where = Path(cygrad.__file__).resolve() if cygrad else CHECKOUT
        if where.is_relative_to(CHECKOUT / "cygrad") or where == CHECKOUT:
            pytest.exit("these tests are to run on an installed cygrad, and there is none", 4)


# --- Running ------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Report a test once where pytest-xdist runs it, and not in five messages: most tests take no longer than these."""
    show_where_it_hangs(item.config)
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


watched_since = float("-inf")


def show_where_it_hangs(config):
    """Like pytest's `faulthandler_timeout`, which starts a thread for each test; here there is one for many."""
    global watched_since
    seconds, now = config.getoption("hangs_after"), time.monotonic()
    if seconds and now - watched_since > seconds / 5:
        watched_since = now
        faulthandler.dump_traceback_later(seconds, file=config.stash[fault_handler_stderr_fd_key])


def pytest_enter_pdb():
    faulthandler.cancel_dump_traceback_later()


def pytest_unconfigure():
    faulthandler.cancel_dump_traceback_later()


# --- Choosing -----------------------------------------------------------------------------------

# Directories whose tests may depend on the interpreter: refcounts, frames, threads, pickles.
INTERPRETER = {"autograd", "diagnostics", "engine", "graph", "model", "serialization", "tensor"}


@functools.cache
def is_about_the_interpreter(path):
    return not INTERPRETER.isdisjoint(path.relative_to(CHECKOUT).parts)


@pytest.hookimpl(tryfirst=True)  # before `-m` evaluates the markers
def pytest_collection_modifyitems(config, items):
    for item in items:
        if "cupy" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
        if is_about_the_interpreter(item.path):
            item.add_marker(pytest.mark.interpreter)
    # PyTorch and a GPU are optional: these tests run where they are available.
    requirements = {
        "oracle": (_has_torch, "compares with PyTorch, which is not installed (tox -e oracle)"),
        "cuda": (_has_cuda, "needs CuPy and a CUDA device"),
    }
    for name, (is_met, reason) in requirements.items():
        marked = [item for item in items if item.get_closest_marker(name)]
        if marked and not is_met():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))
    if share := config.getoption("sample"):
        left_out = [item for item in items if not _is_in_sample(item, share)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _is_in_sample(item, share)]


def _is_in_sample(item, share):
    """Whether `--sample` keeps a test. The choice is a hash of its name, so it is the same in every run."""
    if item.get_closest_marker("interpreter"):
        return True
    name = item.nodeid.rpartition("/")[2]  # without the directory, so that moving a file changes nothing
    return zlib.crc32(name.encode()) % share == 0


def _has_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def _has_cuda():
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # without a driver, CuPy raises its own errors
        return False


# --- GPUs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cupy():
    """CuPy or its stand-in, whichever cygrad imports."""
    import cupy_standin
    from cupy_standin import blas, blas_lt, compiler

    from cygrad._core.engine.backward import attend_gpus
    from cygrad._kernels.device import cupy_library, gpu_forms
    from cygrad._kernels.gpu.libraries import cublas, cublas_lt

    if cupy_library.is_available():
        with cygrad.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield cupy_library.cupy()
        return
    before = dict(gpu_forms._forms)
    with cupy_standin.installed() as module, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cublas, "_library", functools.partial(getattr, blas, "Library"))  # not code that steps run
        patch.setattr(cublas_lt, "library", functools.partial(getattr, blas_lt, "Library"))
        cupy_library._found = None
        cupy_library.switches.own_launches = compiler.compiler() is not None
        assert cupy_library.cupy() is module
        yield module
    cupy_library.switches.own_launches = True
    cupy_library._found = None
    attend_gpus(False)
    gpu_forms._forms.clear()
    gpu_forms._forms.update(before)


# --- Seeds and global state --------------------------------------------------------------------


def set_seeds():
    """Seed all generators, so that a test sees the same random numbers alone or after others."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  tests may use the global generator
    if cygrad:
        cygrad.manual_seed(0)
        messages.said.clear()
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def sealed(request):
    """Seal a test off from those before and after it, by one fixture, since each one costs time."""
    set_seeds()
    count_live_objects(request.node)
    yield
    if cygrad is not None:
        put_state_back()


def put_state_back():
    """Restore global state after a test; fail if a mode outlived its `with` block.

    A test may set a default dtype, anomaly mode or flag. A grad mode left behind is more often the library's fault: an
    error path that did not restore it.
    """
    left_behind = []
    if not cygrad.is_grad_enabled():
        cygrad.set_grad_enabled(True)
        left_behind.append("grad mode off")
    if cygrad.is_inference_mode_enabled():
        cygrad.inference_mode(False).__enter__()
        cygrad.set_grad_enabled(True)
        left_behind.append("inference mode on")
    cygrad.set_default_dtype(cygrad.float32)
    cygrad.autograd.set_detect_anomaly(False)
    cygrad.backends.cudnn.benchmark = False
    np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")  # a Ctrl-C may skip the exit of `np.errstate`
    assert not left_behind, f"the test ended with {' and '.join(left_behind)}"


# --- Leaks -------------------------------------------------------------------------------------

LIVE_BEFORE = pytest.StashKey()
LET_OFF = pytest.StashKey()

# Counting walks over all objects. Objects that exist before a test are frozen and thus skipped. Without the GIL,
# however, the walk covers all memory, frozen or not, and takes longer than most tests, so there we count once per file.
ONCE_FOR_EACH_FILE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def live_objects():
    """The number of graph nodes and tensors in this process."""
    if cygrad is None:
        return {}
    return {"nodes": live_nodes(), "tensors": live_tensors()}


def watched(item):
    """The scope that must not leak: a test, or all tests of a file."""
    return item.parent if ONCE_FOR_EACH_FILE else item


def begin_watching(node):
    gc.collect()
    gc.freeze()
    node.stash[LIVE_BEFORE] = live_objects()


def count_live_objects(item):
    """Count before a test's own fixtures are created, but after those of its module and session."""
    node = watched(item)
    if node is item or LIVE_BEFORE not in node.stash:
        begin_watching(node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed or item.get_closest_marker("leaks_ok"):
        watched(item).stash[LET_OFF] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Check that no nodes or tensors are left after each test.

    This is a hook and not a fixture's teardown because only here have all fixtures released their values. Failed tests
    are exempt: their tracebacks keep their variables alive.
    """
    result = yield
    if isinstance(item, pytest.Function):
        # pytest releases fixture values after this hook, and attributes of test instances never.
        item.funcargs.clear()
        if item.instance is not None:
            vars(item.instance).clear()
    node = watched(item)
    before = node.stash.get(LIVE_BEFORE, None)
    is_last = nextitem is None or watched(nextitem) is not node
    if before is None or LET_OFF in node.stash or not is_last:
        return result
    after = live_objects()
    if any(after[kind] > before[kind] for kind in before):
        gc.collect()
        after = live_objects()
    leaked = {kind: after[kind] - before[kind] for kind in before if after[kind] > before[kind]}
    if leaked:
        counts = " and ".join(f"{count} {kind}" for kind, count in leaked.items())
        whose = "the tests of the file" if node is not item else "the test"
        pytest.fail(f"{whose} left {counts} alive that gc.collect() cannot free", pytrace=False)
    return result
