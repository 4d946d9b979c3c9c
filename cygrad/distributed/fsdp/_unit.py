"""`Unit`: the parameters of one module, which are gathered before their use and given back after it.

Note [Sharded training]
-----------------------
Between uses each process has the rows of its part of every parameter, and the optimizer sees only these. Before a
module's `forward` its unit gathers the parameters in one all-gather; during `forward` the module has the whole tensors,
as results of `_Gather`, a recorded function of the parts. What ops save for backward and lies in the gathered memory is
replaced by a note of where it lies there (`_pack`), so that the memory is free again after `forward`. Backward gathers
it once more as soon as it is asked for (`_unpack`), and begins to gather that of the unit that ran before. Once the
gradients of all parameters have come, `_Gather.backward` gives the memory back and begins a reduce-scatter of the
gradients, which goes on during the rest of the pass; at its end each part gets its `.grad`. A process thus has its part
of everything, and the whole parameters of the few modules at work.
"""

from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad._core.engine.backward import is_selective, queue_callback, set_poll
from cygrad.autograd import Function
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed.tensor._dtensor import DTensor, whole
from cygrad.distributed.tensor._sharded_parameter import ParallelParameter, ShardedParameter, as_dtensor
from cygrad.distributed.tensor._shards import bounds, local_part
from cygrad.distributed.tensor.placement_types import DTensorSpec, Replicate, Shard
from cygrad.nn.parameter import Parameter

__all__ = ["Unit"]


class _State:
    """What the units of one process share: those at work, in order, and what is under way in a backward pass."""

    def __init__(self):
        self.depth = 0  # modules of units whose `forward` runs
        self.order: list[Unit] = []
        self.places: dict = {}  # {address: (unit, number of the parameter)} of gathered parameters
        self.reductions: list = []
        self.is_queued = False


class _Flat:
    """The parameters of a unit that travel together, in one dtype."""

    def __init__(self, dtype, numbers, unit):
        self.dtype, self.numbers = dtype, numbers
        self.sizes = [unit.widths[n] * unit.shapes[n][1:].numel() for n in numbers]
        self.length = sum(self.sizes)


class _Gather(Function):
    """The whole parameters, as a function of this process's parts."""

    @staticmethod
    def forward(ctx, unit, *parts):
        ctx.unit = unit
        ctx.set_materialize_grads(False)
        wholes = tuple(each.detach() for each in unit.gather())
        ctx.mark_non_differentiable(
            *(each for each, parameter in zip(wholes, unit.parameters) if not parameter.requires_grad)
        )
        return wholes

    @staticmethod
    def backward(ctx, *gradients):
        ctx.unit.take(gradients)
        return (None,) * (len(gradients) + 1)


