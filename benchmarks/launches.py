"""Measure cygrad's own CPU time for recorded GPU ops, without a GPU: `python -m benchmarks.launches`.

CuPy is replaced by a module whose arrays have plain attributes, like CuPy's, and whose functions and kernels do
nothing. What remains is the time that cygrad adds to CuPy's allocation and launch. The figures are the smallest of
several rounds, with and without recording.
"""

import time
import types

import numpy as np

ROUNDS, CALLS = 9, 3000


class Array:
    """Replacement for `cupy.ndarray`; creating one always returns the same object."""

    __slots__ = "_c_contiguous base data device dtype flags itemsize nbytes ndim shape size strides".split()
    only: "Array"

    def __new__(cls, *args):
        """Return the only instance; a call without arguments creates it."""
        return cls.only if args else object.__new__(cls)

    def __init__(self, *args):
        if not args:
            self.dtype, self.shape, self.ndim, self.size, self.strides = np.dtype(np.float32), (4,), 1, 4, (4,)
            self.itemsize, self.nbytes, self.base, self._c_contiguous = 4, 16, None, True
            self.device = types.SimpleNamespace(id=0)
            self.data = types.SimpleNamespace(ptr=0, device_id=0, mem=None)
            self.flags = types.SimpleNamespace(c_contiguous=True, f_contiguous=True)

    def __mul__(self, other):
        return self

    def __gt__(self, other):
        return self

    def astype(self, *args, **kwargs):
        """Return the array itself."""
        return self

    def reshape(self, *shape):
        """Return the array itself."""
        return self


Array.only = Array()


def nothing(*args, **kwargs):
    """Do nothing, in place of a launch or of making a kernel."""
    return Array.only


class Kernel:
    """A kernel that does nothing."""

    def __init__(self, *args, **kwargs):
        pass

    __call__ = staticmethod(nothing)


def library():
    """Return the module that replaces CuPy."""
    module = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(getDevice=lambda: 0, getDeviceCount=lambda: 1)
    vars(module).update(
        ndarray=Array, ElementwiseKernel=Kernel, RawKernel=Kernel, dtype=np.dtype, __getattr__=lambda name: nothing,
        cuda=types.SimpleNamespace(runtime=runtime),
    )  # fmt: skip
    return module


def microseconds(call):
    """Return the time of one call in microseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


def main():
    """Print the table."""
    import cygrad
    import cygrad.nn.functional as F
    from cygrad._core.graph.internals import tensor_of
    from cygrad._kernels.device import cupy_library as gpu
    from cygrad._kernels.device import launch
    from cygrad._kernels.device.dispatch import use_gpu

    gpu._found = library()
    launch.connect(gpu._found)
    use_gpu()
    print(f"{'op':12}{'recorded':>10}{'plain':>10}   microseconds")
    for name, call in {
        "x + y": lambda x, y: x + y,
        "x * y": lambda x, y: x * y,
        "x / y": lambda x, y: x / y,
        "x + 1": lambda x, y: x + 1,
        "x * 2.5": lambda x, y: x * 2.5,
        "-x": lambda x, y: -x,
        "exp": lambda x, y: x.exp(),
        "tanh": lambda x, y: x.tanh(),
        "sigmoid": lambda x, y: cygrad.sigmoid(x),
        "relu": lambda x, y: F.relu(x),
        "gelu": lambda x, y: F.gelu(x),
        "silu": lambda x, y: F.silu(x),
        "leaky_relu": lambda x, y: F.leaky_relu(x, 0.1),
        "hardtanh": lambda x, y: F.hardtanh(x),
        "clamp": lambda x, y: x.clamp(-1, 1),
        "sum": lambda x, y: x.sum(),
    }.items():
        times = []
        for recorded in (True, False):
            x, y = (tensor_of(Array()).requires_grad_(recorded) for _ in range(2))
            times.append(microseconds(lambda call=call, x=x, y=y: call(x, y)))
        print(f"{name:12}{times[0]:10.2f}{times[1]:10.2f}")


if __name__ == "__main__":
    main()
