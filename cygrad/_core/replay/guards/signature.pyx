"""Which calls a plan is for: the arguments of one call, as a pattern for others.

Tensors that are not fixed may be others in each call (what they have in common is the program's affair); numbers, strings
and None have the same value and type; tuples, lists and dictionaries hold the same in the same order; other objects are
the same objects.
"""

cimport cython
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from cygrad._core.graph.tensor cimport Tensor, requires_grad
from cygrad._core.replay.guards.state cimport same
from cygrad._core.types.size import Size

cdef enum:
    GIVEN       # a tensor that may be another one in the next call
    AGAIN       # one that was given before in this call
    VALUE       # a number or an object
    TUPLE
    LIST
    DICT


@cython.final
cdef class _Pattern:
    pass


cdef class Signature:
    """The pattern of one call's arguments. `fixed(tensor)` tells of a tensor whether it must be the same in each call.

    `tensors` has the tensors that may be others, `objects` (text, object) of each other object, and each container.
    """
    def __init__(self, tuple args, dict kwargs, fixed):
        self.tensors, self.objects, self._fixed, self._numbers = [], [], fixed, {}
        self.args = self._tuple("argument ", args, 0)
        self.kwargs = self._dict("argument ", kwargs, 0)
        self._fixed = self._numbers = None
        self.n = len(self.tensors)

    def __len__(self):
        return self.n

    def release(self):
        """Keep the pattern alone."""
        self.tensors = self.objects = None

    def _of(self, str text, object value, int depth):
        cdef _Pattern pattern = _Pattern.__new__(_Pattern)
        kind = type(value)
        if isinstance(value, Tensor) and not self._fixed(value):
            number = self._numbers.setdefault(id(value), len(self.tensors))
            pattern.kind, pattern.number = AGAIN, number
            if number == len(self.tensors):
                pattern.kind = GIVEN
                self.tensors.append(value)
            return pattern
        if depth > 20:
            raise RecursionError
        if kind is tuple or kind is Size or isinstance(value, tuple) and _is_record(kind):
            return self._tuple(text, value, depth + 1)
        if kind is list:
            pattern.kind = LIST
            pattern.parts = tuple([self._of(f"{text}[{i}]", item, depth + 1) for i, item in enumerate(value)])
            return pattern
        if kind is dict:
            return self._dict(text, value, depth + 1)
        pattern.kind, pattern.value = VALUE, value
        self.objects.append((text, value))
        return pattern

    def _tuple(self, str text, value, int depth):
        cdef _Pattern pattern = _Pattern.__new__(_Pattern)
        pattern.kind, pattern.value = TUPLE, type(value)
        pattern.parts = tuple([self._of(f"{text}{i}" if depth == 0 else f"{text}[{i}]", item, depth)
                               for i, item in enumerate(value)])
        return pattern

    def _dict(self, str text, dict value, int depth):
        cdef _Pattern pattern = _Pattern.__new__(_Pattern)
        pattern.kind, pattern.keys = DICT, tuple(value)
        for key in value:
            if type(key) is not str and type(key) is not int:
                self.objects.append((text, key))
        pattern.parts = tuple([self._of(f"{text}{key}" if depth == 0 else f"{text}[{key!r}]", item, depth)
                               for key, item in value.items()])
        return pattern

    cpdef list match(self, tuple args, dict kwargs):
        """Return the tensors of a call that may be others, in the order of `tensors`, or None if the call is another."""
        cdef list found = []
        if _fits(self.args, <PyObject*>args, found) and _fits(self.kwargs, <PyObject*>kwargs, found):
            return found
        return None

    def difference(self, tuple args, dict kwargs):
        """Return which argument of a call is not as in the pattern, as a text, or None."""
        cdef _Pattern part
        if len(args) != len(self.args.parts):
            return f"the number of positional arguments (was {len(self.args.parts)}, is {len(args)})"
        for i, (part, value) in enumerate(zip(self.args.parts, args)):
            if not _fits(part, <PyObject*>value, []) and not _is_repeated(part):
                return _changed(f"argument {i}", part, value)
        if tuple(kwargs) != self.kwargs.keys:
            return "the names of keyword arguments"
        for key, part in zip(self.kwargs.keys, self.kwargs.parts):
            if not _fits(part, <PyObject*>kwargs[key], []) and not _is_repeated(part):
                return _changed(f"argument {key}", part, kwargs[key])
        return None