class Unit:
    """The parameters of `module` that are in no unit yet, divided over the processes of a mesh."""

    def __init__(self, module, mesh, policy, *, keeps_whole, dtype_of=None, ignored=()):
        self.module, self.mesh, self.policy = module, mesh, policy
        self.keeps_whole = keeps_whole  # from forward until backward; None: if it is the outermost
        self.gives_back = True  # after backward
        self.reduces, self.divisor = True, None
        self.is_held = False
        self._is_fetched = False  # by `unshard`: held until the next use ends
        self._held: Any = None
        self.shard_dim = mesh.ndim - 1
        self.group = mesh.get_group(self.shard_dim)
        self.copies = mesh.get_group(0) if mesh.ndim == 2 else None
        self.size, self.rank = self.group.size(), self.group.rank()
        self.state = vars(self.group).setdefault("_sharding", _State())
        self._wholes: Any = None
        self._gathering: Any = None
        self._unreduced: Any = None
        self._uses = 0
        self._divide(module, dtype_of or (lambda owner: policy.param_dtype), set(ignored))

    # --- Parts -----------------------------------------------------------------------------------

    def _divide(self, module, dtype_of, ignored):
        found: dict = {}  # {parameter: ([(module, name)], dtype in which it travels)}
        for prefix, owner in module.named_modules():
            for name, parameter in owner._parameters.items():
                if isinstance(parameter, ParallelParameter):
                    raise NotImplementedError(
                        f"fully_shard: {prefix + '.' * bool(prefix) + name} is divided by parallelize_module\n"
                        "  to fix it: use DistributedDataParallel with the group of the other dimension of the mesh"
                    )
                if parameter is None or isinstance(parameter, ShardedParameter) or parameter in ignored:
                    continue
                if parameter.dim() == 0:
                    raise ValueError(
                        "fully_shard doesn't support scalar parameters. Change "
                        f"{prefix + '.' * bool(prefix) + name} to a 1D tensor with numel equal to 1."
                    )
                dtype = dtype_of(owner) if parameter.is_floating_point() else None
                found.setdefault(parameter, ([], dtype or parameter.dtype))[0].append((owner, name))
        self.slots = [slots for slots, _ in found.values()]
        self.shapes = [parameter.shape for parameter in found]
        self.widths = [-(-shape[0] // self.size) for shape in self.shapes]
        placements = (Replicate(),) * self.shard_dim + (Shard(0),)
        self.specs = [DTensorSpec(self.mesh, placements, tuple(parameter.shape)) for parameter in found]
        self.parameters: list[Any] = [None] * len(found)
        for number, parameter in enumerate(found):
            local = local_part(parameter.detach(), 0, self.size, self.rank).clone()
            self._set_part(number, local, parameter.requires_grad)
        kinds: dict = {}
        for number, (_, dtype) in enumerate(found.values()):
            kinds.setdefault(dtype, []).append(number)
        self.flats = [_Flat(dtype, numbers, self) for dtype, numbers in kinds.items()]

    def _set_part(self, number, local, requires_grad):
        """Let a tensor be this process's part of a parameter, under all its names."""
        part = ShardedParameter(local, requires_grad)
        part._spec = self.specs[number]
        self.parameters[number] = part
        for owner, name in self.slots[number]:
            owner._parameters[name] = part

    # --- Gathering -------------------------------------------------------------------------------

    @cygrad.no_grad()
    def begin_gathering(self):
        """Begin to gather the parameters, unless they are there or under way."""
        if self._wholes is not None or self._gathering is not None:
            return
        self._gathering = []
        for flat in self.flats:
            mine = cygrad.zeros(flat.length, dtype=flat.dtype, device=self.parameters[flat.numbers[0]].device)
            for number, place in zip(flat.numbers, mine.split(flat.sizes)):
                part = self.parameters[number].detach()
                place[: part.numel()].copy_(part.reshape(-1))
            everything = mine.new_empty(flat.length * self.size)
            self._gathering.append((flat, everything, self.group.all_gather_single(everything, mine)))

    @cygrad.no_grad()
    def gather(self):
        """The whole parameters."""
        if self._wholes is not None:
            return self._wholes
        self.begin_gathering()
        self._wholes = [None] * len(self.parameters)
        for flat, everything, work in self._gathering:
            work.wait()
            rows = everything.view(self.size, flat.length)
            for number, place in zip(flat.numbers, rows.split(flat.sizes, 1)):
                shape = self.shapes[number]
                if len(flat.numbers) > 1:  # memory of its own, by whose address it is found
                    place = place.clone(memory_format=cygrad.contiguous_format)
                tensor = place.view(self.widths[number] * self.size, *shape[1:])[: shape[0]]
                self._wholes[number] = tensor
                self.state.places[tensor.data_ptr()] = (self, number)
        self._gathering = None
        return self._wholes

    def release(self):
        """Give the whole parameters back."""
        if self._gathering is not None:
            for _, _, work in self._gathering:
                work.wait()
            self._gathering = None
        if self._wholes is not None:
            for tensor in self._wholes:
                self.state.places.pop(tensor.data_ptr(), None)
            self._wholes = None

    # --- Forward ---------------------------------------------------------------------------------

    @contextmanager
    def at_work(self):
        """Within this context the module has the whole parameters."""
        state = self.state
        is_outermost = state.depth == 0
        if is_outermost and is_selective() is None:
            _forget(state, self.module)
        state.depth += 1
        self._uses += 1
        records = False
        try:
            records = cygrad.is_grad_enabled() and any(each.requires_grad for each in self.parameters)
            wholes = _Gather.apply(self, *self.parameters) if records else [each.detach() for each in self.gather()]
            if records and self not in state.order:
                state.order.append(self)
            before = self.put(wholes)
            try:
                with saved_tensors_hooks(self._pack, _unpack):
                    yield
            finally:
                self.put_back(before)
        finally:
            state.depth -= 1
            self._uses -= 1
            keeps = is_outermost if self.keeps_whole is None else self.keeps_whole
            if not (self._uses or keeps and (records or self._is_fetched)):
                self.end_use()

    def put(self, tensors):
        """Let the module have these tensors as its parameters; returns what it had."""
        before = [(owner, name, owner._parameters[name]) for slots in self.slots for owner, name in slots]
        for slots, tensor in zip(self.slots, tensors):
            for owner, name in slots:
                owner._parameters[name] = tensor
        return before

    @staticmethod
    def put_back(before):
        """Let the module have what it had."""
        for owner, name, tensor in before:
            owner._parameters[name] = tensor

    def fetch(self):
        """Keep the whole parameters in the module until the next use ends, as `reshard_after_forward` says."""
        if not self.is_held:
            self.hold()
            self._is_fetched = True

    def end_use(self):
        """Give the whole parameters back, unless `hold` keeps them."""
        if self._is_fetched or not self.is_held:
            self.let_go()

    def hold(self, with_grads=False):
        """Keep the whole parameters, perhaps with whole gradients, in the module until `let_go`."""
        self._is_fetched = False
        if self.is_held:
            return
        self.is_held = True
        held = [Parameter(w.detach(), p.requires_grad) for w, p in zip(self.gather(), self.parameters)]
        if with_grads:
            for tensor, part, spec in zip(held, self.parameters, self.specs):
                if part.grad is not None:
                    tensor.grad = whole(part.grad, spec)
        self._held = self.put(held)

    def let_go(self, writes_back=False):
        """End `hold`; with `writes_back` the parts become those of what the whole parameters are now."""
        if not self.is_held:
            self.release()
            return
        if writes_back:
            with cygrad.no_grad():
                for part, tensor in zip(self.parameters, self.gather()):
                    part.copy_(local_part(tensor, 0, self.size, self.rank))
        self.put_back(self._held)
        self.is_held, self._is_fetched, self._held = False, False, None
        self.release()

    # --- State -----------------------------------------------------------------------------------

    def names(self):
        """(name within the module, number of the parameter) of all parameters, under all their names."""
        paths = {owner: path for path, owner in self.module.named_modules()}
        for number, slots in enumerate(self.slots):
            for owner, name in slots:
                yield f"{paths[owner]}.{name}" if paths[owner] else name, number

    def before_state(self, *_):
        """The hook before `state_dict`, which shows parts."""
        self.end_use()

    def parts_in_state(self, module, state_dict, prefix, *_):
        """The hook of `state_dict`: parts are DTensors there."""
        for name, number in self.names():
            value = state_dict.get(prefix + name)
            if value is not None and value.shape == self.parameters[number].shape:
                state_dict[prefix + name] = as_dtensor(value, self.specs[number])

    def parts_of_state(self, module, state_dict, prefix, local_metadata, *_):
        """The hook of `load_state_dict`: whole tensors and DTensors become parts."""
        self.end_use()
        for name, number in self.names():
            value = state_dict.get(prefix + name)
            if isinstance(value, DTensor):
                state_dict[prefix + name] = value.to_local()
            elif value is not None and value.shape == self.shapes[number]:
                part = local_part(value, 0, self.size, self.rank)
                # A part that becomes the parameter must not keep the whole alive, nor share its memory.
                is_kept = local_metadata.get("assign_to_params_buffers", False)
                state_dict[prefix + name] = part.clone() if is_kept else part

    def adopt(self, module, incompatible_keys):
        """The hook after `load_state_dict`, which with `assign=True` gives the module other tensors."""
        if self.is_held:
            return
        for number, slots in enumerate(self.slots):
            owner, name = slots[0]
            loaded = owner._parameters[name]
            if loaded is not self.parameters[number]:
                self._set_part(number, loaded.detach(), loaded.requires_grad)
                self.release()

    # --- What ops keep ---------------------------------------------------------------------------

    def _pack(self, tensor):
        """What is kept for backward: a note if the tensor lies in the memory of a whole parameter."""
        offset = tensor.storage_offset()
        found = self.state.places.get(tensor.data_ptr() - offset * tensor.element_size())
        if found is None:
            return tensor
        unit, number = found
        if unit._wholes is None or tensor.dtype != unit._wholes[number].dtype:
            return tensor
        return unit, number, tensor.shape, tensor.stride(), offset

    # --- Backward --------------------------------------------------------------------------------

    def gather_again(self):
        """The whole parameters, for backward; begins to gather those of the unit that ran before."""
        wholes = self.gather()
        order = self.state.order
        _at_the_end(self.state)
        if self in order:
            place = order.index(self)
            if place > 0 and order[place - 1] is not self:
                order[place - 1].begin_gathering()
        return wholes

    @cygrad.no_grad()
    def take(self, gradients):
        """Take over the gradients of the whole parameters, and begin to reduce them."""
        state = self.state
        _at_the_end(state)
        if self._unreduced is not None:
            gradients = [b if a is None else a if b is None else a + b for a, b in zip(self._unreduced, gradients)]
        if self.gives_back:
            self.end_use()
        if self in state.order:
            state.order.remove(self)
        if not self.reduces:
            self._unreduced = [None if each is None else each.detach() for each in gradients]
            return
        self._unreduced = None
        divisor = self.divisor or self.size * (self.copies.size() if self.copies is not None else 1)
        for flat in self.flats:
            state.reductions.append(_Reduction(self, flat, gradients, 1 / divisor))


class _Reduction:
    """A reduce-scatter of gradients that is under way, or, in a unit of copies, what follows it."""

    def __init__(self, unit, flat, gradients, scale):
        self.unit, self.flat = unit, flat
        self.has = [gradients[number] is not None for number in flat.numbers]
        device = unit.parameters[flat.numbers[0]].device
        dtype = unit.policy.reduce_dtype or flat.dtype
        everything = cygrad.zeros(unit.size, flat.length, dtype=dtype, device=device)
        for number, place in zip(flat.numbers, everything.split(flat.sizes, 1)):
            gradient = gradients[number]
            if gradient is None:
                continue
            self._lay(gradient * scale, place, unit.widths[number])
        self.mine = everything.new_empty(flat.length)
        self.work = unit.group.reduce_scatter_single(self.mine, everything.view(-1), ReduceOp.SUM)

    @staticmethod
    def _lay(gradient, place, width):
        """Copy the rows for each process into its row of a matrix."""
        for rank in range(place.shape[0]):
            first, last = bounds(gradient.shape[0], place.shape[0], rank)
            rows = gradient[first:last]
            place[rank, : rows.numel()].copy_(rows.reshape(-1))

    def finish(self):
        """Wait, and add the result to the gradients of the parts."""
        self.work.wait()
        unit = self.unit
        if unit.copies is not None and unit.copies.size() > 1:
            unit.copies.allreduce([self.mine]).wait()
        for number, place in zip(self.flat.numbers, self.mine.split(self.flat.sizes)):
            part = unit.parameters[number]
            if not part.requires_grad:
                continue
            gradient = place[: part.numel()].view(part.shape).to(part.dtype, copy=True)
            part.grad = gradient if part.grad is None else part.grad.add_(gradient)


def _unpack(kept):
    if type(kept) is not tuple:
        return kept
    unit, number, shape, stride, offset = kept
    return unit.gather_again()[number].as_strided(shape, stride, offset)


def _forget(state, module):
    """Give back what an earlier pass has left: parameters may have changed since."""
    for unit in units_in(module):
        if not unit.is_held:
            unit.release()
    state.order.clear()
    state.reductions.clear()
    state.is_queued = False  # it may be from a pass that an error has ended


def _at_the_end(state):
    """Finish the reductions of the backward pass running in this thread at its end, and let them proceed until then."""
    if state.is_queued or is_selective() is None:
        return
    state.is_queued = True

    def finish():
        state.is_queued = False
        reductions, state.reductions = state.reductions, []
        with cygrad.no_grad():
            for each in reductions:
                each.finish()
        for unit in state.order:
            if not unit._uses:
                unit.end_use()
        state.order.clear()

    def poll():
        for each in state.reductions:
            each.work.is_completed()

    queue_callback(finish)
    set_poll(poll)


def units_in(module):
    """The units of a module and of those within it."""
    return [each._fsdp_unit for each in module.modules() if getattr(each, "_fsdp_unit", None) is not None]
