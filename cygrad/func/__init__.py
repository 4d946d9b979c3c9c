"""Function transforms: gradients, Jacobian products, Jacobians, Hessians, and vectorized maps over a batch.

All transforms nest in any order. Inputs and outputs may be nested tuples, lists and dictionaries of tensors.
"""

from cygrad.func._batching import vmap
from cygrad.func._functionalizing import functionalize
from cygrad.func._jacobians import hessian, jacfwd, jacrev
from cygrad.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from cygrad.func.rearranging import rearrange
from cygrad.func.transforms import grad, grad_and_value, jvp, linearize, vjp

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
