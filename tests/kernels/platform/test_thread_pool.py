"""Threads that share the work on one array: results do not depend on their number, in any kind of program."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from arrays_zoo import values

import cygrad
from cygrad._core.runtime import threads
from cygrad._kernels.cpu.base import copying, elementwise, reduce
from cygrad._kernels.cpu.base.arrays import cast
from cygrad._kernels.cpu.base.matmul import matmul
from cygrad._kernels.cpu.base.ufunc import Ufunc
from cygrad._kernels.cpu.nn import activations
from cygrad._kernels.cpu.optim import optim
from cygrad._kernels.platform import machine

pytestmark = pytest.mark.interpreter

COUNTS = [1, 2, 3, 7, 64]


@pytest.fixture(autouse=True)
def put_back():
    former = cygrad.get_num_threads()
    yield
    cygrad.set_num_threads(former)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def for_all_counts(function):
    """Return the results for one thread, after checking that other numbers give the same bits."""
    cygrad.set_num_threads(1)
    expected = function()
    for count in COUNTS:
        cygrad.set_num_threads(count)
        for a, b in zip(expected, function(), strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            assert a.tobytes() == b.tobytes(), count
    return expected


# --- Results -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [16383, 16384, 20001, 65536, 65537, 100_000, 300_001])
def test_runs(n, rng):
    x, y = rng.standard_normal((2, n), dtype=np.float32)
    add, cbrt, less = Ufunc(np.add), Ufunc(np.cbrt), Ufunc(np.less)
    results = for_all_counts(lambda: [add(x, y), cbrt(x), less(x, y), add(x, 2.0), add(x, x[:1])])
    np.testing.assert_allclose(results.pop(1), np.cbrt(x.astype("d")), rtol=5e-7)
    for result, expected in zip(results, [x + y, x < y, x + np.float32(2), x + x[0]], strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("m", "n"),
    [((300, 200), (200, 500)), ((64, 784), (784, 128)), ((1, 3000), (3000, 1001)), ((50, 70, 60), (50, 60, 80))],
)
@pytest.mark.parametrize("dtype", ["f", "d", "F"])
def test_products(m, n, dtype, rng):
    a, b = values(rng, m, dtype), values(rng, n, dtype)
    for_all_counts(lambda: [matmul(a, b), matmul(a, np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2))])


@pytest.mark.parametrize(
    "shape", [(3, 100_000), (100_000, 3), (40, 50, 60), (2, 1, 70_000), (70_000, 1, 2), (1, 90_001)]
)
def test_walks(shape, rng):
    x = rng.standard_normal(shape)
    row, column = rng.standard_normal(shape[-1:]), rng.standard_normal((*shape[:-1], 1))
    subtract, cbrt = Ufunc(np.subtract), Ufunc(np.cbrt)
    strided = rng.standard_normal((*shape, 2))[..., 0]

    def work():
        return [subtract(x, row), subtract(column, x), subtract(strided, x), cbrt(strided), subtract(x[::-1], x)]

    results = for_all_counts(work)
    np.testing.assert_allclose(results.pop(3), np.cbrt(strided), rtol=1e-15)
    for result, expected in zip(results, [x - row, column - x, strided - x, x[::-1] - x], strict=True):
        np.testing.assert_array_equal(result, expected)


def test_in_place(rng):
    x = rng.standard_normal(200_000)
    multiply = Ufunc(np.multiply)

    def work():
        out = x.copy()
        multiply(out, out, out=out)
        return [out]

    np.testing.assert_array_equal(for_all_counts(work)[0], x * x)


def test_an_error_in_a_loop_is_raised():
    with pytest.raises(ValueError, match="negative integer powers"):
        Ufunc(np.power)(np.full(100_000, 2), np.full(100_000, -1))


def test_gradients(rng):
    x = rng.standard_normal((300, 400), dtype=np.float32)

    def work():
        t = cygrad.tensor(x, requires_grad=True)
        y = cygrad.sigmoid(cygrad.exp(cygrad.tanh(t * t[0]) * 0.5)).softmax(1)
        (y * y + y.relu()).sum().backward()
        return [y.detach().numpy(), t.grad.numpy()]

    for_all_counts(work)


# --- Programs ----------------------------------------------------------------------------------


def test_threads_of_the_program_do_not_disturb_each_other(rng):
    x = rng.standard_normal(100_000)
    exp, add = Ufunc(np.exp), Ufunc(np.add)
    expected = exp(x) + x
    cygrad.set_num_threads(4)
    with ThreadPoolExecutor(5) as pool:
        for result in pool.map(lambda _: add(exp(x), x), range(60)):
            np.testing.assert_array_equal(result, expected)


def test_many_small_works_one_after_the_other(rng):
    x = rng.standard_normal(70_000)
    add = Ufunc(np.add)
    cygrad.set_num_threads(3)
    out = np.zeros_like(x)
    for _ in range(2000):
        add(out, 1.0, out=out)
    np.testing.assert_array_equal(out, np.full_like(x, 2000))


def run_python(text, **environment):
    package = Path(cygrad.__file__).resolve().parent.parent
    settings = {**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore", **environment}
    command = [sys.executable, "-P", "-c", text]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=100)


FORK = """
import os, threading, warnings
warnings.simplefilter("error")  # Python warns of a fork of several threads
import cygrad
cygrad.set_num_threads(3)
x = cygrad.ones(100_000)
assert x.exp().sum() > 0
for _ in range(5):
    child = os.fork()
    if child == 0:
        for n in range(50):
            x = x * 1.0
        os._exit(0 if x.sum() == 100_000 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (x + 1).sum() == 200_000
"""

# The threads and the child share no Python variable, as in test_memory_pool.py.
FORK_AMID_WORK = """
import os, threading, cygrad

def work(x, is_over):
    while not is_over():
        x = x * 1.0

def fork_beside(threads, ones):
    for thread in threads: thread.start()
    for _ in range(30):
        child = os.fork()
        if child == 0:
            os._exit(0 if (ones(100_000) + 1).sum() == 200_000 else 1)
        assert os.waitpid(child, 0)[1] == 0

cygrad.set_num_threads(3)
over = threading.Event()
threads = [threading.Thread(target=work, args=(cygrad.ones(100_000), over.is_set)) for _ in range(2)]
fork_beside(threads, cygrad.ones)
over.set()
for thread in threads: thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("program", [FORK, FORK_AMID_WORK], ids=["between", "amid"])
def test_a_forked_process_has_threads_of_its_own(program):
    run = run_python(program, OPENBLAS_NUM_THREADS="1")
    assert run.returncode == 0, run.stderr


INTERRUPTED = """
import os, signal, threading, cygrad
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may have it ignored
cygrad.set_num_threads(2)
x = cygrad.ones(1_000_000)
x = x + 1
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        x = x * 1.0
except KeyboardInterrupt:
    print("interrupted", int(x.sum()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_ctrl_c_reaches_the_program():
    run = run_python(INTERRUPTED)
    assert run.stdout == "interrupted 2000000\n", run.stderr


# --- Settings ----------------------------------------------------------------------------------


def test_the_number_from_the_environment():
    assert run_python("import cygrad; print(cygrad.get_num_threads())", CYGRAD_NUM_THREADS="5").stdout == "5\n"
    assert machine.num_threads({"CYGRAD_NUM_THREADS": "3"}) == 3
    assert machine.num_threads({}) == min(machine.usable_cpus(), 16)
    for text in ("0", "-2", "two", "1.5"):
        with pytest.raises(ValueError, match="CYGRAD_NUM_THREADS"):
            machine.num_threads({"CYGRAD_NUM_THREADS": text})


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no masks")
def test_the_mask_of_processors_counts():
    restrict = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert (
        run_python(f"{restrict}; import cygrad; print(cygrad.get_num_threads())", CYGRAD_NUM_THREADS="").stdout == "1\n"
    )


@pytest.mark.parametrize("function", [cygrad.set_num_threads, cygrad.set_num_interop_threads])
def test_wrong_numbers(function):
    name = function.__name__
    for number in (0, -1):
        with pytest.raises(RuntimeError, match=f"^{name} expects a positive integer$"):
            function(number)
    for value in (1.5, "a", None, True):
        with pytest.raises(RuntimeError, match=f"^{name} expects an int, but got {type(value).__name__}$"):
            function(value)
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        function(2**40)


def test_interop_threads(monkeypatch):
    monkeypatch.setattr(threads._Interop, "threads", 0)
    assert cygrad.get_num_interop_threads() == machine.usable_cpus()
    cygrad.set_num_interop_threads(3)
    assert cygrad.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="cannot set number of interop threads after parallel work has started"):
        cygrad.set_num_interop_threads(4)


# --- Loops of our own --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((300_000,), None), ((5, 100_001), (1,)), ((5, 100_001), (0,)), ((3000, 50), (1,)), ((3000, 50), (0,)),
        ((3, 5000, 40), (1,)), ((3, 40, 5000), (1,)), ((2, 100, 300, 5), (1, 3)), ((100_001, 3), (0,)),
        ((9, 3000), (0,)),
    ],
)  # fmt: skip
def test_sums(shape, axes, dtype, rng):
    x = rng.standard_normal(shape).astype(dtype)
    total, squares = for_all_counts(lambda: [reduce.sum(x, axes), reduce.norm(x, 2.0, axes)])
    tolerance = 1e-12 if dtype == "d" else 1e-5
    wide = x.astype("d")
    scale = np.abs(wide).sum(axis=axes)
    np.testing.assert_array_less(np.abs(total - wide.sum(axis=axes)), tolerance * scale)
    np.testing.assert_allclose(squares, np.sqrt((wide**2).sum(axis=axes)), rtol=tolerance)


def test_other_elementwise_loops(rng):
    x = rng.standard_normal(100_001, dtype=np.float32)
    condition = x > 0

    def work():
        return [
            cast(x, np.dtype("d").num), cast(x, np.dtype("?").num), elementwise.clamp(x, -0.5, None),
            elementwise.erf(x), elementwise.sign(x), elementwise.where(condition, x, np.array(2.0, "f")),
            activations.sigmoid(x), activations.gelu_backward(x, x),
        ]  # fmt: skip

    results = for_all_counts(work)
    np.testing.assert_array_equal(results[0], x.astype("d"))
    np.testing.assert_array_equal(results[2], np.maximum(x, np.float32(-0.5)))
    np.testing.assert_array_equal(results[5], np.where(condition, x, np.float32(2)))
    np.testing.assert_allclose(results[6], 1 / (1 + np.exp(-x)), rtol=1e-6)


def test_optimizer_steps(rng):
    x, g = rng.standard_normal((2, 90_000), dtype=np.float32)

    def work():
        parameters = [[x.copy()] for _ in range(3)]
        means = [np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)]
        optim.sgd_step(parameters[0], [g], [None], 0.1)
        optim.sgd_step(parameters[1], [g], means[:1], 0.1, momentum=0.9)
        optim.adam_step(parameters[2], [g], means[1:2], means[2:], None, [1], 0.1, 0.9, 0.999, 1e-8)
        return [*parameters[0], *parameters[1], *parameters[2], *means]

    results = for_all_counts(work)
    np.testing.assert_allclose(results[0], x - 0.1 * g, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[2], x - 0.1 * np.sign(g), rtol=1e-3, atol=1e-3)


def test_optimizer_steps_of_many_small_parameters(rng):
    sizes = [0, 70_000, 3, 0, *range(4000, 4040), 1, 0]
    values = [rng.standard_normal(n) for n in sizes]
    grads = [rng.standard_normal(n) for n in sizes]
    steps = [float(1 + i % 3) for i in range(len(sizes))]

    def work():
        sgd, adam, means, squares = ([x.copy() for x in values] for _ in range(4))
        squares = [np.abs(x) for x in squares]
        optim.sgd_step(sgd, grads, means, 0.1, momentum=0.9)
        optim.adam_step(adam, grads, means, squares, None, steps, 0.1, 0.9, 0.999, 1e-8)
        return [*sgd, *adam]

    results = for_all_counts(work)
    for x, g, p in zip(values, grads, results):
        np.testing.assert_allclose(p, x - 0.1 * (0.9 * x + g), rtol=1e-12, atol=1e-12)
    for x, g, step, p in zip(values, grads, steps, results[len(sizes) :]):
        mean = 0.9 * (0.9 * x + g) + 0.1 * g
        root = np.sqrt((0.999 * np.abs(x) + 0.001 * g * g) / (1 - 0.999**step))
        np.testing.assert_allclose(p, x - 0.1 * mean / (1 - 0.9**step) / (root + 1e-8), rtol=1e-9, atol=1e-9)


def test_parameters_that_share_memory_are_changed_one_after_the_other(rng):
    x, g = rng.standard_normal((2, 200_000))

    def work():
        row = x.copy()
        parameters = [row, row[:150_000], row[50_000:], row]
        optim.sgd_step(parameters, [g, g[:150_000], g[50_000:], g], [], 0.1)
        return [row]

    (row,) = for_all_counts(work)
    times = np.full(200_000, 4.0)
    times[:50_000] = times[150_000:] = 3
    np.testing.assert_allclose(row, x - 0.1 * times * g, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "axis"), [((4000, 50), 1), ((4000, 50), 0), ((30, 7000), 0), ((30, 7000), 1), ((20, 30, 400), 1)]
)
def test_largest_and_products(shape, axis, rng):
    x = rng.standard_normal(shape)
    largest, product, _ = for_all_counts(
        lambda: [reduce.amax(x, (axis,)), reduce.prod(x, (axis,)), reduce.any_(x.T > 3, (axis,))]
    )
    np.testing.assert_array_equal(largest, x.max(axis))
    np.testing.assert_allclose(product, x.prod(axis), rtol=1e-9)


def test_copies(rng):
    for x in (rng.standard_normal((500, 600)), rng.integers(0, 99, (500, 600)), rng.random((500, 600)) > 0.5):
        strided = np.repeat(x, 2, 1)[:, ::2]
        repeated = np.broadcast_to(x[0], (500, 600))

        def work(x=x, strided=strided, repeated=repeated):
            return [
                copying.copy(x), copying.copy(x.T), copying.contiguous(x.T), copying.copy(strided),
                copying.copy(repeated), copying.copy_in_order(x, (1, 0)),
            ]  # fmt: skip

        results = for_all_counts(work)
        for result, expected in zip(results, [x, x.T, x.T, x, repeated, x], strict=True):
            np.testing.assert_array_equal(result, expected)
            assert not np.shares_memory(result, x)
        assert [result.flags.c_contiguous for result in results] == [True, False, True, True, True, False]


def test_copies_keep_every_bit():
    x = np.full(300_000, np.nan, np.float32)
    x.view(np.int32)[:] += 12345  # a NaN payload
    x[0] = -0.0
    assert copying.copy(x).tobytes() == x.tobytes()
    assert copying.copy(x.reshape(500, 600).T).tobytes() == x.reshape(500, 600).T.tobytes()
