"""Custom functions inside `vmap`: applies them to the samples of a batch (Note [Batches] in vmap_levels.py)."""

from collections import namedtuple

from cygrad._core.graph.function import apply_function
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes, set_forward
from cygrad._core.transforms import forward_mode
from cygrad._core.transforms.trees import flatten, rebuild
from cygrad._core.transforms.vmap_levels import Batch, NoBatchingRule

VmapInfo = namedtuple("VmapInfo", "batch_size randomness")


def apply_to_samples(cls, ctx, args):
    """Run `cls.apply(*args)` while levels are open, for a class with `vmap` or `generate_vmap_rule`."""
    forward_mode.flush()
    batch, outside = forward_mode.batch_of(_tensors(args))
    if batch is None:
        return apply_function(ctx, cls.forward, args, cls.setup_context)
    if cls.generate_vmap_rule and cls._has_vmap:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    ctx._is_batched = True
    if cls.generate_vmap_rule:
        _check_inside(cls, args)
        return apply_function(ctx, _in_batches(cls.forward), args, _in_batches(cls.setup_context))
    single, first = forward_mode.on_levels(outside, lambda: _of_samples(cls, batch, args))
    return apply_function(ctx, lambda *_: first[0] if single else first, args, _in_batches(cls.setup_context))


def check_containers(cls, args):
    """Raise NoBatchingRule if tensors in containers, which the graph does not see, have samples."""
    forward_mode.flush()
    inner = [x for value in args if not isinstance(value, Tensor) for x in _tensors(value)]
    if inner and forward_mode.batch_of(inner)[0] is not None:
        raise NoBatchingRule(cls.__name__ + "Backward")


def _check_inside(cls, args):
    """Raise NoBatchingRule if the function is differentiated outside a batch, too, where its own node is not seen."""
    levels = forward_mode.levels()
    batches = [level for level in levels if isinstance(level, Batch)]
    tensors = [x for x in args if isinstance(x, Tensor)]
    is_recorded = not get_modes() & NO_GRAD
    outside = [x for x in tensors if is_recorded and all(batch.samples(x) is None for batch in batches)]
    samples = [x for batch in batches for x in map(batch.samples, _tensors(args)) if x is not None]
    if batches != list(levels[: len(batches)]) or any(x.requires_grad for x in [*samples, *outside]):
        raise NoBatchingRule(cls.__name__ + "Backward")


def _in_batches(function):
    """Wrap a function so that only the open batches follow its ops."""

    def run(*args):
        levels = forward_mode.levels()
        forward_mode.open_only(tuple([level for level in levels if isinstance(level, Batch)]))
        try:
            found = function(*args)
            forward_mode.flush()
            return found
        finally:
            forward_mode.open_only(levels)
            set_forward(False)  # as always while a function runs

    return run


def _of_samples(cls, batch, args):
    """Return (whether there is a single output, the outputs for the first sample), and give them their samples."""
    leaves = flatten(args)[0]
    samples = [batch.samples(x) if isinstance(x, Tensor) else None for x in leaves]
    in_dims = rebuild(args, [None if found is None else 0 for found in samples])
    whole = rebuild(args, [x if found is None else found for x, found in zip(leaves, samples, strict=True)])
    result = cls.vmap(VmapInfo(batch.size, batch.randomness), in_dims, *whole)
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    output, dims = result
    single = not isinstance(output, tuple)
    outputs = (output,) if single else output
    is_nested = isinstance(dims, (tuple, list))
    if not is_nested:
        dims = (dims,) * len(outputs)
    if len(dims) != len(outputs) or (single and is_nested and type(dims) is not type(output)):
        counted = "an output that is no tuple" if single else f"{len(outputs)} outputs"
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={dims} to be compatible with the structure of `output`.\n"
            f"  {cls.__name__}.vmap returned {counted}, and {len(dims)} out_dims\n"
            "  for each output, return the dimension of its samples, or None if it has none"
        )
    return single, tuple([_first(batch, *pair) for pair in zip(outputs, dims, strict=True)])


def _tensors(tree):
    return [leaf for leaf in flatten(tree)[0] if isinstance(leaf, Tensor)]


def _first(batch, output, dim):
    """Return an output for the first sample, and register the samples of all."""
    if dim is None or not isinstance(output, Tensor):
        return output.detach() if isinstance(output, Tensor) else output
    samples = output.movedim(dim, 0)
    first = samples.detach()[0].clone() if batch.size else samples.new_zeros(samples.shape[1:])
    batch.set_samples(first, samples)
    return first
