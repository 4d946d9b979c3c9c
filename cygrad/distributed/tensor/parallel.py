"""Tensor parallelism: plans that divide the layers of a module, and what they compute, over a mesh.

Modules take and return ordinary tensors, this process's parts, whose layouts are those that the plan states. Where a
style says `use_local_output=False`, the result is a DTensor, which the next module of the plan converts by itself, and
which does nothing else. A mesh of one process leaves modules as they are.
"""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from fnmatch import fnmatch
from typing import Any

from cygrad import Tensor, nn
from cygrad.distributed._c10d.membership import get_world_size, is_initialized
from cygrad.distributed.device_mesh import init_device_mesh
from cygrad.distributed.tensor import _parallel_layers as layers
from cygrad.distributed.tensor._conversions import converted, used_by_all
from cygrad.distributed.tensor._dtensor import DTensor
from cygrad.distributed.tensor.placement_types import Placement, Replicate, Shard
from cygrad.utils.warning import warn

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


# --- Layouts of inputs and outputs ---------------------------------------------------------------


def _arrived(value, layout, desired, mesh, length=None):
    """A value that has arrived with a layout, or as a DTensor with its own, as a local tensor of the desired layout.

    length: that of the whole along the dimension that is divided, by default that of equal parts.
    """
    if not isinstance(value, Tensor) or layout is None and not isinstance(value, DTensor):
        return value
    if isinstance(value, DTensor):
        layout, length = value.placements[0], value._whole_length()
        return converted(value.to_local(), layout, desired or layout, mesh.get_group(), length)
    return converted(value, layout, desired or layout, mesh.get_group(), length)


def _leaving(value, layout, desired, mesh, is_local, length=None):
    """A local tensor of a layout, as one of the desired layout, or as a DTensor."""
    if not isinstance(value, Tensor) or layout is None:
        return value
    value, layout = _arrived(value, layout, desired, mesh, length), desired or layout
    if is_local:
        return value
    shape = list(value.shape)
    if isinstance(layout, Shard):
        shape[layout.dim] = shape[layout.dim] * mesh.size() if length is None else length
    return DTensor.from_local(value, mesh, [layout], shape=shape)


def _as_tuple(layouts):
    """One layout, or a tuple of them, as a tuple."""
    return (layouts,) if layouts is None or isinstance(layouts, Placement) else tuple(layouts)


class _Layers(ParallelStyle):
    """The base of styles that divide the weights of linear layers and embeddings."""

    _desired_input: dict[type, Placement]
    _computed: dict[type, Any]  # the layout of what is computed
    _cuts: dict[type, dict[str, Any]]  # the layout of each parameter
    _replacements: dict[type, type]  # the classes of divided layers, where they compute in another way
    _adds_gradients: bool  # whether each process uses the whole input, for its part of the output

    def __init__(self, input_layouts, output_layouts, use_local_output):
        self.input_layouts, self.output_layouts = _as_tuple(input_layouts), _as_tuple(output_layouts)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        if device_mesh.size() == 1:
            return module
        kind = next((each for each in (nn.Linear, nn.Embedding) if isinstance(module, each)), None)
        if kind is None:
            name = type(self).__name__
            raise NotImplementedError(
                f"{name} currently only support{'s' * (name[0] == 'R')} nn.Linear and nn.Embedding!\n"
                f"  got {type(module).__name__}; to fix it: name the layers within it in the plan"
            )
        desired, computed = self._desired_input[kind], self._computed[kind]
        layers.divide(module, device_mesh, self._cuts[kind], self.src_data_rank)
        layers.change_class(module, kind, self._replacements.get(kind), self.output_layouts[0])
        group, layout = device_mesh.get_group(), self.input_layouts[0]

        def before(owner, inputs):
            first = _arrived(inputs[0], layout, desired, device_mesh)
            return (used_by_all(first, group) if self._adds_gradients and first.requires_grad else first, *inputs[1:])

        def after(owner, inputs, output):
            leaves = self.output_layouts[0]
            length = None if computed is None else owner.weight._spec.shape[self._cuts[kind]["weight"].dim]
            return _leaving(output, computed or leaves, leaves, device_mesh, self.use_local_output, length)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module

    def __repr__(self):
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Layers):
    """Each process has some of the outputs of a linear layer, or some columns of an embedding.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    >>> layer = parallelize_module(cygrad.nn.Linear(2, 4), init_device_mesh("cpu", (1,)), ColwiseParallel())
    >>> layer(cygrad.ones(3, 2)).shape
    torch.Size([3, 4])
    >>> cygrad.distributed.destroy_process_group()
    """

    _desired_input = {nn.Linear: Replicate(), nn.Embedding: Replicate()}
    _computed = {nn.Linear: Shard(-1), nn.Embedding: Shard(-1)}
    _cuts = {nn.Linear: {"weight": Shard(0), "bias": Shard(0)}, nn.Embedding: {"weight": Shard(1)}}
    _replacements = {}
    _adds_gradients = True

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)


