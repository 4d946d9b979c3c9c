"""What `ao.quantization.qconfig` has, by its older name."""

from cygrad.ao.quantization.qconfig import *  # noqa: F403
from cygrad.ao.quantization.qconfig import __all__ as __all__
