"""States of models and optimizers by parameters' names, without what wrappers add to them."""

from dataclasses import dataclass
from typing import Any

import cygrad.distributed as dist
from cygrad import Tensor, tensor, zeros_like
from cygrad.distributed.fsdp.fully_sharded_data_parallel import clean_tensor_name
from cygrad.distributed.tensor._dtensor import DTensor
from cygrad.nn.parallel import DataParallel, DistributedDataParallel
from cygrad.optim import LBFGS

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """What the functions return and accept.

    `full_state_dict`: whole tensors in place of DTensors; with `cpu_offload`, which copies to the CPU, in rank 0 only,
    and the others get nothing. `ignore_frozen_params` leaves them out. `broadcast_from_rank0`: rank 0 has the whole
    state to load, and the others need none.

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    >>> model = cygrad.nn.Linear(2, 1)
    >>> frozen = model.bias.requires_grad_(False)
    >>> list(get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True)))
    ['weight']
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _names(model):
    """{name in `model.state_dict()`: name without wrappers} of parameters and buffers."""
    prefix = "module." if isinstance(model, (DataParallel, DistributedDataParallel)) else ""
    return {name: clean_tensor_name(name.removeprefix(prefix)) for name in model.state_dict()}


def _parameter_names(model):
    prefix = "module." if isinstance(model, (DataParallel, DistributedDataParallel)) else ""
    return {p: clean_tensor_name(name.removeprefix(prefix)) for name, p in model.named_parameters()}


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of a model, with the names that it has without wrappers such as `DistributedDataParallel` and FSDP.

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import get_model_state_dict
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> list(model.state_dict()), list(get_model_state_dict(model))
    (['module.weight', 'module.bias'], ['weight', 'bias'])
    >>> dist.destroy_process_group()
    """
    options = options or StateDictOptions()
    state, names = model.state_dict(), _names(model)
    frozen = set()
    if options.ignore_frozen_params:
        frozen = {name for p, name in _parameter_names(model).items() if not p.requires_grad}
    return _as_asked({names[name]: value for name, value in state.items() if names[name] not in frozen}, options)


def _as_asked(values, options):
    """Values by name as the options want them. All processes call this."""
    if options.full_state_dict:
        values = {name: v.full_tensor() if isinstance(v, DTensor) else v for name, v in values.items()}
        if options.cpu_offload and dist.is_initialized() and dist.get_rank():
            return {}
    if options.cpu_offload:
        return {name: v.cpu() if isinstance(v, Tensor) else v for name, v in values.items()}
    return values


