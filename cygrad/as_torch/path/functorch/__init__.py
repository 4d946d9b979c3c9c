"""The package `functorch`, which PyTorch installs beside `torch`: an older place of the transforms of functions."""

import torch
from torch._functorch.deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from torch._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from torch.fx.experimental.proxy_tensor import make_fx

__version__ = torch.__version__
__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad"]
__all__ += ["grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers"]
__all__ += ["make_fx", "vjp", "vmap"]
