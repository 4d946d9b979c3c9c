"""What `torch.jit` has of markers and types, by the older name that programs import it from."""

from cygrad.jit.annotations import *  # noqa: F403
from cygrad.jit.annotations import _copy_to_script_wrapper as _copy_to_script_wrapper
from cygrad.jit.annotations import _drop as _drop
from cygrad.jit.annotations import _is_exception as _is_exception
from cygrad.jit.annotations import _overload as _overload
from cygrad.jit.annotations import _overload_method as _overload_method
from cygrad.jit.annotations import _qualified_name as _qualified_name
