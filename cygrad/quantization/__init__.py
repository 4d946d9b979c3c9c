"""What `ao.quantization` has, by its older name."""

from cygrad.ao.quantization import *  # noqa: F403
from cygrad.ao.quantization import __all__ as __all__
