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
    """How one module is spread.

    >>> from cygrad.distributed.tensor.parallel import ColwiseParallel, ParallelStyle
    >>> isinstance(ColwiseParallel(), ParallelStyle)
    True
    """

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
    """Each process has some of the outputs of a linear layer, or some columns of an embedding.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    >>> layer = parallelize_module(cygrad.nn.Linear(2, 4), init_device_mesh("cpu", (1,)), ColwiseParallel())
    >>> layer(cygrad.ones(3, 2)).shape
    torch.Size([3, 4])
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)


class RowwiseParallel(_Whole):
    """Each process has the weights for some of the inputs of a linear layer, or some rows of an embedding.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import RowwiseParallel, parallelize_module
    >>> layer = parallelize_module(cygrad.nn.Linear(4, 2), init_device_mesh("cpu", (1,)), RowwiseParallel())
    >>> layer(cygrad.ones(3, 4)).shape
    torch.Size([3, 2])
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)


class SequenceParallel(_Whole):
    """Each process has some places of the sequence, e.g. in layer normalization.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import SequenceParallel, parallelize_module
    >>> norm = parallelize_module(cygrad.nn.LayerNorm(4), init_device_mesh("cpu", (1,)), SequenceParallel())
    >>> norm(cygrad.ones(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        super().__init__(sequence_dim=sequence_dim, use_local_output=use_local_output)


class PrepareModuleInput(_Whole):
    """Spreads a module's inputs as it wants them.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import Replicate, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
    >>> style = PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),))
    >>> layer = parallelize_module(cygrad.nn.Linear(2, 1), init_device_mesh("cpu", (1,)), style)
    >>> cygrad.distributed.destroy_process_group()
    """

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
    """Spreads a module's outputs as the next one wants them.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import Replicate, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    >>> style = PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    >>> layer = parallelize_module(cygrad.nn.Linear(2, 1), init_device_mesh("cpu", (1,)), style)
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        super().__init__(output_layouts=output_layouts, desired_output_layouts=desired_output_layouts)


class PrepareModuleInputOutput(_Whole):
    """Spreads a module's inputs as it wants them, and its outputs as the next one does.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import Replicate, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
    >>> style = PrepareModuleInputOutput(input_layouts=(Shard(0),), output_layouts=Replicate())
    >>> layer = parallelize_module(cygrad.nn.Linear(2, 1), init_device_mesh("cpu", (1,)), style)
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, **layouts):
        super().__init__(**layouts)


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Spread modules by a plan: a style for `module`, or {name of a module within it, with wildcards: style}.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 4), cygrad.nn.ReLU(), cygrad.nn.Linear(4, 1))
    >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    >>> model = parallelize_module(model, init_device_mesh("cpu", (1,)), plan)
    >>> model(cygrad.ones(3, 2)).shape
    torch.Size([3, 1])
    >>> cygrad.distributed.destroy_process_group()
    """
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
    """Within this context, cross entropy is computed where each process has some of the classes.

    >>> import cygrad
    >>> from cygrad.distributed.tensor.parallel import loss_parallel
    >>> with loss_parallel():
    ...     loss = cygrad.nn.functional.cross_entropy(cygrad.zeros(1, 4), cygrad.tensor([2]))
    >>> loss
    tensor(1.3863)
    """
    yield
