"""The functions of `masked` by the name of the module in which PyTorch has them."""

from cygrad.masked._normalizations import *  # noqa: F403
from cygrad.masked._reductions import *  # noqa: F403
