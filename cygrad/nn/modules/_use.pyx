"""Hot paths of every module: calls, and member lookup.

Note [Calls of modules]: a compiled base class would make calls as fast, but then Python would refuse to give a module a
class in which another one comes first, as libraries do (`module.__class__ = type("X", (Mixin, type(module)), {})`): the
layouts of two classes are compared by what lies below the first one with a dictionary. So the class is an ordinary one,
and its `__call__` is what Python makes for the slot `tp_call` of a class in C, a slot wrapper. Subclasses that do not
define `__call__` inherit the C function itself.
"""

from cpython.ref cimport PyObject

from cygrad.nn.modules._module.failures import TOLD, tell_module
from cygrad.utils.hooks import HookDict

cdef extern from "Python.h":
    ctypedef struct wrapperbase "struct wrapperbase":
        pass

    ctypedef struct PyWrapperDescrObject:
        wrapperbase* d_base

    object PyDescr_NewWrapper(type cls, wrapperbase* slot, void* function)
    object PyObject_Call(object function, object args, PyObject* kwargs)

# Global module hooks: {number: (kind, hook)}. A single dictionary, so that a call tests only one.
global_hooks = HookDict()


def with_calls(type cls not None):
    """Give a class of modules its `__call__`, which runs hooks and `forward`. Note [Calls of modules] tells how."""
    cdef object of_types = type.__dict__["__call__"]        # a wrapper of the same slot
    cls.__call__ = PyDescr_NewWrapper(cls, (<PyWrapperDescrObject*>of_types).d_base, <void*>call_module)
    return cls


cdef object call_module(object module, object args, PyObject* kwargs):
    compiled = (<dict>module.__dict__).get("_compiled_call_impl")       # by `Module.compile`
    if compiled is not None:
        return PyObject_Call(compiled, args, kwargs)
    return call_uncompiled(module, args, kwargs)


cdef object call_uncompiled(object module, object args, PyObject* kwargs):
    try:
        if global_hooks or _has_hooks(module, module.__dict__):
            return module._call_with_hooks(args, {} if kwargs is NULL else dict(<object>kwargs))
        return PyObject_Call(module.forward, args, kwargs)
    except TOLD as error:
        tell_module(error, module)
        raise


def call_as_written(module, *args, **kwargs):
    """Call a module whether or not it is compiled: this is what `Module.compile` compiles."""
    return call_uncompiled(module, args, <PyObject*>kwargs)


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