class RowwiseParallel(_Layers):
    """Each process has the weights for some of the inputs of a linear layer, or some rows of an embedding.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import RowwiseParallel, parallelize_module
    >>> layer = parallelize_module(cygrad.nn.Linear(4, 2), init_device_mesh("cpu", (1,)), RowwiseParallel())
    >>> layer(cygrad.ones(3, 4)).shape
    torch.Size([3, 2])
    >>> cygrad.distributed.destroy_process_group()
    """

    _desired_input = {nn.Linear: Shard(-1), nn.Embedding: Replicate()}
    _computed = {nn.Linear: None, nn.Embedding: None}  # the replaced layers add up themselves
    _cuts = {nn.Linear: {"weight": Shard(1), "bias": Replicate()}, nn.Embedding: {"weight": Shard(0)}}
    _replacements = {nn.Linear: layers.RowwiseLinear, nn.Embedding: layers.RowwiseEmbedding}
    _adds_gradients = False

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)


class SequenceParallel(ParallelStyle):
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
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        if device_mesh.size() == 1:
            return module
        (layout,) = self.sequence_sharding
        layers.add_up_gradients(module, device_mesh, self.src_data_rank)
        module.register_forward_pre_hook(
            lambda owner, inputs: (_arrived(inputs[0], layout, layout, device_mesh), *inputs[1:])
        )
        module.register_forward_hook(
            lambda owner, inputs, output: _leaving(output, layout, layout, device_mesh, self.use_local_output)
        )
        return module


class PrepareModuleInput(ParallelStyle):
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
        self.input_layouts, self.desired_input_layouts = _as_tuple(input_layouts), _as_tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if input_layouts is not None and desired_input_layouts is None:
            raise AssertionError("desired module inputs should not be None!")
        if len(self.input_layouts) != len(self.desired_input_layouts):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")

    def _apply(self, module, device_mesh):
        if device_mesh.size() == 1:
            return module

        def prepared(value, layout, desired):
            return _leaving(value, layout, desired, device_mesh, self.use_local_output)

        def before(owner, inputs, named):
            if self.input_layouts != (None,):
                if len(inputs) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                inputs = tuple(map(prepared, inputs, self.input_layouts, self.desired_input_layouts))
            desired = self.desired_input_kwarg_layouts
            return inputs, {
                name: prepared(value, self.input_kwarg_layouts.get(name), desired.get(name))
                for name, value in named.items()
            }

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Spreads a module's outputs as the next one wants them.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import Replicate, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    >>> style = PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    >>> layer = parallelize_module(cygrad.nn.Linear(2, 1), init_device_mesh("cpu", (1,)), style)
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        self.output_layouts, self.desired_output_layouts = _as_tuple(output_layouts), _as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module, device_mesh):
        if device_mesh.size() == 1:
            return module

        def after(owner, inputs, outputs):
            values = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(values) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            prepared = tuple(
                _leaving(value, layout, desired, device_mesh, self.use_local_output)
                for value, layout, desired in zip(values, self.output_layouts, self.desired_output_layouts, strict=True)
            )
            return prepared if isinstance(outputs, tuple) else prepared[0]

        module.register_forward_hook(after)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Spreads a module's inputs as it wants them, and its outputs as the next one does.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import Replicate, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
    >>> style = PrepareModuleInputOutput(
    ...     input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),), output_layouts=Replicate(),
    ...     desired_output_layouts=Shard(0),
    ... )
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
        use_local_input=False,
        output_layouts,
        desired_output_layouts,
        use_local_output=True,
    ):
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Spread modules by a plan: a style for `module`, or {name of a module within it, with wildcards: style}.

    All processes of the mesh, which has one dimension, call this. Weights become `ShardedParameter`s, so the optimizer
    is made afterwards. All processes take the values of process `src_data_rank` of the mesh, or, for None, keep theirs.

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
    mesh = device_mesh if device_mesh is not None else _mesh_of_all()
    if mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D!\n"
            '  to fix it: pass a part of it, e.g. device_mesh["tp"]'
        )
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if parallelize_plan is not None and not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for pattern, style in (parallelize_plan or {}).items():
        found = [(name, inner) for name, inner in module.named_modules() if name and fnmatch(name, pattern)]
        if not found:
            warn(f"Parallelize plan key '{pattern}' could not be resolved: no submodule matching it")
        style.src_data_rank = src_data_rank
        for name, inner in found:
            parent, _, child = name.rpartition(".")
            made = style._apply(inner, mesh)
            if made is not inner:
                setattr(module.get_submodule(parent), child, made)
    return module


def _mesh_of_all():
    return init_device_mesh("cpu", (get_world_size() if is_initialized() else 1,))


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
