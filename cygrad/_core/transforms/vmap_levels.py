"""The samples of a batch: what `vmap` lets run along with its function.

Note [Batches]
--------------
Inside of `vmap` each batched tensor is that of the first sample: an ordinary tensor, on memory of its own. Whatever the
function asks for is its own to answer: shape, strides, type, whether it requires grad. The samples of all, this one
included, lie along dimension 0 of another tensor, which is found by the array that the former has (`Batch.samples`), so
that whatever shows the same array has the same samples.

While a batch is open (the mode FORWARD, and a `Batch` among the levels in tangents.py), each op that is recorded leaves
a `Step`. When the next op comes, the batching rule of the op (`_ops/batching.py`) does to the samples of its operands,
by ops on the tensors that hold them, what the op has done. That happens with only those levels open that are outside of
the batch. So what `grad` and `jvp` do inside of the function they do for each sample alone; what is outside of it sees
ordinary ops on whole batches, among them those whose gradients reach tensors that have no samples.

A tensor that requires grad outside requires grad inside too, so that transforms inside of the function know that
their results need a history. What has none inside, by `detach` or `no_grad`, has none outside.
"""

from functools import partial
from typing import Any
from weakref import ref

from cygrad._core.graph.internals import identity_of, memory_of, tensor_of
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.device.cupy_library import filled_like
from cygrad._kernels.gpu.base.arrays import copy_into, may_overlap

# How PyTorch names ops in the error for writing into a tensor without samples: these in one word, those by their name
_ARITHMETIC = ("add", "copy", "div", "masked_fill", "mul", "sub")
_NAMED = ("fill", "index_add", "index_fill", "index_put", "scatter_add", "scatter_reduce")


_SHOWN = {  # names of rows that are not those of functions
    "embedding_bag": "embedding_bag.padding_idx",
    "fractional_max_pool2d_with_indices": "fractional_max_pool2d",
    "fractional_max_pool3d_with_indices": "fractional_max_pool3d",
    "repeat_interleave": "repeat_interleave.Tensor",
    "strided_gather": "as_strided",
    "strided_scatter": "as_strided",
    "strided_sum": "as_strided",
}


class NoBatchingRule(RuntimeError):
    """An op came for which there is no batching rule; `vmap` then takes one sample after the other."""

    def __init__(self, name):
        super().__init__(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"aten::{_SHOWN.get(name, name)}."
        )


def _add_tensors(values, found):
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            _add_tensors(value, found)


class Step:
    """One op that has run: its row, results, inputs and other arguments, and what it saved beside them."""

    __slots__ = ("args", "inputs", "kept", "op", "outs", "writes")

    def __init__(self, op, outs, inputs, args, writes=False):
        self.op, self.outs, self.inputs, self.args = op, outs, inputs, args or ()
        self.kept, self.writes = {}, writes

    def operands(self):
        """All tensors that it has read."""
        found: list = []
        _add_tensors(self.inputs, found)
        if self.args:
            _add_tensors(self.args, found)
        if self.kept:
            _add_tensors(self.kept.values(), found)
        return found


class Batch:
    """A level (see tangents.py) at which tensors have samples."""

    without_history: Any = None  # the function of tangents.py, set there

    def __init__(self, size, randomness="error"):
        self.size, self.randomness = size, randomness
        self.given: list = []  # the arrays with the samples of the arguments
        self.has_changed_given = False
        self.draws_for_one = 0  # how often random numbers were drawn for one sample alone (drawing.py)
        self._samples: dict = {}  # id of an array: (weak reference to the array, the tensor of all samples)

    def close(self):
        """Forget all samples."""
        self._samples = {}

    def has(self, t):
        """Whether a tensor is another one for each sample."""
        return identity_of(t) in self._samples

    def has_any(self, tensors):
        """Whether one of these tensors is."""
        known = self._samples
        for t in tensors:
            if identity_of(t) in known:
                return True
        return False

    def samples(self, t):
        """The samples of a tensor, along dimension 0 of a tensor, or None."""
        found = self._samples.get(identity_of(t))
        if found is None:
            return None
        return self.without_history(found[1]) if found[1].requires_grad and not t.requires_grad else found[1]

    def held(self, t):
        """The tensor that holds the samples of one that has some."""
        return self._samples[identity_of(t)][1]

    def set_samples(self, t, samples):
        """Let a tensor have these samples, along dimension 0."""
        key, known = identity_of(t), self._samples
        # `pop(key, the dead reference)`: no function in Python, which Ctrl-C might keep from removing anything
        known[key] = ref(memory_of(t), partial(known.pop, key)), samples

    def first(self, samples):
        """A tensor for the first of an argument's samples, or for zeros if there is none, which stands for all."""
        array = memory_of(samples)
        self.given.append(array)
        one = filled_like(array, array.shape[1:], 0, array.dtype)
        if self.size:
            copy_into(one, array[0])
        t = tensor_of(one)
        if samples.requires_grad:
            t = t.requires_grad_().clone()  # no leaf: it may be changed in place
        self.set_samples(t, samples)
        return t

    def results(self, step):
        """The samples of the results of an op; raises NoBatchingRule."""
        return registry.batching_rules()(self, step)  # set by _ops/on_first_use.py

    def give(self, step, found):
        """Let the results of an op have their samples."""
        for out, samples in zip(step.outs, found, strict=True):
            if samples.shape != (self.size, *out.shape) or samples.dtype is not out.dtype:
                raise NoBatchingRule(step.op.name)
            self.set_samples(out, samples)

    def overwrite(self, step, found):
        """Change the samples of a tensor in place."""
        samples = self.samples(step.outs[0])
        samples.copy_(found[0])
        array = memory_of(samples)
        self.has_changed_given |= any(may_overlap(array, given) for given in self.given)

    def check_write(self, step, level):
        """Raise if a tensor can not be changed in place, because it has no samples; `level` counts from 1."""
        out = step.outs[0]
        if not step.inputs or out is not step.inputs[0]:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{step.op.name}.out; the fallback path doesn't work on out= "
                "or view ops."
            )
        if not self.has(out):
            name, where = f"{step.op.name}_", "in a vmap"
            if step.op.name in _ARITHMETIC:
                name = "inplace arithmetic"
            elif step.op.name == "bernoulli":
                name = "inplace bernoulli"
            elif step.op.name not in _NAMED:
                name, where = f"aten::{name}", f"at level {level}"
            raise RuntimeError(
                f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                f"`self` not being vmapped over {where}. Please try to use out-of-place operators instead of {name}. "
                "If said operator is being called inside the PyTorch framework, please file a bug report "
                f"instead.\n  here {step.op.name}_ would write another value into the tensor of shape "
                f"{tuple(out.shape)} for each of the {self.size} samples"
            )

    def read_error(self, in_condition):
        """The error for reading a value that differs from sample to sample."""
        if in_condition:
            return RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .\n"
                "  the condition may hold for one sample and not for another: compute both branches and choose by "
                "torch.where"
            )
        return RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere "
            "inside PyTorch internals, please file a bug report.\n"
            "  the tensor has another value for each sample: keep it a tensor"
        )
