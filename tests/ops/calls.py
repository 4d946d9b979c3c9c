"""Runs the samples of ops on cygrad's CPU or GPU implementation, or on another library with the same interface."""

import importlib
import inspect
import pkgutil
from functools import cache
from operator import attrgetter
from pathlib import Path

import numpy as np

import cygrad
from cygrad import _library, _ops
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import PRIVATE, registry

# --- Inventory ---------------------------------------------------------------------------------


def collect(what):
    """Merge the results of all functions with this name in the files of `samples/`, keyed by row name."""
    found = {}
    for path in sorted((Path(__file__).parent / "samples").glob("*/[a-z]*.py"), key=lambda path: (path.stem, path)):
        module = importlib.import_module(f"ops.samples.{path.parent.name}.{path.stem}")
        if hasattr(module, what):
            for name, samples in getattr(module, what)().items():
                found.setdefault(name, []).extend(samples)
    return found


def families():
    """The modules that declare ops."""
    names = {info.name for info in pkgutil.walk_packages(_ops.__path__, "cygrad._ops.") if not info.ispkg}
    names.update(name for name in _library.names if name.startswith("cygrad._ops."))
    yield from map(importlib.import_module, sorted(names))


SAMPLES = collect("samples")
ERRORS = collect("errors")
# Functions without a row: compositions of other ops, or functions without a gradient
COMPOSITES = {name for family in families() for name in getattr(family, "composite", ())}
COMPOSITES = sorted(COMPOSITES.union(cygrad.fft.__all__, cygrad.signal.windows.__all__))
DIFFERENTIABLE = [name for name in SAMPLES if name not in registry or registry[name].differentiable]


def flags_of(name):
    return registry[name].flags if name in registry else 0


def is_internal(name):
    """Whether the op is called only by rules."""
    return bool(flags_of(name) & PRIVATE and registry[name].entry is not None)


# --- Running a sample --------------------------------------------------------------------------


class Cygrad:
    """Runs samples on cygrad."""

    library = cygrad
    array = staticmethod(array_of)
    tensor = staticmethod(tensor_of)

    @staticmethod
    def function(name):
        """The function that the samples of `name` call."""
        if is_internal(name):
            return registry[name].entry
        return public_function(cygrad, name)


def on_gpu(cupy):
    """Runs samples on a GPU, with the arrays of `cupy`."""

    class OnGpu(Cygrad):
        array = staticmethod(in_memory)

        @staticmethod
        def tensor(array):
            return tensor_of(uploaded(cupy, array))

        @staticmethod
        def tensor_within(block, start, array):
            """Return (tensor with the array's shape and strides at offset `start` of a copy of the block, that
            copy).
            """
            there = cupy.array(block)
            return tensor_of(cupy.ndarray(array.shape, array.dtype, there.data + start, array.strides)), there

    return OnGpu


def in_memory(tensor):
    """The values of a tensor, which may be on a GPU, as a NumPy array."""
    array = array_of(tensor)
    return array if isinstance(array, np.ndarray) else array.get()


def uploaded(cupy, array):
    """A GPU array with the values and strides of a NumPy array."""
    if array.flags.c_contiguous:
        return cupy.array(array)
    backwards = tuple(slice(None, None, -1 if step < 0 else 1) for step in array.strides)
    forwards = array[backwards]
    size = sum((n - 1) * step for n, step in zip(array.shape, forwards.strides)) // array.itemsize + 1
    memory = cupy.empty(size if array.size else 0, array.dtype)
    found = cupy.ndarray(array.shape, array.dtype, memory.data, forwards.strides)
    found[...] = cupy.array(forwards)
    return found[backwards]


NAMESPACES = ("", "Tensor", "nn.functional", "special", "linalg", "fft", "signal.windows")


def within(library, namespace):
    """A namespace of a library, by its dotted name; the library itself for an empty one."""
    return attrgetter(namespace)(library) if namespace else library


