"""Result types with named items, such as those of `max` and `min` along a dimension."""

from cygrad._core.types.return_types import *
from cygrad._core.types.return_types import __all__ as __all__
