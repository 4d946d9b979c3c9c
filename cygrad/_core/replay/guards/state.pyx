"""Guards of Python state: whether everything that a step reads of Python is as it was.

Note [Guards]
-------------
A guard is a list of checks, each on one object (its owner): the entries of a dictionary, the content of a cell, the
version of a class. Values are the same if they are one object, or equal numbers, strings or tuples of these, of the same
type; no method of the user's runs. What a container holds is checked by the container's own checks, so that one level
is compared at a time. The guard owns all it refers to: an address stands for one object.

A dictionary has a version, which CPython 3.11 and 3.12 change whenever an entry changes. As long as it is the one that
was last found to be right, entries are not looked at. Classes have such a version in every CPython.
"""

cimport cython
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject, PyObject_RichCompareBool, Py_EQ
from cpython.set cimport PySet_GET_SIZE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.string cimport memcmp
from numpy cimport PyArray_DATA, PyArray_DESCR, PyArray_DIMS, PyArray_NDIM, PyArray_STRIDES, ndarray, npy_intp

from types import FunctionType, MethodType

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

from cygrad._kernels.device.cupy_library import gpu_class

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030D0000
    static inline unsigned long long cygrad_dict_version(PyObject *dict) {
    #if defined(__GNUC__)
    #pragma GCC diagnostic push
    #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    #endif
        return ((PyDictObject *)dict)->ma_version_tag;
    #if defined(__GNUC__)
    #pragma GCC diagnostic pop
    #endif
    }
    #else
    static inline unsigned long long cygrad_dict_version(PyObject *dict) { return 0; }
    #endif
    /* Whether a class was made by Python's `class`, not in C: then all that its objects hold is in dictionary and slots. */
    static inline int cygrad_is_pythons(PyObject *type, PyObject *other) {
        return ((PyTypeObject *)type)->tp_dealloc == ((PyTypeObject *)other)->tp_dealloc;
    }
    static inline unsigned int cygrad_type_version(PyObject *type) { return ((PyTypeObject *)type)->tp_version_tag; }

    /* The same bits: a NaN is the same as itself, 0.0 and -0.0 are not. */
    static inline int cygrad_same_floats(PyObject *a, PyObject *b) {
        double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    static inline int cygrad_same_complex(PyObject *a, PyObject *b) {
        Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    """
    unsigned long long cygrad_dict_version(PyObject* dict) noexcept
    unsigned int cygrad_type_version(PyObject* type) noexcept
    bint cygrad_is_pythons(PyObject* type, PyObject* other) noexcept
    bint cygrad_same_floats(PyObject*, PyObject*) noexcept
    bint cygrad_same_complex(PyObject*, PyObject*) noexcept

cdef extern from "Python.h":
    PyObject* Py_TYPE "(PyObject *)Py_TYPE"(PyObject*) noexcept     # C has another type for classes
    PyObject* PyDict_GetItemWithError(PyObject* dict, PyObject* key) except? NULL
    PyObject* PyCell_GET(PyObject*) noexcept
    PyObject* PyFunction_GET_CODE(PyObject*) noexcept
    PyObject* PyFunction_GET_DEFAULTS(PyObject*) noexcept
    PyObject* PyFunction_GET_KW_DEFAULTS(PyObject*) noexcept
    PyObject* PyFunction_GET_CLOSURE(PyObject*) noexcept
    PyObject* PyMethod_GET_SELF(PyObject*) noexcept
    PyObject* PyMethod_GET_FUNCTION(PyObject*) noexcept
    object PyObject_GenericGetDict(object, void*)

cdef PyObject* _int = <PyObject*>int
cdef PyObject* _float = <PyObject*>float
cdef PyObject* _complex = <PyObject*>complex
cdef PyObject* _str = <PyObject*>str
cdef PyObject* _bytes = <PyObject*>bytes
cdef PyObject* _tuple = <PyObject*>tuple
cdef PyObject* _method = <PyObject*>MethodType

cdef class _Absent:
    def __repr__(self):
        return "<absent>"

class _OfPython:
    pass

cdef object _of_python = _OfPython


def is_made_in_python(kind):
    """Whether a class was made by a `class` statement or `type`, not in C."""
    assert isinstance(kind, type)
    return cygrad_is_pythons(<PyObject*>kind, <PyObject*>_of_python)


ABSENT = _Absent()      # the expected value of a name that is not there
ANY = _Absent()         # of one that may have any value
cdef PyObject* _absent = <PyObject*>ABSENT
cdef PyObject* _any = <PyObject*>ANY


cdef bint same(PyObject* found, PyObject* expected) except -1:
    cdef PyObject* type
    cdef Py_ssize_t i
    if found == expected:
        return True
    if found == NULL or expected == NULL:
        return False
    type = Py_TYPE(found)
    if type != Py_TYPE(expected):
        return False
    if type == _int or type == _str or type == _bytes:
        return PyObject_RichCompareBool(<object>found, <object>expected, Py_EQ)
    if type == _float:
        return cygrad_same_floats(found, expected)
    if type == _complex:
        return cygrad_same_complex(found, expected)
    if type == _tuple:
        if PyTuple_GET_SIZE(<object>found) != PyTuple_GET_SIZE(<object>expected):
            return False
        for i in range(PyTuple_GET_SIZE(<object>found)):
            if not same(<PyObject*>PyTuple_GET_ITEM(<object>found, i), <PyObject*>PyTuple_GET_ITEM(<object>expected, i)):
                return False
        return True
    if type == _method:
        return (PyMethod_GET_SELF(found) == PyMethod_GET_SELF(expected)
                and PyMethod_GET_FUNCTION(found) == PyMethod_GET_FUNCTION(expected))
    return False


def attributes_of(Tensor t not None):
    """The dictionary of what a user has set on a tensor, or None."""
    return t.attributes if type(t) is Tensor else getattr(t, "__dict__", None)


def are_same(found, expected):
    """Whether two values are one object, or equal numbers, strings or tuples of these, of the same type."""
    return same(<PyObject*>found, <PyObject*>expected)


cdef enum:
    WHOLE       # a dictionary: all its entries, in order
    NAMED       # a dictionary: some of its entries
    ITEMS       # a list
    CONTENT     # a cell
    CLASS       # the version of a class
    FUNCTION    # code, defaults and closure
    OBJECT      # class and dictionary
    TENSOR      # all but its values
    EMPTY       # a set that has no items
    ASKED       # a function of ours, which tells

ctypedef struct check_t:
    int kind
    Py_ssize_t count
    PyObject* owner
    PyObject* keys          # a tuple, or NULL
    PyObject* values        # a tuple
    unsigned long long version


@cython.final
cdef class _Mark:
    """What a tensor is apart from its values. Attributes that a user has set have checks of their own; this one sees only
    whether there are none."""
    cdef object array, type, view, descr
    cdef bint is_bare
    cdef Node node
    cdef unsigned int flags
    cdef void* data
    cdef bytes dims
    cdef int ndim

    def __cinit__(self, Tensor t):
        self.array, self.type, self.view, self.node, self.flags = t.array, type(t), t.view, t.grad_fn_, t.flags
        self.is_bare = not t.attributes
        if not isinstance(t.array, ndarray):        # on a GPU: the very array is enough
            self.ndim = -1
            return
        self.data = PyArray_DATA(<ndarray>t.array)
        self.descr = t.array.dtype
        self.ndim = PyArray_NDIM(<ndarray>t.array)
        self.dims = _dims_of(<ndarray>t.array)

    cdef bint fits(self, Tensor t) except -1:
        if (t.array is not self.array or type(t) is not self.type or t.flags != self.flags or t.view is not self.view
                or t.grad_fn_ is not self.node or t.tangents is not None or self.is_bare and t.attributes):
            return False
        if self.ndim < 0:
            return True
        cdef ndarray array = <ndarray>t.array
        cdef size_t size = self.ndim * sizeof(npy_intp)
        return (PyArray_DATA(array) == self.data and PyArray_NDIM(array) == self.ndim
                and <PyObject*>PyArray_DESCR(array) == <PyObject*>self.descr
                and (not size or memcmp(PyArray_DIMS(array), <const char*>self.dims, size) == 0
                     and memcmp(PyArray_STRIDES(array), <const char*>self.dims + size, size) == 0))


cdef bytes _dims_of(ndarray array):
    cdef size_t size = PyArray_NDIM(array) * sizeof(npy_intp)
    if size == 0:
        return b""
    return (<const char*>PyArray_DIMS(array))[:size] + (<const char*>PyArray_STRIDES(array))[:size]


@cython.no_gc_clear     # the checks point into what is kept
cdef class Guard:
    """A list of checks, see Note [Guards]. Each has a text: where its owner stands in the program.

    >>> from cygrad._core.replay.guards.state import Guard
    >>> settings, guard = {"scale": 2.0}, Guard()
    >>> guard.whole("settings", settings)
    >>> guard.holds()
    True
    >>> settings["scale"] = 3.0
    >>> guard.holds(), guard.why()
    (False, 'settings["scale"] was 2.0 and is 3.0')
    """

    def __cinit__(self):
        self.kept, self.texts, self.failed = [], [], -1

    def __dealloc__(self):
        PyMem_Free(self.checks)

    def __len__(self):
        return self.n

    cdef int add(self, int kind, str text, object owner, tuple keys, tuple values) except -1:
        cdef check_t* grown
        cdef check_t* check
        if self.n == self.room:
            grown = <check_t*>PyMem_Realloc(self.checks, (2 * self.room + 16) * sizeof(check_t))
            if grown == NULL:
                raise MemoryError
            self.checks, self.room = grown, 2 * self.room + 16
        self.kept.append((owner, keys, values))
        self.texts.append(text)
        check = <check_t*>self.checks + self.n
        check.kind, check.count, check.owner = kind, len(values), <PyObject*>owner
        check.keys, check.values = NULL if keys is None else <PyObject*>keys, <PyObject*>values
        check.version = 0
        self.n += 1
        return 0

    def whole(self, str text, owner):
        """All entries of a dictionary, in order."""
        self.add(WHOLE, text, owner, tuple(dict.keys(owner)), tuple(dict.values(owner)))    # as they are stored

    def release(self, owner, key):
        """Let one entry of a dictionary have any value from now on."""
        cdef check_t* checks = <check_t*>self.checks
        cdef Py_ssize_t i
        cdef tuple keys
        for i in range(self.n):
            if checks[i].owner == <PyObject*>owner and checks[i].kind == WHOLE:
                keys = <tuple><object>checks[i].keys
                values = tuple([ANY if each == key else value for each, value in zip(keys, <tuple><object>checks[i].values)])
                self.kept.append(values)
                checks[i].values, checks[i].version = <PyObject*>values, 0

    def leave_out(self, list tensors not None):
        """Check these tensors no more: something else does."""
        cdef check_t* checks = <check_t*>self.checks
        cdef Py_ssize_t i, n = 0
        cdef list texts = []
        cdef set addresses = {id(t) for t in tensors}
        for i in range(self.n):
            if checks[i].kind == TENSOR and id(<object>checks[i].owner) in addresses:
                continue
            checks[n] = checks[i]
            texts.append(self.texts[i])
            n += 1
        self.n, self.texts, self.failed = n, texts, -1

    def named(self, str text, owner, names):
        """Some entries of a dictionary, present or absent."""
        cdef tuple keys = tuple(names)
        self.add(NAMED, text, owner, keys, tuple([dict.get(owner, key, ABSENT) for key in keys]))

    def items(self, str text, owner):
        """The items of a list."""
        self.add(ITEMS, text, owner, None, tuple(list.__iter__(owner)))

    def content(self, str text, owner):
        """The content of a closure's cell."""
        self.add(CONTENT, text, owner, None, _content_of(owner))

    def version(self, str text, owner):
        """The attributes of a class and of its bases. Returns False if CPython does not count their changes."""
        owner.__init__              # a lookup has CPython assign a version, if it can
        cdef unsigned int version = cygrad_type_version(<PyObject*>owner)
        if version == 0:
            return False
        self.add(CLASS, text, owner, None, ())
        (<check_t*>self.checks)[self.n - 1].version = version
        return True

    def function(self, str text, owner):
        """The code, defaults and cells of a function, not what they hold."""
        assert type(owner) is FunctionType
        self.add(FUNCTION, text, owner, None, _parts_of(owner))

    def instance(self, str text, owner):
        """The class and the dictionary of an object, not what they hold."""
        self.add(OBJECT, text, owner, None, (type(owner), PyObject_GenericGetDict(owner, NULL)))

    def tensor(self, str text, Tensor owner not None):
        """A tensor in the memory of the CPU or a GPU, apart from its values. Returns False for one that is elsewhere."""
        if not isinstance(owner.array, ndarray) and type(owner.array) is not gpu_class() or owner.tangents is not None:
            return False
        self.add(TENSOR, text, owner, None, (_Mark(owner),))
        return True

    def empty(self, str text, set owner not None):
        """A set without items."""
        self.add(EMPTY, text, owner, None, ())

    def asked(self, str text, owner):
        """Something else: `owner()` is None as long as it is as it was, else it tells what differs."""
        self.add(ASKED, text, owner, None, ())

    cpdef bint holds(self) except -1:
        """Whether all is as it was. If not, `why` tells what differs."""
        cdef check_t* checks = <check_t*>self.checks
        cdef Py_ssize_t i
        for i in range(self.n):
            if not _holds(&checks[i]):
                self.failed = i
                return False
        return True

    def why(self):
        """Return what differed when `holds` last returned False."""
        if self.failed < 0:
            return "nothing differed"
        cdef check_t* check = <check_t*>self.checks + self.failed
        return _difference(check, self.texts[self.failed])

    def where(self):
        """Return where the owner of the check that failed last stands in the program, and the keys that differ."""
        cdef check_t* check = <check_t*>self.checks + self.failed
        return self.texts[self.failed], [key for key, _, _ in _differences(check)]

    def described(self):
        """Yield a text for each check, with the value that is expected."""
        cdef Py_ssize_t i
        cdef list lines = []
        for i in range(self.n):
            lines.append(_description((<check_t*>self.checks) + i, self.texts[i]))
        return lines


cdef bint _holds(check_t* check) except -1:
    cdef unsigned long long version
    if check.kind == WHOLE or check.kind == NAMED:
        version = cygrad_dict_version(check.owner)
        if version and version == check.version:
            return True
        if _whole(check) if check.kind == WHOLE else _named(check):
            check.version = version
            return True
        return False
    if check.kind == ITEMS:
        return _items(check)
    if check.kind == CONTENT:
        return _content(check)
    if check.kind == CLASS:
        return cygrad_type_version(check.owner) == check.version
    if check.kind == FUNCTION:
        return _function(check)
    if check.kind == OBJECT:
        if <PyObject*>PyTuple_GET_ITEM(<object>check.values, 0) != Py_TYPE(check.owner):
            return False
        return PyObject_GenericGetDict(<object>check.owner, NULL) is <object>PyTuple_GET_ITEM(<object>check.values, 1)
    if check.kind == EMPTY:
        return PySet_GET_SIZE(<object>check.owner) == 0
    if check.kind == TENSOR:
        return (<_Mark>PyTuple_GET_ITEM(<object>check.values, 0)).fits(<Tensor>check.owner)
    return (<object>check.owner)() is None


cdef bint _whole(check_t* check) except -1:
    cdef Py_ssize_t place = 0, i = 0
    cdef PyObject* key
    cdef PyObject* value
    cdef PyObject* expected
    if PyDict_Size(<object>check.owner) != check.count:
        return False
    while PyDict_Next(<object>check.owner, &place, &key, &value):
        if i == check.count:
            return False
        expected = <PyObject*>PyTuple_GET_ITEM(<object>check.values, i)
        if expected != _any and not same(value, expected):
            return False
        if not same(key, <PyObject*>PyTuple_GET_ITEM(<object>check.keys, i)):
            return False
        i += 1
    return i == check.count


cdef bint _named(check_t* check) except -1:
    cdef Py_ssize_t i
    cdef PyObject* found
    cdef PyObject* expected
    for i in range(check.count):
        expected = <PyObject*>PyTuple_GET_ITEM(<object>check.values, i)
        found = PyDict_GetItemWithError(check.owner, <PyObject*>PyTuple_GET_ITEM(<object>check.keys, i))
        if found == NULL:
            if expected != _absent:
                return False
        elif not same(found, expected):
            return False
    return True


cdef bint _items(check_t* check) except -1:
    cdef Py_ssize_t i
    cdef PyObject* expected
    if PyList_GET_SIZE(<object>check.owner) != check.count:
        return False
    for i in range(check.count):
        expected = <PyObject*>PyTuple_GET_ITEM(<object>check.values, i)
        if not same(<PyObject*>PyList_GET_ITEM(<object>check.owner, i), expected):
            return False
    return True


cdef bint _content(check_t* check) except -1:
    cdef PyObject* found = PyCell_GET(check.owner)
    cdef PyObject* expected = <PyObject*>PyTuple_GET_ITEM(<object>check.values, 0)
    return expected == _absent if found == NULL else same(found, expected)


cdef bint _function(check_t* check) except -1:
    return (_is(PyFunction_GET_CODE(check.owner), check, 0) and _is(PyFunction_GET_DEFAULTS(check.owner), check, 1)
            and _is(PyFunction_GET_KW_DEFAULTS(check.owner), check, 2)
            and _is(PyFunction_GET_CLOSURE(check.owner), check, 3))


cdef bint _is(PyObject* found, check_t* check, Py_ssize_t i) noexcept:
    if found == NULL:
        found = <PyObject*>None
    return found == <PyObject*>PyTuple_GET_ITEM(<object>check.values, i)


cdef tuple _parts_of(function):
    return (function.__code__, function.__defaults__, function.__kwdefaults__, function.__closure__)


cdef tuple _content_of(cell):
    try:
        return (cell.cell_contents,)
    except ValueError:      # it is empty
        return (ABSENT,)


# -- texts --

def _shown(value):
    text = repr(value) if type(value) in (int, float, complex, bool, str, bytes, tuple, type(None), _Absent) else \
        f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


cdef list _differences(check_t* check):
    """Return (key, expected, found) for each part that differs."""
    owner, keys, values = <object>check.owner, None, <tuple><object>check.values
    if check.keys != NULL:
        keys = <tuple><object>check.keys
    if check.kind == WHOLE or check.kind == NAMED:
        pairs = [(key, value, dict.get(owner, key, ABSENT)) for key, value in zip(keys, values)]
        if check.kind == WHOLE:
            known = set(keys)
            pairs += [(key, ABSENT, value) for key, value in dict.items(owner) if key not in known]
    elif check.kind == ITEMS:
        pairs = [(i, values[i] if i < len(values) else ABSENT, owner[i] if i < len(owner) else ABSENT)
                 for i in range(max(len(values), len(owner)))]
    elif check.kind == CONTENT:
        pairs = [(None, values[0], _content_of(owner)[0])]
    elif check.kind == FUNCTION:
        pairs = list(zip(("__code__", "__defaults__", "__kwdefaults__", "__closure__"), values, _parts_of(owner)))
    else:
        pairs = []
    return [(key, a, b) for key, a, b in pairs if a is not ANY and not are_same(b, a)]


cdef str _difference(check_t* check, str text):
    owner = <object>check.owner
    found = _differences(check)
    if found:
        key, expected, value = found[0]
        return f"{_path(text, key, check.kind)} was {_shown(expected)} and is {_shown(value)}"
    if check.kind == CLASS:
        return f"an attribute of the class {owner.__qualname__} was changed"
    if check.kind == OBJECT:
        return f"{text} has another class or dictionary"
    if check.kind == TENSOR:
        return f"the tensor {text} has other memory, another shape or dtype, another requires_grad, or another history"
    if check.kind == ASKED:
        return owner() or f"{text} was changed"
    return f"{text} was changed"


cdef str _path(str text, key, int kind):
    if key is None:
        return text
    if kind == FUNCTION:
        return f"{text}.{key}"
    if kind == NAMED or text.endswith(".__dict__"):
        return f"{text.removesuffix('.__dict__')}.{key}" if text.endswith(".__dict__") else str(key)
    quoted = f'"{key}"' if type(key) is str else _shown(key)
    return f"{text}[{quoted}]"


cdef str _description(check_t* check, str text):
    owner, values = <object>check.owner, <tuple><object>check.values
    if check.kind == WHOLE or check.kind == NAMED:
        pairs = [f"{key if type(key) is str else _shown(key)}: {_shown(value)}"
                 for key, value in zip(<tuple><object>check.keys, values)]
        return f"{text} {{{', '.join(pairs)}}}"
    if check.kind == ITEMS or check.kind == CONTENT:
        return f"{text} = {', '.join(map(_shown, values))}"
    if check.kind == CLASS:
        return f"class {owner.__qualname__}"
    if check.kind == FUNCTION:
        return f"function {text}"
    if check.kind == OBJECT:
        return f"{text} is a {values[0].__qualname__}"
    return f"{text}: {'a tensor' if check.kind == TENSOR else 'compared'}"
