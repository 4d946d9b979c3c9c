"""What each use of a module goes through: its call, and the look-up of its members."""

from cygrad.nn.modules._failures import TOLD, tell_module
from cygrad.utils.hooks import HookDict

# Hooks of every module: {number: (kind, hook)}. One dictionary, so that a call tests one.
global_hooks = HookDict()


cdef class Called:
    """Base of what runs its hooks and `forward` when it is called.

    It has no fields, not even a table of C methods, so that instances are copied and pickled as those of any class.
    """

    def __call__(self, *args, **kwargs):
        try:
            if global_hooks or _has_hooks(self, self.__dict__):
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        except TOLD as error:
            tell_module(error, self)
            raise


cdef bint _has_hooks(module, dict state) except -1:
    # Not by attributes, of which each would take longer: a class with `__getattr__` has no fast way to them.
    try:
        return bool(state["_forward_hooks"] or state["_forward_pre_hooks"] or state["_backward_hooks"]
                    or state["_backward_pre_hooks"])
    except KeyError:
        return bool(module._forward_hooks)      # an error that names what is missing


def find_member(self, str name not None):
    """A parameter, submodule or buffer of that name; raises AttributeError if there is none."""
    cdef dict state = self.__dict__
    for kind in ("_parameters", "_modules", "_buffers"):
        members = state.get(kind)
        if members is not None and name in members:
            return members[name]
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