@cache  # samples call their function thousands of times, and a name that is missing takes long to refuse
def namespace_of(name):
    """The first of cygrad's namespaces that has a function or method of this name, or `None`."""
    return next((each for each in NAMESPACES if callable(getattr(within(cygrad, each), name, None))), None)


def public_function(library, name):
    """A library's function or method for an op, found where cygrad has it, or `None`."""
    public = name.partition(".")[0]
    if public.startswith("linalg_"):
        return getattr(library.linalg, public.removeprefix("linalg_"), None)
    namespace = namespace_of(public)
    return None if namespace is None else getattr(within(library, namespace), public, None)


def inplace_form(name):
    """The method that writes into its first operand, or None."""
    return getattr(cygrad.Tensor, name.partition(".")[0] + "_", None)


def takes_out(name):
    """Whether the op has a public function with an `out` parameter."""
    function = public_function(cygrad, name)
    if function is None or is_internal(name):
        return False
    return "out" in inspect.signature(function).parameters


def is_inexact(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def replace(value, new):
    """`value` with each array in it, including those in lists and tuples, replaced by `new(array)`."""
    if isinstance(value, np.ndarray):
        return new(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(replace(item, new) for item in value)
    return value


class Call:
    """One sample run on tensors. Arrays pass through `change` before they become tensors."""

    def __init__(self, name, sample, change=None, requires_grad=True, on=Cygrad):
        self.name, self.on, self.leaves, self.takes_tensors = name, on, [], False
        requires_grad = requires_grad and sample.grad and name in DIFFERENTIABLE

        def tensor(array):
            array = np.array(array)
            self.takes_tensors = True
            made = on.tensor(array if change is None else change(array))
            if requires_grad and is_inexact(array):
                self.leaves.append(made.requires_grad_())
            return made

        self.args = [replace(value, tensor) for value in sample.args]
        self.kwargs = {key: replace(value, tensor) for key, value in sample.kwargs.items()}

    def run(self):
        """Return all results, including those in nested tuples."""
        result = self.on.function(self.name)(*self.args, **self.kwargs)
        results = result if isinstance(result, (list, tuple)) else (result,)
        return [one for each in results for one in (each if type(each) is tuple else (each,))]

    def outputs(self):
        """The results that require a gradient."""
        return [out for out in self.run() if getattr(out, "requires_grad", False)]

    def gradients(self, weights, outputs=None, **how):
        """Gradients of these outputs with respect to the leaves; zeros where undefined."""
        outputs = self.outputs() if outputs is None else outputs
        return self.derive(outputs, self.leaves, weights, **how)

    def derive(self, outputs, inputs, weights, **how):
        grad = self.on.library.autograd.grad
        found = grad(outputs, inputs, weights, allow_unused=True, **how)
        zeros = [self.on.tensor(np.zeros_like(self.on.array(x))) for x in inputs]
        return [zero if g is None else g for g, zero in zip(found, zeros)]

    def second_gradients(self, incoming, weights):
        """Gradients of the projected gradients with respect to the leaves and the incoming gradients."""
        grads = self.gradients(incoming, create_graph=True)
        recorded = [(g, w) for g, w in zip(grads, weights) if g.requires_grad]
        inputs = [*self.leaves, *incoming]
        if not recorded:
            return [self.on.tensor(np.zeros_like(self.on.array(x))) for x in inputs]
        return self.derive([g for g, _ in recorded], inputs, [w for _, w in recorded])

    def weights(self, tensors, seed=0, requires_grad=False):
        """Random gradients with the shapes and dtypes of `tensors`."""
        random = np.random.default_rng(seed)
        made = []
        for tensor in tensors:
            array = self.on.array(tensor)
            weight = random.uniform(0.5, 1.5, array.shape) * random.choice([-1, 1], array.shape)
            if array.dtype.kind == "c":
                weight = weight + 1j * random.uniform(0.5, 1.5, array.shape)
            weight = self.on.tensor(np.asarray(weight, array.dtype)).to(tensor.device)
            made.append(weight.requires_grad_() if requires_grad else weight)
        return made
