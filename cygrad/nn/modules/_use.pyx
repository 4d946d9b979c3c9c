"""Hot paths of every module: calls, and member lookup."""

from cygrad.nn.modules._failures import TOLD, tell_module
from cygrad.utils.hooks import HookDict

# Global module hooks: {number: (kind, hook)}. A single dictionary, so that a call tests only one.
global_hooks = HookDict()


cdef class Called:
    """Base of objects that run their hooks and `forward` when called.

    It has no fields, not even a vtable of C methods, so that instances are copied and pickled like those of any class.
    """

    def __call__(self, *args, **kwargs):
        compiled = (<dict>self.__dict__).get("_compiled_call_impl")     # by `Module.compile`
        if compiled is not None:
            return compiled(*args, **kwargs)
        return _call(self, args, kwargs)


cdef object _call(module, tuple args, dict kwargs):
    try:
        if global_hooks or _has_hooks(module, module.__dict__):
            return module._call_with_hooks(args, kwargs)
        return module.forward(*args, **kwargs)
    except TOLD as error:
        tell_module(error, module)
        raise


def call_as_written(module, *args, **kwargs):
    """Call a module whether or not it is compiled: this is what `Module.compile` compiles."""
    return _call(module, args, kwargs)


cdef bint _has_hooks(module, dict state) except -1:
    # Read the instance dictionary: attribute access is slower, because a class with `__getattr__` has no fast path.
    try:
        return bool(state["_forward_hooks"] or state["_forward_pre_hooks"] or state["_backward_hooks"]
                    or state["_backward_pre_hooks"])
    except KeyError:
        return bool(module._forward_hooks)  # raises an error that names the missing attribute


def find_member(self, str name not None):
    """Return the parameter, submodule or buffer of that name; raise AttributeError if there is none."""
    cdef dict state = self.__dict__
    for kind in ("_parameters", "_modules", "_buffers"):
        members = state.get(kind)
        if members is not None and name in members:
            return members[name]
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
