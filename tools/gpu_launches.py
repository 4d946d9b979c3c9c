"""Count what a training step asks of a GPU, without one: kernels launched, and calls of CuPy's functions in Python.

    python tools/gpu_launches.py [ROW...]

runs steps of the benchmark, on fewer data, on the stand-in for CuPy. Neither count depends on the sizes. Launches and
new arrays, which reach CuPy through its C functions on a GPU, are no calls of Python.
"""

import collections
import functools
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
WARM = 3  # steps before: kernels are compiled, casts and constants are kept
IN_C = {"RawKernel.__call__", "Function.__call__", "ndarray.__new__"}  # on a GPU, `launch.pyx` does without them


def makers():
    """Return {row: function of the library that makes a step}."""
    from benchmarks import gpu

    return {
        "784-128-10 with Adam": gpu.mlp_step,
        "transformer's layer, float32": gpu.transformer(False, 1, 8, 1),
        "transformer's layer, bfloat16 autocast": gpu.transformer(True, 1, 8, 1),
        "small convolutional network, SGD": functools.partial(gpu.small_convolutions, batch=1),
        "LSTM": functools.partial(gpu.recurrent, length=4, batch=2),
        "ResNet-18's shape, Adam": gpu.resnet(False, with_adam=True, batch=1, narrower=16),
        "Adam of 3000 tensors": gpu.adam,
    }


def calls_of(run, package):
    """Return how often `run` calls each function of a package from outside it, by qualified name."""
    found: collections.Counter = collections.Counter()
    attributes = code_of_attributes(package)

    def seen(frame, event, _):
        code = frame.f_code
        if event == "call" and package in code.co_filename and package not in frame.f_back.f_code.co_filename:
            if code not in attributes:
                found[code.co_qualname] += 1

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def code_of_attributes(package):
    """Return the code of properties of a package's classes: those of CuPy are compiled, as cheap as attributes."""
    modules = [m for m in list(sys.modules.values()) if (getattr(m, "__file__", None) or "").startswith(package)]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    values = [value for kind in classes for value in vars(kind).values() if isinstance(value, property)]
    return {getattr(value.fget, "__code__", None) for value in values}


def counted(make, cupy_standin):
    """Return (launches by kernel, calls of CuPy by function) of one step."""
    import cygrad

    cygrad.manual_seed(0)
    run = make(cygrad)
    for _ in range(WARM):
        run()
    with cupy_standin.watch() as seen:
        run()
    called = calls_of(run, str(Path(cupy_standin.__file__).parent))
    return collections.Counter(seen.launches), collections.Counter(
        {name: count for name, count in called.items() if name not in IN_C}
    )


def main():
    """Print the table, and for each row named as an argument what its counts consist of."""
    sys.path[:0] = str(CHECKOUT), str(CHECKOUT / "tests" / "support")
    import cupy_standin  # type: ignore[import-not-found]  # of the tests

    known = makers()
    if unknown := set(sys.argv[1:]) - set(known):
        raise SystemExit(f"no rows are called {sorted(unknown)}; there are {list(known)}")
    with cupy_standin.installed():
        from cupy_standin import blas_lt

        from cygrad._kernels.gpu.libraries import cublas_lt

        cublas_lt.library = lambda: blas_lt.Library  # type: ignore[assignment]  # loaded by name on a GPU
        print("| step | launches | calls of CuPy |\n|---|---|---|")
        for name in sys.argv[1:] or known:
            launches, calls = counted(known[name], cupy_standin)
            print(f"| {name} | {launches.total()} | {calls.total()} |", flush=True)
            if sys.argv[1:]:
                for count in (launches, calls):
                    print("\n".join(f"{number:6} {what}" for what, number in count.most_common()), "\n")


if __name__ == "__main__":
    main()
