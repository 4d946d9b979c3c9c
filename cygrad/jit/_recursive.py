"""How PyTorch makes compiled modules of ordinary ones: here each is the module itself, and nothing is compiled."""

from cygrad.jit.annotations import FunctionModifiers, get_torchscript_modifier


def infer_methods_to_compile(nn_module):
    """Return the methods that a module marks for export, and `forward`, without those it marks as ignored."""
    found = []
    for name in dict.fromkeys(("forward", *dir(type(nn_module)))):
        method = getattr(type(nn_module), name, None)
        modifier = get_torchscript_modifier(method)
        is_forward = name == "forward" and modifier not in (FunctionModifiers.IGNORE, FunctionModifiers.UNUSED)
        if is_forward or modifier is FunctionModifiers.EXPORT:
            found.append(getattr(nn_module, name))
    return found


def create_script_module(nn_module, stubs_fn=None, share_types=True, is_tracing=False):
    """Return the module itself."""
    return nn_module


def wrap_cpp_module(cpp_module):
    """Return the module itself."""
    return cpp_module


def try_compile_fn(fn, loc=None):
    """Return the function itself."""
    return fn


class ConcreteTypeStore:
    """The types of the modules that have been compiled: there are none."""


concrete_type_store = ConcreteTypeStore()