def kind_of(tuple args, dict kwargs):
    """Return what calls have in common that may have one plan: a hashable description of the arguments."""
    cdef dict numbers = {}       # of the tensors: which of them are the same
    return _described(args, numbers), _described(kwargs, numbers)


cdef object _described(value, dict numbers):
    kind = type(value)
    if isinstance(value, Tensor):
        array = (<Tensor>value).array
        number = numbers.setdefault(id(value), len(numbers))
        return kind, array.dtype, array.shape, array.strides, requires_grad(<Tensor>value), number
    if kind is int or kind is bool or kind is str or kind is bytes or value is None:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is list or isinstance(value, tuple):
        return kind, tuple([_described(item, numbers) for item in value])
    if kind is dict:
        return kind, tuple([(_described(key, numbers), _described(item, numbers)) for key, item in (<dict>value).items()])
    return kind, id(value)


cdef bint _is_record(type kind) except -1:
    return hasattr(kind, "_fields") and kind.__dictoffset__ == 0     # a named tuple


cdef bint _is_repeated(_Pattern part) noexcept:
    return part.kind == AGAIN


cdef str _changed(str text, _Pattern part, value):
    if part.kind == VALUE and type(value) in (int, float, bool, str, type(None)):
        return f"{text} (was {part.value!r}, is {value!r})"
    return text


cdef bint _fits(_Pattern pattern, PyObject* value, list found) except -1:
    cdef Py_ssize_t i = 0, place = 0
    cdef PyObject* key
    cdef PyObject* item
    if pattern.kind == GIVEN:
        if not isinstance(<object>value, Tensor):
            return False
        for i in range(PyList_GET_SIZE(found)):     # the same tensor twice is another pattern
            if <PyObject*>PyList_GET_ITEM(found, i) == value:
                return False
        found.append(<object>value)
        return True
    if pattern.kind == AGAIN:
        return pattern.number < len(found) and <PyObject*>PyList_GET_ITEM(found, pattern.number) == value
    if pattern.kind == VALUE:
        return same(value, <PyObject*>pattern.value)
    if pattern.kind == TUPLE:
        if type(<object>value) is not pattern.value or PyTuple_GET_SIZE(<object>value) != PyTuple_GET_SIZE(pattern.parts):
            return False
        for i in range(PyTuple_GET_SIZE(pattern.parts)):
            if not _fits(<_Pattern>PyTuple_GET_ITEM(pattern.parts, i), <PyObject*>PyTuple_GET_ITEM(<object>value, i), found):
                return False
        return True
    if pattern.kind == LIST:
        if type(<object>value) is not list or PyList_GET_SIZE(<object>value) != PyTuple_GET_SIZE(pattern.parts):
            return False
        for i in range(PyTuple_GET_SIZE(pattern.parts)):
            if not _fits(<_Pattern>PyTuple_GET_ITEM(pattern.parts, i), <PyObject*>PyList_GET_ITEM(<object>value, i), found):
                return False
        return True
    if type(<object>value) is not dict or PyDict_Size(<object>value) != PyTuple_GET_SIZE(pattern.parts):
        return False
    while PyDict_Next(<object>value, &place, &key, &item):
        if not same(key, <PyObject*>PyTuple_GET_ITEM(pattern.keys, i)):
            return False
        if not _fits(<_Pattern>PyTuple_GET_ITEM(pattern.parts, i), item, found):
            return False
        i += 1
    return True
