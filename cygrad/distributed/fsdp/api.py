"""The options of FSDP."""

from dataclasses import dataclass
from enum import Enum, auto

import cygrad
from cygrad.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """What is spread over processes: parameters, gradients and the optimizer's state, all but the first, or nothing.

    >>> from cygrad.distributed.fsdp import ShardingStrategy
    >>> [strategy.name for strategy in ShardingStrategy]
    ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD', 'HYBRID_SHARD', '_HYBRID_SHARD_ZERO2']
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the parameters of the next module are fetched in backward: before or after the gradients of this one.

    >>> from cygrad.distributed.fsdp import BackwardPrefetch
    >>> [when.name for when in BackwardPrefetch]
    ['BACKWARD_PRE', 'BACKWARD_POST']
    """

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """What `state_dict()` returns: whole tensors, or this process's parts.

    >>> from cygrad.distributed.fsdp import StateDictType
    >>> [kind.name for kind in StateDictType]
    ['FULL_STATE_DICT', 'LOCAL_STATE_DICT', 'SHARDED_STATE_DICT']
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """Whether an optimizer's state is keyed by parameters' names or by their numbers.

    >>> from cygrad.distributed.fsdp import OptimStateKeyType
    >>> [kind.name for kind in OptimStateKeyType]
    ['PARAM_NAME', 'PARAM_ID']
    """

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """The dtypes in which parameters, gradients and buffers take part in forward and backward.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> half = MixedPrecision(param_dtype=cygrad.float16, reduce_dtype=cygrad.float32)
    >>> model = FullyShardedDataParallel(cygrad.nn.Linear(2, 1), mixed_precision=half)
    >>> model(cygrad.ones(3, 2)).dtype
    torch.float16
    >>> dist.destroy_process_group()
    """

    param_dtype: cygrad.dtype | None = None
    reduce_dtype: cygrad.dtype | None = None
    buffer_dtype: cygrad.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple[type, ...] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters wait in the CPU's memory until they are used.

    >>> from cygrad.distributed.fsdp import CPUOffload
    >>> CPUOffload(offload_params=True)
    CPUOffload(offload_params=True)
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """The base of the options of `state_dict()`.

    >>> from cygrad.distributed.fsdp import FullStateDictConfig, StateDictConfig
    >>> isinstance(FullStateDictConfig(rank0_only=True), StateDictConfig)
    True
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """The options of a state of whole tensors.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = FSDP(cygrad.nn.Linear(2, 1))
    >>> with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True)):
    ...     list(model.state_dict())
    ['weight', 'bias']
    >>> dist.destroy_process_group()
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """The options of a state of this process's flat parts.

    >>> from cygrad.distributed.fsdp import LocalStateDictConfig
    >>> LocalStateDictConfig().offload_to_cpu
    False
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """The options of a state of this process's parts.

    >>> from cygrad.distributed.fsdp import ShardedStateDictConfig
    >>> ShardedStateDictConfig(offload_to_cpu=True).offload_to_cpu
    True
    """

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """The base of the options of an optimizer's state.

    >>> from cygrad.distributed.fsdp import FullOptimStateDictConfig, OptimStateDictConfig
    >>> isinstance(FullOptimStateDictConfig(), OptimStateDictConfig)
    True
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """The options of an optimizer's state of whole tensors.

    >>> from cygrad.distributed.fsdp import FullOptimStateDictConfig
    >>> FullOptimStateDictConfig(rank0_only=True).offload_to_cpu
    True
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """The options of an optimizer's state of this process's flat parts.

    >>> from cygrad.distributed.fsdp import LocalOptimStateDictConfig
    >>> LocalOptimStateDictConfig().offload_to_cpu
    False
    """

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """The options of an optimizer's state of this process's parts.

    >>> from cygrad.distributed.fsdp import ShardedOptimStateDictConfig
    >>> ShardedOptimStateDictConfig().offload_to_cpu
    True
    """

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict()` returns, with its options.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> FSDP.get_state_dict_type(FSDP(cygrad.nn.Linear(2, 1))).state_dict_type.name
    'FULL_STATE_DICT'
    >>> dist.destroy_process_group()
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
