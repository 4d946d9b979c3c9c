"""The functions of `torch.special`, under the names of PyTorch's compiled part."""

import cygrad
from cygrad._C._function_tables import Functions

__getattr__, __dir__ = Functions.of_module(cygrad.special, "special_")
