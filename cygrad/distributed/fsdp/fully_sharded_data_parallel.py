"""`FullyShardedDataParallel`, FSDP's wrapper, for a group of one process."""

from contextlib import contextmanager

import cygrad
from cygrad.distributed.distributed_c10d import _get_default_group
from cygrad.distributed.fsdp import _precision, api
from cygrad.distributed.fsdp.api import *
from cygrad.distributed.fsdp.wrap import wrap_chosen
from cygrad.nn.modules import Module
from cygrad.nn.parameter import Parameter
from cygrad.nn.utils import clip_grad_norm_

__all__ = ["FlatParameter", "FullyShardedDataParallel", *api.__all__]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."


class FlatParameter(Parameter):
    """The class of PyTorch's flat parameters. Here parameters stay as they are, so that none is made."""


def clean_tensor_name(tensor_name):
    """A parameter's name without the parts that wrappers add to it."""
    from cygrad.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX  # imports this package

    return tensor_name.replace(FSDP_PREFIX, "").replace(_CHECKPOINT_PREFIX, "")


class FullyShardedDataParallel(Module):
    """Wraps a module whose parameters are spread over the processes of a group. One process has them whole.

    `auto_wrap_policy` wraps modules within it too. `mixed_precision` computes in other dtypes. Parameters stay as they
    are, as with `use_orig_params=True`, and `state_dict()` has the names of the wrapped module.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = FullyShardedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model(cygrad.ones(3, 2)).shape, list(model.state_dict())
    (torch.Size([3, 1]), ['weight', 'bias'])
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
        group = device_mesh.get_group() if device_mesh is not None else process_group
        self.process_group = (group[0] if isinstance(group, tuple) else group) or _get_default_group()
        ignored = {*(ignored_modules or ()), *(ignored_states or ())}
        if auto_wrap_policy is not None:
            policy = getattr(auto_wrap_policy, "policy", auto_wrap_policy)
            wrap_chosen(module, policy, self._wrapper_of_children(mixed_precision), ignored)
        if param_init_fn is not None:
            for inner in module.modules():
                if any(parameter.is_meta for parameter in inner.parameters(recurse=False)):
                    param_init_fn(inner)
        if device_id is not None:
            module.to(device_id if isinstance(device_id, cygrad.device) else f"cuda:{device_id}")
        self._fsdp_wrapped_module = module
        self.sharding_strategy = ShardingStrategy.NO_SHARD  # of one process, as in PyTorch
        self.cpu_offload = cpu_offload or CPUOffload()
        self.mixed_precision = mixed_precision or MixedPrecision()
        self.backward_prefetch, self._use_orig_params = backward_prefetch, use_orig_params
        self._is_summoned = False
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._register_state_dict_hook(self._shorten_names)
        self.register_load_state_dict_pre_hook(self._lengthen_names)

    def _wrapper_of_children(self, mixed_precision):
        def wrapper(module, **options):
            return type(self)(module, self.process_group, **{"mixed_precision": mixed_precision, **options})

        return wrapper

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
        """Call the wrapped module, in the dtypes of `mixed_precision`."""
        precision = self.mixed_precision
        if precision.cast_forward_inputs or precision.cast_root_forward_inputs:
            args = _precision.cast_floating(args, precision.param_dtype)
            kwargs = _precision.cast_floating(kwargs, precision.param_dtype)
        with _precision.parameters_in_dtype(
            self._fsdp_wrapped_module,
            precision.param_dtype,
            precision.buffer_dtype,
            tuple(precision._module_classes_to_ignore),
        ):
            return self._fsdp_wrapped_module(*args, **kwargs)

    # --- Names -----------------------------------------------------------------------------------

    @staticmethod
    def _shorten_names(module, state_dict, prefix, *_):
        for name in list(state_dict):
            if name.startswith(prefix + FSDP_PREFIX):
                state_dict[prefix + name[len(prefix + FSDP_PREFIX) :]] = state_dict.pop(name)

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
        """Within this context the parameters of `module` are whole, and have the names of the wrapped modules."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        for each in found:
            each._is_summoned = True
        try:
            yield
        finally:
            for each in found:
                each._is_summoned = False

    def apply(self, fn):
        """Call `fn` with each module within, and with this one."""
        return super().apply(fn)

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Scale all gradients down until their norm is at most `max_norm`; returns the norm they had."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @contextmanager
    def no_sync(self):
        """Within this context, gradients of this process accumulate and are not reduced."""
        yield

    def register_comm_hook(self, state, hook):
        """Take a hook that reduces gradients over processes, of which there is one: it is not called."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")

    # --- State -----------------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Set what `state_dict()` of the FSDP modules in `module` returns; returns what it was."""
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
        """What `state_dict()` of the FSDP modules in `module` returns, with its options."""
        for each in FullyShardedDataParallel.fsdp_modules(module):
            return each._settings
        return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())

    @staticmethod
    @contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Within this context `state_dict()` returns what `set_state_dict_type` says."""
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
        """The state of an optimizer of `model`, keyed by the parameters' names."""
        state = optim.state_dict() if optim_state_dict is None else optim_state_dict
        return FullyShardedDataParallel.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_NAME, model, optim=optim)

    full_optim_state_dict = optim_state_dict
    sharded_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
    ):
        """A state keyed by the parameters' names as `optim.load_state_dict` takes it."""
        state = FullyShardedDataParallel.rekey_optim_state_dict(
            optim_state_dict, OptimStateKeyType.PARAM_ID, model, optim=optim
        )
        if load_directly:
            optim.load_state_dict(state)
        return state

    @staticmethod
    def rekey_optim_state_dict(optim_state_dict, optim_state_key_type, model, optim_input=None, optim=None):
        """A state keyed by the parameters' names or by their numbers."""
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
