"""`FullyShardedDataParallel`, FSDP's wrapper, on the units of `fully_shard`."""

from contextlib import contextmanager

import cygrad
import cygrad.distributed as dist
from cygrad.distributed._data_parallel.agreement import send
from cygrad.distributed.device_mesh import DeviceMesh
from cygrad.distributed.distributed_c10d import _get_default_group
from cygrad.distributed.fsdp import _precision, api
from cygrad.distributed.fsdp._common_utils import _FSDPState  # noqa: F401, libraries look for it here
from cygrad.distributed.fsdp._fully_shard import MixedPrecisionPolicy, attach
from cygrad.distributed.fsdp._unit import Unit, units_in
from cygrad.distributed.fsdp.api import *
from cygrad.distributed.fsdp.wrap import wrap_chosen
from cygrad.distributed.tensor._dtensor import DTensor
from cygrad.distributed.tensor._sharded_parameter import local_values, spread_values, whole_values
from cygrad.nn.modules import Module
from cygrad.nn.parameter import Parameter
from cygrad.nn.utils import clip_grad_norm_

__all__ = ["FlatParameter", "FullyShardedDataParallel", *api.__all__]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."


class FlatParameter(Parameter):
    """The class of PyTorch's flat parameters. Here parameters stay as they are, so that none is made.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FlatParameter, FullyShardedDataParallel
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = FullyShardedDataParallel(cygrad.nn.Linear(2, 1))
    >>> any(isinstance(parameter, FlatParameter) for parameter in model.parameters())
    False
    >>> dist.destroy_process_group()
    """


def clean_tensor_name(tensor_name):
    """A parameter's name without the parts that wrappers add to it."""
    from cygrad.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX  # imports this package

    return tensor_name.replace(FSDP_PREFIX, "").replace(_CHECKPOINT_PREFIX, "")


