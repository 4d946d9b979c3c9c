"""The results of functions that are made of others: written into `out`, of which no gradient is recorded."""

from functools import cache

from cygrad._core import messages
from cygrad._core.access import array_of
from cygrad._core.dual import is_recorded
from cygrad._core.opdef import variant
from cygrad._core.record import write_into
from cygrad._core.tensor import Tensor
from cygrad._ops.creation_checks import out_requires_grad
from cygrad._ops.diagonals import TRIL


@cache
def unrecorded(name):
    """A row without a derivative, for results that have none, and for `out=` of functions made of others."""
    return variant(TRIL, name=name)


def given(name, result, out, *inputs):
    """The result of a function made of others, written into `out` if there is one."""
    if out is None:
        return result
    if not isinstance(out, Tensor):
        raise messages.wrong_keyword(name, "out", "Tensor", out)
    if is_recorded(result):
        raise out_requires_grad(name)
    return write_into(unrecorded(name), out, array_of(result), inputs or (result,), None)