def _from_rank0(state, options):
    """The state that rank 0 has, if the options say so, else the given one."""
    if not (options.broadcast_from_rank0 and dist.is_initialized() and dist.get_world_size() > 1):
        return state
    holder = [state if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(holder, 0)
    return holder[0]


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load a state of `get_model_state_dict`.

    A model on the device "meta" gets memory from a state of whole tensors (`full_state_dict`, `broadcast_from_rank0`).

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    >>> model, other = cygrad.nn.Linear(2, 1), cygrad.nn.Linear(2, 1)
    >>> set_model_state_dict(other, get_model_state_dict(model))
    <All keys matched successfully>
    >>> cygrad.equal(model.weight, other.weight)
    True
    """
    options = options or StateDictOptions()
    model_state_dict = _from_rank0(model_state_dict, options)
    back = {short: name for name, short in _names(model).items()}
    state = {back.get(name, name): value for name, value in model_state_dict.items()}
    is_whole = options.full_state_dict or options.broadcast_from_rank0
    assign = is_whole and any(value.is_meta for value in model.state_dict().values() if isinstance(value, Tensor))
    return model.load_state_dict(state, strict=options.strict, assign=assign)


def _as_tuple(optimizers):
    return tuple(optimizers) if isinstance(optimizers, (list, tuple)) else (optimizers,)


def _inside(optimizer):
    """The optimizer that a wrapper such as `ZeroRedundancyOptimizer` has within."""
    return getattr(optimizer, "optim", optimizer)


def _init_optim_state(optimizer):
    """Give an optimizer that has not made a step the state that a checkpoint is loaded into.

    The step is made with gradients and learning rates of 0, and changes no parameter.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or isinstance(optimizer, LBFGS) or any(p.grad is not None for p in parameters):
        return  # LBFGS would call the closure
    rates = [group.get("lr") for group in optimizer.param_groups]
    try:
        for p in parameters:
            p.grad = zeros_like(p) if p.requires_grad else None
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = tensor(0.0) if isinstance(rate, Tensor) else 0.0
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = rate
        for p in parameters:
            p.grad = None


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of optimizers, keyed by the parameters' names; flat, with dotted names, if the options say so.

    An optimizer that has not made a step gets its state here, so that `load` has something to load into.

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> get_optimizer_state_dict(model, optimizer)["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    options = options or StateDictOptions()
    names = _parameter_names(model)
    together: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _as_tuple(optimizers):
        inner = _inside(optimizer)
        _init_optim_state(inner)
        parameters = [p for group in inner.param_groups for p in group["params"]]
        for number, values in inner.state_dict()["state"].items():
            values = _as_asked(values, options)
            if values:
                together["state"][names[parameters[number]]] = values
        for group in optimizer.param_groups:
            options_of_group = {key: value for key, value in group.items() if key != "params"}
            together["param_groups"].append({**options_of_group, "params": [names[p] for p in group["params"]]})
    return _flat(together) if options.flatten_optimizer_state_dict else together


def _flat(state):
    flat = {f"state.{name}.{key}": value for name, values in state["state"].items() for key, value in values.items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update((f"param_groups.{name}.{key}", value) for key, value in group.items() if key != "params")
    return flat


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Load states of `get_optimizer_state_dict`.

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> state = get_optimizer_state_dict(model, optimizer)
    >>> state["param_groups"][0]["lr"] = 0.5
    >>> set_optimizer_state_dict(model, optimizer, state)
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """
    optim_state_dict = _from_rank0(optim_state_dict, options or StateDictOptions())
    names = _parameter_names(model)
    flat = "state" not in optim_state_dict
    for whole in _as_tuple(optimizers):
        optimizer = _inside(whole)
        own = optimizer.state_dict()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        order = [names[p] for p in parameters]
        state, groups = {}, []
        for number, name in enumerate(order):
            values = _from_flat(optim_state_dict, f"state.{name}.") if flat else optim_state_dict["state"].get(name)
            if values:
                state[number] = values
        for group in own["param_groups"]:
            first = order[group["params"][0]] if group["params"] else None
            groups.append({**group, **_group_of(optim_state_dict, first, flat), "params": group["params"]})
        optimizer.load_state_dict({"state": state, "param_groups": groups})
        if whole is not optimizer:
            for group, inner in zip(whole.param_groups, optimizer.param_groups):
                group.update((key, value) for key, value in inner.items() if key != "params")


def _from_flat(flat, prefix):
    return {name[len(prefix) :]: value for name, value in flat.items() if name.startswith(prefix)}


def _group_of(state, name, is_flat):
    """The options of the group that a parameter is in."""
    if is_flat:
        return _from_flat(state, f"param_groups.{name}.")
    return next((group for group in state["param_groups"] if name in group["params"]), {})


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of a model and of its optimizers.

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import get_state_dict
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> of_model, of_optimizer = get_state_dict(model, optimizer)
    >>> list(of_model), list(of_optimizer)
    (['weight', 'bias'], ['state', 'param_groups'])
    """
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Load the states of a model and of its optimizers.

    >>> import cygrad
    >>> from cygrad.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> of_model, of_optimizer = get_state_dict(model, optimizer)
    >>> set_state_dict(model, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
    <All keys matched successfully>
    """
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
