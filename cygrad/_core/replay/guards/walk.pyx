"""Follows objects of Python and what they hold, and has a guard check them.

An optimizer may keep thousands of dictionaries and tensors, so these are looked at here; what objects of other kinds hold is
the affair of a subclass.
"""

from cpython.dict cimport PyDict_Contains
from cpython.set cimport PySet_Contains

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.guards.state cimport Guard

from cygrad._core.replay.guards.state import attributes_of

# Objects of these types hold nothing else, and are compared by value.
LEAVES = frozenset((int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), range, slice))
cdef frozenset _leaves = LEAVES


cdef class Walk:
    """All that has been reached: `guard` checks it, `seen` and `tensors` have it by address. `reached_twice` has the
    addresses of what was reached in two ways."""

    cdef readonly Guard guard
    cdef readonly dict seen, tensors
    cdef readonly set reached_twice
    cdef list open              # (text, object) of what is still to be visited

    def __init__(self, Guard guard not None):
        self.guard, self.seen, self.tensors, self.reached_twice, self.open = guard, {}, {}, set(), []

    cpdef int follow(self, str text, value) except -1:
        """Enter an object, which stands there in the program."""
        if PySet_Contains(_leaves, type(value)):
            return 0
        address = id(value)
        if PyDict_Contains(self.seen, address):
            self.reached_twice.add(address)
            return 0
        self.seen[address] = value
        if isinstance(value, Tensor):
            self.tensors[address] = value
            return self.follow_tensor(text, <Tensor>value)
        self.open.append((text, value))
        return 0

    cdef int follow_tensor(self, str text, Tensor value) except -1:
        if not self.guard.tensor(text, value):
            self.refuse(f"the tensor {text} is not in memory, or is followed in forward mode")
        if type(value) is not Tensor:
            self.follow("", type(value))
        attributes = attributes_of(value)
        if attributes:
            self.open.append((text, value))
        elif attributes is not None:
            self.guard.whole(f"{text}.__dict__", attributes)
        return 0

    cpdef int follow_entries(self, str text, entries) except -1:
        """Enter the keys and values of a dictionary."""
        for key, item in dict.items(entries):
            is_leaf = type(key) in _leaves
            if not is_leaf:
                self.follow(f"a key of {text}", key)
            if type(item) not in _leaves:       # texts take time
                self.follow(f"{text}[{key!r}]" if is_leaf else f"an item of {text}", item)
        return 0

    cpdef int follow_items(self, str text, items) except -1:
        """Enter the items of a list, tuple or set."""
        for i, item in enumerate(items):
            if type(item) not in _leaves:
                self.follow(f"{text}[{i}]", item)
        return 0

    def drain(self, Py_ssize_t most):
        """Visit all that has been entered, and what it leads to; return False if there are more objects than that."""
        cdef Py_ssize_t i = 0
        cdef list open = self.open
        while i < len(open):
            if len(self.seen) > most:
                open.clear()
                return False
            text, value = open[i]
            open[i] = None
            i += 1
            if type(value) is dict:
                self.guard.whole(text, value)
                self.follow_entries(text, value)
            elif type(value) is list:
                self.guard.items(text, value)
                self.follow_items(text, value)
            elif type(value) is tuple:
                self.follow_items(text, value)
            else:
                self.visit(text, value)
        open.clear()
        return True
