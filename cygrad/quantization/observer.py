"""What `ao.quantization.observer` has, by its older name."""

from cygrad.ao.quantization.observer import *  # noqa: F403
from cygrad.ao.quantization.observer import __all__ as __all__
