"""The functions of `torch.special`, under the names of PyTorch's compiled part."""

from typing import Any

import cygrad
from cygrad._C._function_tables import Functions

_functions = Functions(cygrad.special, "special_")


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)


def __dir__() -> list[str]:
    return dir(_functions)