class FullyShardedDataParallel(Module):
    """Wraps a module whose parameters are spread over the processes of a group. One process has them whole.

    It does what `fully_shard` does, to the module and to those that `auto_wrap_policy` wraps within it: each process
    has some rows of every parameter (`ShardedParameter`, as with `use_orig_params=True`), and whole ones only at work.
    `sharding_strategy`: with `FULL_SHARD` (the default) whole parameters are given back after `forward`, with
    `SHARD_GRAD_OP` and `NO_SHARD` after `backward`; the hybrid ones, with a pair of groups or a mesh of two dimensions,
    keep copies over the second group. `mixed_precision` computes in other dtypes. `state_dict()` has the names of the
    wrapped module, and whole tensors unless `state_dict_type` says otherwise.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP, OptimStateKeyType, StateDictType
    >>> model = FSDP(cygrad.nn.Linear(2, 1))
    >>> model(cygrad.ones(3, 2)).shape, list(model.state_dict())
    (torch.Size([3, 1]), ['weight', 'bias'])
    >>> len(FSDP.fsdp_modules(model)), model.check_is_root()
    (1, True)
    >>> with model.no_sync():  # gradients of this batch are not reduced
    ...     model(cygrad.ones(3, 2)).sum().backward()
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.clip_grad_norm_(1.0) > 1
    tensor(True)
    >>> with FSDP.summon_full_params(model):
    ...     [name for name, _ in model.named_parameters()], list(model.named_buffers())
    (['weight', 'bias'], [])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module,
        process_group=None,
        sharding_strategy=None,
        cpu_offload=None,
        auto_wrap_policy=None,
        backward_prefetch=BackwardPrefetch.BACKWARD_PRE,
        mixed_precision=None,
        ignored_modules=None,
        param_init_fn=None,
        device_id=None,
        sync_module_states=False,
        forward_prefetch=False,
        limit_all_gathers=True,
        use_orig_params=False,
        ignored_states=None,
        device_mesh=None,
    ):
        super().__init__()
        mesh = device_mesh if device_mesh is not None else _mesh_of(process_group)
        self.process_group = mesh.get_group(mesh.ndim - 1)
        ignored = {*(ignored_modules or ()), *(ignored_states or ())}
        if auto_wrap_policy is not None:
            policy = getattr(auto_wrap_policy, "policy", auto_wrap_policy)
            options = {
                "device_mesh": mesh, "sharding_strategy": sharding_strategy, "mixed_precision": mixed_precision,
            }  # fmt: skip
            wrap_chosen(module, policy, self._wrapper_of_children(options), ignored)
        if param_init_fn is not None:
            for inner in module.modules():
                if any(parameter.is_meta for parameter in inner.parameters(recurse=False)):
                    param_init_fn(inner)
        if device_id is not None:
            module.to(device_id if isinstance(device_id, cygrad.device) else f"cuda:{device_id}")
        self._fsdp_wrapped_module = module
        self.cpu_offload = cpu_offload or CPUOffload()
        self.mixed_precision = mixed_precision or MixedPrecision()
        if self.process_group.size() == 1:
            self.sharding_strategy = ShardingStrategy.NO_SHARD  # as in PyTorch
        else:
            self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
            if sync_module_states:
                send([*module.parameters(), *module.buffers()], self.process_group, 0)
            self._divide(module, mesh, ignored)
        self.backward_prefetch, self._use_orig_params = backward_prefetch, use_orig_params
        self._is_summoned = False
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._register_state_dict_hook(self._shorten_names)
        self.register_load_state_dict_pre_hook(self._lengthen_names)

    def _wrapper_of_children(self, given):
        def wrapper(module, **options):
            return type(self)(module, **{**given, **options})

        return wrapper

    def _divide(self, module, mesh, ignored):
        """Let each process have a part of the parameters that no wrapper within has."""
        precision = self.mixed_precision
        keeps = self.sharding_strategy not in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD)

        def dtype_of(owner):
            return None if isinstance(owner, tuple(precision._module_classes_to_ignore)) else precision.param_dtype

        policy = MixedPrecisionPolicy(precision.param_dtype, precision.reduce_dtype, None, False)
        unit = Unit(module, mesh, policy, keeps_whole=keeps, dtype_of=dtype_of, ignored=_parameters_of(ignored))
        attach(module, unit)

    @property
    def module(self):
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key):
        return self._fsdp_wrapped_module.__getitem__(key)

    def forward(self, *args, **kwargs):
        """Call the wrapped module, in the dtypes of `mixed_precision`.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> FSDP(cygrad.nn.Linear(2, 1))(cygrad.ones(3, 2)).shape
        torch.Size([3, 1])
        >>> dist.destroy_process_group()
        """
        precision = self.mixed_precision
        if precision.cast_forward_inputs or precision.cast_root_forward_inputs:
            args = _precision.cast_floating(args, precision.param_dtype)
            kwargs = _precision.cast_floating(kwargs, precision.param_dtype)
        is_divided = hasattr(self._fsdp_wrapped_module, "_fsdp_unit")
        with _precision.parameters_in_dtype(
            self._fsdp_wrapped_module,
            None if is_divided else precision.param_dtype,
            precision.buffer_dtype,
            tuple(precision._module_classes_to_ignore),
        ):
            return self._fsdp_wrapped_module(*args, **kwargs)

    # --- Names -----------------------------------------------------------------------------------

    @staticmethod
    def _shorten_names(module, state_dict, prefix, *_):
        own = [name for name in state_dict if name.startswith(prefix + FSDP_PREFIX)]
        for name in own:
            state_dict[prefix + name[len(prefix + FSDP_PREFIX) :]] = state_dict.pop(name)
        if module._settings.state_dict_type is StateDictType.FULL_STATE_DICT:
            module._make_whole(state_dict, [prefix + name[len(prefix + FSDP_PREFIX) :] for name in own])

    def _make_whole(self, state_dict, names):
        """Gather what this process has parts of, into all processes or into that of rank 0."""
        config = self._settings.state_dict_config
        for name in names:
            value = state_dict[name]
            if isinstance(value, DTensor):
                value = value.full_tensor()
            if getattr(config, "rank0_only", False) and self.process_group.rank():
                del state_dict[name]
            else:
                state_dict[name] = value.cpu() if config.offload_to_cpu and isinstance(value, cygrad.Tensor) else value

    @staticmethod
    def _lengthen_names(module, state_dict, prefix, *_):
        for name in list(state_dict):
            if name.startswith(prefix) and not name.startswith(prefix + FSDP_PREFIX):
                state_dict[prefix + FSDP_PREFIX + name[len(prefix) :]] = state_dict.pop(name)

    def named_parameters(self, *args, **kwargs):
        """Like `Module.named_parameters`; within `summon_full_params` with the names of the wrapped module."""
        return self._named(super().named_parameters(*args, **kwargs))

    def named_buffers(self, *args, **kwargs):
        """Like `Module.named_buffers`; within `summon_full_params` with the names of the wrapped module."""
        return self._named(super().named_buffers(*args, **kwargs))

    def _named(self, pairs):
        for name, tensor in pairs:
            yield (name.replace(FSDP_PREFIX, "") if self._is_summoned else name), tensor

    # --- Parameters ------------------------------------------------------------------------------

    @staticmethod
    def fsdp_modules(module, root_only=False):
        """The FSDP modules in a module, itself included, or those that are in no other."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        if not root_only:
            return found
        inside = {inner for each in found for inner in each._fsdp_wrapped_module.modules()}
        return [each for each in found if each not in inside]

    def check_is_root(self):
        """Whether this module is the outermost: in one process each is treated so."""
        return True

    @staticmethod
    @contextmanager
    def summon_full_params(
        module, recurse=True, writeback=True, rank0_only=False, offload_to_cpu=False, with_grads=False
    ):
        """Within this context the parameters of `module` are whole, and have the names of the wrapped modules.

        With `writeback` each process keeps its part of what they are at the end. All processes have them, whatever
        `rank0_only` says.
        """
        found = FullyShardedDataParallel.fsdp_modules(module)
        units = units_in(module) if recurse else [each._fsdp_wrapped_module._fsdp_unit for each in found[:1]]
        for unit in units:
            unit.hold(with_grads)
        for each in found:
            each._is_summoned = True
        try:
            yield
        finally:
            for each in found:
                each._is_summoned = False
            for unit in units:
                unit.let_go(writeback)

    def apply(self, fn):
        """Call `fn` with each module within, and with this one.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1)).apply(lambda module: print(type(module).__name__))
        Linear
        FullyShardedDataParallel
        >>> dist.destroy_process_group()
        """
        return super().apply(fn)

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Scale all gradients down until their norm is at most `max_norm`; returns the norm they had."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @contextmanager
    def no_sync(self):
        """Within this context, whole gradients of this process accumulate and are not reduced."""
        units = units_in(self)
        for unit in units:
            unit.reduces = False
        try:
            yield
        finally:
            for unit in units:
                unit.reduces = True

    def register_comm_hook(self, state, hook):
        """Take a hook that reduces gradients; in one process it is not called. Raises RuntimeError in several.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, lambda state, grad: None)
        >>> dist.destroy_process_group()
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.process_group.size() > 1:
            raise RuntimeError(
                "register_comm_hook: cygrad has communication hooks for DistributedDataParallel only\n"
                "  to fix it: MixedPrecision(reduce_dtype=...) reduces in fewer bytes"
            )

    # --- State -----------------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Set what `state_dict()` of the FSDP modules in `module` returns; returns what it was.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1))
        >>> before = FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
        >>> before.state_dict_type.name
        'FULL_STATE_DICT'
        >>> dist.destroy_process_group()
        """
        before = FullyShardedDataParallel.get_state_dict_type(module)
        configs = {
            StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
            StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
            StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
        }
        usual = configs[state_dict_type]
        settings = StateDictSettings(
            state_dict_type, state_dict_config or usual[0](), optim_state_dict_config or usual[1]()
        )
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module):
        """What `state_dict()` of the FSDP modules in `module` returns, with its options.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> FSDP.get_state_dict_type(FSDP(cygrad.nn.Linear(2, 1))).state_dict_type.name
        'FULL_STATE_DICT'
        >>> dist.destroy_process_group()
        """
        for each in FullyShardedDataParallel.fsdp_modules(module):
            return each._settings
        return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())

    @staticmethod
    @contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Within this context `state_dict()` returns what `set_state_dict_type` says.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1))
        >>> with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        ...     FSDP.get_state_dict_type(model).state_dict_type.name
        'SHARDED_STATE_DICT'
        >>> dist.destroy_process_group()
        """
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config
            )

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None):
        """The state of an optimizer of `model`, keyed by the parameters' names: whole, or as `state_dict_type` says.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1))
        >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
        >>> FSDP.full_optim_state_dict(model, optimizer)["param_groups"][0]["params"]
        ['weight', 'bias']
        >>> dist.destroy_process_group()
        """
        state = optim.state_dict() if optim_state_dict is None else optim_state_dict
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        is_whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        state = _converted(state, _parameters_in_order(model, optim), whole_values if is_whole else spread_values)
        if is_whole and settings.optim_state_dict_config.rank0_only and dist.get_rank() != 0:
            return {}  # the others have taken part in gathering
        return FullyShardedDataParallel.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_NAME, model, optim=optim)

    full_optim_state_dict = optim_state_dict
    sharded_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
    ):
        """A state keyed by the parameters' names as `optim.load_state_dict` takes it.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1))
        >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
        >>> state = FSDP.full_optim_state_dict(model, optimizer)
        >>> optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, state))
        >>> dist.destroy_process_group()
        """
        state = FullyShardedDataParallel.rekey_optim_state_dict(
            optim_state_dict, OptimStateKeyType.PARAM_ID, model, optim=optim
        )
        state = _converted(state, _parameters_in_order(model, optim), local_values)
        if load_directly:
            optim.load_state_dict(state)
        return state

    @staticmethod
    def rekey_optim_state_dict(optim_state_dict, optim_state_key_type, model, optim_input=None, optim=None):
        """A state keyed by the parameters' names or by their numbers.

        >>> import cygrad
        >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP, OptimStateKeyType
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = FSDP(cygrad.nn.Linear(2, 1))
        >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
        >>> state = FSDP.full_optim_state_dict(model, optimizer)
        >>> by_number = FSDP.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_ID, model, optim=optimizer)
        >>> by_number["param_groups"][0]["params"]
        [0, 1]
        >>> dist.destroy_process_group()
        """
        parameters = _parameters_in_order(model, optim)
        names = {parameter: clean_tensor_name(name) for name, parameter in model.named_parameters()}
        by_number = dict(enumerate(names[parameter] for parameter in parameters))
        if optim_state_key_type is OptimStateKeyType.PARAM_NAME:
            keys = {**by_number, **{name: name for name in by_number.values()}}
        else:
            keys = {**{name: number for number, name in by_number.items()}, **{number: number for number in by_number}}
        return {
            "state": {keys[key]: value for key, value in optim_state_dict["state"].items()},
            "param_groups": [
                {**group, "params": [keys[key] for key in group["params"]]}
                for group in optim_state_dict["param_groups"]
            ],
        }


def _parameters_in_order(model, optim):
    if optim is None:
        return list(model.parameters())
    return [parameter for group in optim.param_groups for parameter in group["params"]]


def _converted(state, parameters, convert):
    """An optimizer's state, keyed by the parameters' numbers, with other values."""
    return {**state, "state": {key: convert(parameters[key], values) for key, values in state["state"].items()}}


def _parameters_of(ignored):
    """The parameters among modules and parameters."""
    found = []
    for each in ignored:
        found += list(each.parameters()) if isinstance(each, Module) else [each]
    return found


def _mesh_of(groups):
    """The mesh of a process group, or of a pair: that over which parameters are spread, and that of copies."""
    if isinstance(groups, tuple):
        parts, copies = groups
        own = [dist.get_process_group_ranks(parts)] * copies.size()
        dist.all_gather_object(own, own[0], group=copies)
        return DeviceMesh.from_group([copies, parts], "cpu", cygrad.tensor(own))
    return DeviceMesh.from_group(groups or _get_default_group(), "cpu")
