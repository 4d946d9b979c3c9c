"""The samples of a batch: what `vmap` computes alongside its function.

Note [Batches]
--------------
Inside `vmap` each batched tensor is that of the first sample: an ordinary tensor with its own memory. It answers all
queries of the function itself: shape, strides, dtype, whether it requires grad. The samples of all, including the
first, are stored along dimension 0 of another tensor, which is looked up by the array of the former (`Batch.samples`),
so that tensors that share an array share their samples.

While a batch is open (the mode FORWARD, and a `Batch` among the levels in forward_mode.py), each recorded op leaves its
description, a `Recorded` (observers.pyx). When the next op is recorded, the op's batching rule (see
`_ops/base/batching/rules.py`) applies the op to the samples of its operands, by ops on the tensors that hold them. Only
the levels outside the batch are open meanwhile. Therefore `grad` and `jvp` inside the function act on each sample
separately, and code outside sees ordinary ops on whole batches, including those whose gradients reach tensors without
samples.

A tensor that requires grad outside requires grad inside too, so that transforms inside the function know that their
results need a history. A tensor without history inside, because of `detach` or `no_grad`, has none outside.
"""

from functools import partial
from typing import Any
from weakref import ref

from cygrad._core.graph.internals import identity_of, own_array, tensor_of
from cygrad._core.graph.opdef import facts_of, registry
from cygrad._kernels.device.cupy_library import filled_like
from cygrad._kernels.tape.calls import called
from cygrad._library import later

arrays = later("cygrad._kernels.gpu.base.arrays")  # not needed by the families, which import NoBatchingRule


class NoBatchingRule(RuntimeError):
    """Raised when an op has no batching rule; `vmap` then processes one sample after the other."""

    def __init__(self, name):
        super().__init__(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"aten::{facts_of['vmap_name'].get(name, name)}."
        )


def _first_of(array):
    """A copy of the first sample of an array; zeros if there is none."""
    one = filled_like(array, array.shape[1:], 0, array.dtype)
    if len(array):
        arrays.copy_into(one, array[0])
    return one


class Batch:
    """A level (see forward_mode.py) at which tensors have samples."""

    without_history: Any = None  # set by forward_mode.py to its function

    def __init__(self, size, randomness="error"):
        self.size, self.randomness = size, randomness
        self.given: list = []  # the arrays that hold the samples of the arguments
        self.has_changed_given = False
        self.draws_for_one = 0  # how often random numbers were drawn for one sample only (vmap_random.py)
        self.before_draw: Any = None  # (generator, its count of draws, its state) before the last of them
        self._samples: dict = {}  # id of an array: (weak reference to the array, the tensor of all samples)

    def close(self):
        """Forget all samples."""
        self._samples = {}

    def has(self, t):
        """Whether a tensor differs between samples."""
        return identity_of(t) in self._samples

    def has_any(self, tensors):
        """Whether any of these tensors differs between samples."""
        known = self._samples
        for t in tensors:
            if identity_of(t) in known:
                return True
        return False

    def samples(self, t):
        """Return the samples of a tensor, stacked along dimension 0, or None."""
        found = self._samples.get(identity_of(t))
        if found is None:
            return None
        return self.without_history(found[1]) if found[1].requires_grad and not t.requires_grad else found[1]

    def held(self, t):
        """Return the tensor that holds the samples of `t`, which must have some."""
        return self._samples[identity_of(t)][1]

    def set_samples(self, t, samples):
        """Set the samples of a tensor, stacked along dimension 0."""
        key, known = identity_of(t), self._samples
        # The callback `pop(key, dead reference)` is compiled, so a KeyboardInterrupt cannot prevent the removal.
        known[key] = ref(own_array(t), partial(known.pop, key)), samples

    def first(self, samples):
        """Return a tensor for the first of an argument's samples, which stands for all; zeros for an empty batch."""
        array = own_array(samples)
        self.given.append(array)
        t = tensor_of(called(_first_of, array))
        if samples.requires_grad:
            t = t.requires_grad_().clone()  # a non-leaf, which may be changed in place
        self.set_samples(t, samples)
        return t

    def results(self, step):
        """Return the samples of an op's results, or raise NoBatchingRule."""
        return registry.batching_rules()(self, step)  # set by _ops/lazy_families.py

    def give(self, step, found):
        """Set the samples of an op's results."""
        for out, samples in zip(step.outs, found, strict=True):
            if samples.shape != (self.size, *out.shape) or samples.dtype is not out.dtype:
                raise NoBatchingRule(step.op.name)
            self.set_samples(out, samples)

    def overwrite(self, step, found):
        """Change the samples of a step's result in place."""
        self.write(step.outs[0], found[0])

    def write(self, t, values):
        """Change the samples of a tensor in place."""
        samples = self.samples(t)
        samples.copy_(values)
        array = own_array(samples)
        self.has_changed_given |= any(arrays.may_overlap(array, given) for given in self.given)

    def check_write(self, step, level):
        """Raise if a tensor cannot be changed in place because it has no samples; `level` counts from 1."""
        out = step.outs[0]
        if not step.inputs or out is not step.inputs[0]:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{step.op.name}.out; the fallback path doesn't work on out= "
                "or view ops."
            )
        if not self.has(out):
            name, where = facts_of["vmap_write"].get(step.op.name), "in a vmap"
            if name is None:
                name, where = f"aten::{step.op.name}_", f"at level {level}"
            raise RuntimeError(
                f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                f"`self` not being vmapped over {where}. Please try to use out-of-place operators instead of {name}. "
                "If said operator is being called inside the PyTorch framework, please file a bug report "
                f"instead.\n  here {step.op.name}_ would write a different value into the tensor of shape "
                f"{tuple(out.shape)} for each of the {self.size} samples"
            )

    def read_error(self, in_condition):
        """Return the error for reading a value that differs between samples."""
        if in_condition:
            return RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .\n"
                "  the condition may hold for one sample and not for another: compute both branches and select with "
                "torch.where"
            )
        return RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere "
            "inside PyTorch internals, please file a bug report.\n"
            "  the tensor has a different value for each sample: keep it a tensor"
        )
