"""States of models and optimizers by parameters' names, without what wrappers add to them."""

from dataclasses import dataclass
from typing import Any

from cygrad.distributed.fsdp.fully_sharded_data_parallel import clean_tensor_name
from cygrad.nn.parallel import DataParallel, DistributedDataParallel

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """What the functions return and accept; `cpu_offload` copies to the CPU, `ignore_frozen_params` leaves them out."""

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
    """The state of a model, with the names that it has without wrappers such as `DistributedDataParallel` and FSDP."""
    options = options or StateDictOptions()
    state, names = model.state_dict(), _names(model)
    frozen = set()
    if options.ignore_frozen_params:
        frozen = {name for p, name in _parameter_names(model).items() if not p.requires_grad}
    kept = {names[name]: value for name, value in state.items() if names[name] not in frozen}
    return {name: value.cpu() for name, value in kept.items()} if options.cpu_offload else kept


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load a state of `get_model_state_dict`."""
    options = options or StateDictOptions()
    back = {short: name for name, short in _names(model).items()}
    state = {back.get(name, name): value for name, value in model_state_dict.items()}
    return model.load_state_dict(state, strict=options.strict)


def _as_tuple(optimizers):
    return tuple(optimizers) if isinstance(optimizers, (list, tuple)) else (optimizers,)


def _inside(optimizer):
    """The optimizer that a wrapper such as `ZeroRedundancyOptimizer` has within."""
    return getattr(optimizer, "optim", optimizer)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of optimizers, keyed by the parameters' names; flat, with dotted names, if the options say so."""
    options = options or StateDictOptions()
    names = _parameter_names(model)
    together: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in map(_inside, _as_tuple(optimizers)):
        order = [names[p] for group in optimizer.param_groups for p in group["params"]]
        stored = optimizer.state_dict()
        for number, values in stored["state"].items():
            together["state"][order[number]] = values
        for group in stored["param_groups"]:
            together["param_groups"].append({**group, "params": [order[number] for number in group["params"]]})
    return _flat(together) if options.flatten_optimizer_state_dict else together


def _flat(state):
    flat = {f"state.{name}.{key}": value for name, values in state["state"].items() for key, value in values.items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update((f"param_groups.{name}.{key}", value) for key, value in group.items() if key != "params")
    return flat


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Load states of `get_optimizer_state_dict`."""
    names = _parameter_names(model)
    flat = "state" not in optim_state_dict
    for optimizer in map(_inside, _as_tuple(optimizers)):
        own = optimizer.state_dict()
        order = [names[p] for group in optimizer.param_groups for p in group["params"]]
        state, groups = {}, []
        for number, name in enumerate(order):
            values = _from_flat(optim_state_dict, f"state.{name}.") if flat else optim_state_dict["state"].get(name)
            if values:
                state[number] = values
        for group in own["param_groups"]:
            first = order[group["params"][0]] if group["params"] else None
            groups.append({**group, **_group_of(optim_state_dict, first, flat), "params": group["params"]})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def _from_flat(flat, prefix):
    return {name[len(prefix) :]: value for name, value in flat.items() if name.startswith(prefix)}


def _group_of(state, name, is_flat):
    """The options of the group that a parameter is in."""
    if is_flat:
        return _from_flat(state, f"param_groups.{name}.")
    return next((group for group in state["param_groups"] if name in group["params"]), {})


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of a model and of its optimizers."""
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Load the states of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
