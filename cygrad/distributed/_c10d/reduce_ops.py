"""How collectives reduce: `ReduceOp.SUM` and the others."""

from enum import Enum

from cygrad.utils.warning import warn

__all__ = ["ReduceOp", "check_reduction", "reduce_op", "supports_complex"]


class RedOpType(Enum):
    """The kinds of reduction; `ReduceOp.SUM` and the others are of this class."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __int__(self):
        return self.value

    __index__ = __int__


class _Kinds(type):
    """Lets `isinstance(ReduceOp.SUM, ReduceOp)` be True."""

    def __instancecheck__(cls, instance):
        return super().__instancecheck__(instance) or isinstance(instance, RedOpType)


class ReduceOp(metaclass=_Kinds):
    """A reduction: `SUM`, `AVG` (the mean), `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR` or `BXOR` (bitwise).

    >>> from cygrad.distributed import ReduceOp
    >>> ReduceOp.SUM, isinstance(ReduceOp.SUM, ReduceOp), ReduceOp(ReduceOp.SUM) == ReduceOp.SUM
    (<RedOpType.SUM: 0>, True, True)
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op):
        if not isinstance(op, ReduceOp):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                f"  a ReduceOp; got {op!r}"
            )
        self.op = kind_of(op)

    def __eq__(self, other):
        return isinstance(other, ReduceOp) and self.op is kind_of(other)

    def __hash__(self):
        return hash(self.op)


def kind_of(op):
    """The `RedOpType` of a reduction."""
    return op if isinstance(op, RedOpType) else op.op


class _Deprecated(type):
    """Warns of each use of the old name `reduce_op`."""

    def __getattribute__(cls, name):
        kinds = RedOpType.__members__
        if name in kinds:
            warn(
                "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
                FutureWarning,
            )
            return kinds[name]
        return super().__getattribute__(name)


class reduce_op(metaclass=_Deprecated):
    """The old name of `ReduceOp`.

    >>> import warnings
    >>> import cygrad.distributed as dist
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     dist.reduce_op.SUM == dist.ReduceOp.SUM
    True
    """


_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)
_OF_COMPLEX = (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)


def supports_complex(reduceOp):
    """Whether a reduction exists for complex tensors.

    >>> import cygrad.distributed as dist
    >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
    (True, False)
    """
    return kind_of(reduceOp) in _OF_COMPLEX


def check_reduction(op, tensor, name):
    """Raise what PyTorch raises for a reduction that does not exist for this dtype."""
    if type(op) is not RedOpType and not isinstance(op, ReduceOp):
        raise TypeError(
            "(): incompatible function arguments. The following argument types are supported:\n"
            f"  {name}: op={op!r} is not a reduction\n"
            "  to fix it: pass one of `ReduceOp.SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR`, `BXOR`"
        )
    kind = kind_of(op)
    if kind is RedOpType.PREMUL_SUM:
        raise TypeError(f"{name}(): incompatible function arguments. `PREMUL_SUM` needs a factor, and is NCCL's only")
    dtype = tensor.dtype
    if dtype.is_complex and kind not in _OF_COMPLEX:
        raise ValueError(f"{name} does not support {kind} on complex tensors")
    is_integral = not (dtype.is_floating_point or dtype.is_complex)
    if kind in _BITWISE and not is_integral:
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype\n  got {dtype}")
    if kind is RedOpType.AVG and is_integral:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {_legacy_name(tensor)}\n"
            "  to fix it: use `ReduceOp.SUM` and divide"
        )


def _legacy_name(tensor):
    """ "Long" for int64 and the like, as old tensor types are called."""
    return tensor.type().rpartition(".")[2].removesuffix("Tensor")
