"""Tensor parallelism: plans that spread the layers of a module over a mesh. Over one process they leave them whole."""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from fnmatch import fnmatch

from cygrad.distributed.device_mesh import init_device_mesh

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip


class ParallelStyle(ABC):
    """How one module is spread."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module, device_mesh):
        """Spread the module over a mesh; returns it."""


class _Whole(ParallelStyle):
    """A style whose parts, inputs and outputs are whole in one process."""

    def __init__(self, **layouts):
        self.layouts = layouts

    def _apply(self, module, device_mesh):
        return module


class ColwiseParallel(_Whole):
    """Each process has some of the outputs of a linear layer, or some columns of an embedding."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)


class RowwiseParallel(_Whole):
    """Each process has the weights for some of the inputs of a linear layer, or some rows of an embedding."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)


class SequenceParallel(_Whole):
    """Each process has some places of the sequence, e.g. in layer normalization."""

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        super().__init__(sequence_dim=sequence_dim, use_local_output=use_local_output)


class PrepareModuleInput(_Whole):
    """Spreads a module's inputs as it wants them."""

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_output=False,
    ):
        super().__init__(input_layouts=input_layouts, desired_input_layouts=desired_input_layouts)


class PrepareModuleOutput(_Whole):
    """Spreads a module's outputs as the next one wants them."""

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        super().__init__(output_layouts=output_layouts, desired_output_layouts=desired_output_layouts)


class PrepareModuleInputOutput(_Whole):
    """Spreads a module's inputs as it wants them, and its outputs as the next one does."""

    def __init__(self, **layouts):
        super().__init__(**layouts)


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Spread modules by a plan: a style for `module`, or {name of a module within it, with wildcards: style}."""
    mesh = device_mesh if device_mesh is not None else init_device_mesh("cpu", (1,))
    if mesh.size() > 1:
        raise RuntimeError(
            f"parallelize_module over {mesh}: cygrad does not divide what a module computes over processes\n"
            "  to fix it: use `fully_shard`, which divides parameters, or `DistributedDataParallel`, which divides data"
        )
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, mesh)
    for pattern, style in (parallelize_plan or {}).items():
        for name, inner in list(module.named_modules()):
            if fnmatch(name, pattern):
                parent, _, child = name.rpartition(".")
                made = style._apply(inner, mesh)
                if made is not inner:
                    setattr(module.get_submodule(parent), child, made)
    return module


@contextmanager
def loss_parallel():
    """Within this context, cross entropy is computed where each process has some of the classes."""
    yield
