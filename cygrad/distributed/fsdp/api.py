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
    """What is spread over processes: parameters, gradients and the optimizer's state, all but the first, or nothing."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the parameters of the next module are fetched in backward: before or after the gradients of this one."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """What `state_dict()` returns: whole tensors, or this process's parts."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """Whether an optimizer's state is keyed by parameters' names or by their numbers."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """The dtypes in which parameters, gradients and buffers take part in forward and backward."""

    param_dtype: cygrad.dtype | None = None
    reduce_dtype: cygrad.dtype | None = None
    buffer_dtype: cygrad.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple[type, ...] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters wait in the CPU's memory until they are used."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """The base of the options of `state_dict()`."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """The options of a state of whole tensors."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """The options of a state of this process's flat parts."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """The options of a state of this process's parts."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """The base of the options of an optimizer's state."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """The options of an optimizer's state of whole tensors."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """The options of an optimizer's state of this process's flat parts."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """The options of an optimizer's state of this process's parts."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict()` returns, with its options."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
