"""Element types and type promotion.

Note [Promotion]
----------------
Operands fall into three groups: tensors with dimensions, 0-dim tensors, Python numbers. Within a group dtypes are
promoted as usual (`promote_types`). A lower group can only raise the *category* of the result (bool < integer <
float < complex), never the width within it: `float32 tensor * 2.5` is float32, `int64 tensor * 2.5` has the default
float dtype. `combine` joins two groups by that rule.
"""

from sys import modules

import numpy as np

from cygrad._kernels.cpu.base.arrays cimport keep_bfloat16

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        const char* tp_name

cdef list _by_num = [None] * 64         # by NumPy's type number
cdef dict _by_user_num = {}             # dtypes that other packages registered with NumPy (ml_dtypes)
cdef dict _by_name = {}
cdef dict _promotions = {}
cdef int[64] _categories
cdef dtype _default
cdef int _i
for _i in range(64):
    _categories[_i] = -1


cdef class dtype:
    """The type of a tensor's elements, such as `cygrad.float32`.

    `numpy` is the NumPy dtype, `itemsize` the number of bytes per element. The repr is PyTorch's.

    >>> import cygrad
    >>> cygrad.float32, cygrad.float32.itemsize, cygrad.float32.is_floating_point
    (torch.float32, 4, True)
    """

    def __init__(self):
        raise TypeError("dtypes are not created: use cygrad.float32, cygrad.int64, ...")

    @property
    def __numpy_dtype__(self):
        """The NumPy dtype. NumPy 2.4 and newer use it to accept this object as a dtype."""
        return self.numpy

    @property
    def char(self):
        """NumPy's one-letter code, which SciPy reads from the results of NumPy functions."""
        return self.numpy.char

    @property
    def is_floating_point(self):
        """Whether this is a real floating-point type."""
        return self.category == FLOATING

    @property
    def is_complex(self):
        """Whether this is a complex type."""
        return self.category == COMPLEX

    def to_real(self):
        """Return the real dtype of the same precision: complex64 gives float32.

        >>> import cygrad
        >>> cygrad.complex128.to_real(), cygrad.float32.to_real()
        (torch.float64, torch.float32)
        """
        return _by_name[f"float{self.itemsize * 4}"] if self.category == COMPLEX else self

    def to_complex(self):
        """Return the complex dtype of the same precision, or else the smallest one: float32 gives complex64.

        Raises RuntimeError for integers.

        >>> import cygrad
        >>> cygrad.float64.to_complex(), cygrad.float32.to_complex()
        (torch.complex128, torch.complex64)
        """
        if self.category < FLOATING or (self.category == FLOATING and self.itemsize == 1):
            raise RuntimeError(f"Unknown Complex ScalarType for {self.type_name}")
        return self if self.category == COMPLEX else _by_name["complex128" if self.name == "float64" else "complex64"]

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return dtype_named, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


(<PyTypeObject*>dtype).tp_name = b"cygrad.dtype"         # its public name


cdef bint _is_signed(str name):
    return name not in ("bool", "float8_e8m0fnu") and not name.startswith(("u", "qu", "bits"))


cdef dtype _make(str name, str type_name, object numpy_type, int category):
    cdef dtype new = dtype.__new__(dtype)
    new.name = name
    new.type_name = type_name
    new.numpy = np.dtype(numpy_type)
    new.num = new.numpy.num
    new.itemsize = new.numpy.itemsize
    new.category = category
    new.is_signed = _is_signed(name)
    _by_name[name] = new
    if new.num < 64:
        _by_num[new.num] = new
        _categories[new.num] = category
    else:
        _by_user_num[new.num] = new
    return new


for _name, _type_name, _category in (
    ("bool", "Bool", BOOLEAN), ("uint8", "Byte", INTEGRAL), ("int8", "Char", INTEGRAL),
    ("int16", "Short", INTEGRAL), ("int32", "Int", INTEGRAL), ("int64", "Long", INTEGRAL),
    ("uint16", "UInt16", INTEGRAL), ("uint32", "UInt32", INTEGRAL), ("uint64", "UInt64", INTEGRAL),
    ("float16", "Half", FLOATING), ("float32", "Float", FLOATING), ("float64", "Double", FLOATING),
    ("complex64", "ComplexFloat", COMPLEX), ("complex128", "ComplexDouble", COMPLEX),
):
    _make(_name, _type_name, _name, _category)
_default = _by_name["float32"]


# -- dtypes beyond NumPy's -----------------------------------------------------------------------------------

# Note [Dtypes beyond NumPy's]
# A program may name all of PyTorch's dtypes and compare with them, whatever is installed. They are made on first use:
# those that ml_dtypes has (it is imported then) as dtypes like any other, the rest as objects that can be asked for all
# but a tensor. {name: (type name, itemsize, category)}
cdef dict _BEYOND = {
    "bfloat16": ("BFloat16", 2, FLOATING), "complex32": ("ComplexHalf", 4, COMPLEX),
    "float4_e2m1fn_x2": ("Float4_e2m1fn_x2", 1, FLOATING),
    "qint8": ("QInt8", 1, INTEGRAL), "quint8": ("QUInt8", 1, INTEGRAL), "qint32": ("QInt32", 4, INTEGRAL),
    "quint4x2": ("QUInt4x2", 1, INTEGRAL), "quint2x4": ("QUInt2x4", 1, INTEGRAL),
    "bits1x8": ("Bits1x8", 1, INTEGRAL), "bits2x4": ("Bits2x4", 1, INTEGRAL), "bits4x2": ("Bits4x2", 1, INTEGRAL),
    "bits8": ("Bits8", 1, INTEGRAL), "bits16": ("Bits16", 2, INTEGRAL),
}
for _kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"):
    _BEYOND["float8_" + _kind] = ("Float8_" + _kind, 1, FLOATING)
for _width in range(1, 8):
    _BEYOND[f"int{_width}"] = (f"Int{_width}", 1, INTEGRAL)
    _BEYOND[f"uint{_width}"] = (f"UInt{_width}", 1, INTEGRAL)

cdef dict _only_named = {}              # those without arrays, by name


cdef class _Missing(dtype):
    """A dtype that no tensor can have here: it can be named, compared, and asked for what it is."""

    @property
    def is_signed(self):
        """Whether the dtype can represent negative numbers. Raises RuntimeError for quantized numbers and mere bits."""
        if self.name.startswith("q"):
            raise RuntimeError("isSignedType not supported for quantized types")
        if self.name.startswith("bits"):
            raise RuntimeError("Bits types are undefined")
        return _is_signed(self.name)


def beyond_numpy():
    """Return the names of the dtypes that NumPy lacks."""
    return list(_BEYOND)


def dtype_named(str name):
    """Return the dtype of a name. Note [Dtypes beyond NumPy's]. Raises KeyError if PyTorch has none of that name."""
    cdef dtype new
    found = _by_name.get(name) or _only_named.get(name)
    if found is not None:
        return found
    type_name, itemsize, category = _BEYOND[name]
    array_type = _of_ml_dtypes(name)
    if array_type is not None:
        if name == "bfloat16":
            keep_bfloat16(np.dtype(array_type).num)
        return _make(name, type_name, array_type, category)
    new = _only_named[name] = _Missing.__new__(_Missing)
    new.name, new.type_name, new.num, new.itemsize, new.category = name, type_name, -1, itemsize, category
    new.is_signed = _is_signed(name)
    return new


cdef object _of_ml_dtypes(str name):
    """Return the class of elements that ml_dtypes has for a floating-point dtype, or None."""
    if name != "bfloat16" and not name.startswith("float8"):
        return None
    try:
        import ml_dtypes                # needed only for these dtypes
    except ImportError:
        return None
    return getattr(ml_dtypes, name, None)


cdef object _no_arrays(dtype wanted):
    """Return the error for a tensor of a dtype that has no arrays."""
    if wanted.category == FLOATING and wanted.itemsize == 2 or wanted.name.startswith("float8"):
        return ImportError(
            f"{wanted} needs the package ml_dtypes: pip install ml_dtypes")
    if wanted.name.startswith("q"):
        instead = "cygrad has no quantized tensors: use float16 or bfloat16"
    elif wanted.category == COMPLEX:
        instead = "NumPy has no such numbers: use complex64"
    else:
        instead = "cygrad can name this dtype, but has no tensors of it: use uint8 or int8 and shift the bits"
    return NotImplementedError(f"not implemented for '{wanted.type_name}'\n  {instead}")


cdef dtype _unknown_num(int num):
    if "ml_dtypes" in modules:
        for name in _BEYOND:
            dtype_named(name)
    found = _by_user_num.get(num)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of this type (NumPy type number {num}). "
            "The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
            "int16, int8, uint64, uint32, uint16, uint8, and bool.")
    return found


cdef dtype dtype_of_num(int num):
    if 0 <= num < 64:
        found = _by_num[num]
        if found is not None:
            return found
    return _unknown_num(num)


cdef int category_of_num(int num) noexcept:
    if 0 <= num < 64:
        return _categories[num]
    return FLOATING if num in _by_user_num else -1


cdef bint is_float_num(int num) noexcept:
    return category_of_num(num) >= FLOATING


cpdef dtype as_dtype(object value):
    if type(value) is dtype:
        return value
    if isinstance(value, _Missing):
        raise _no_arrays(value)
    if value is float:
        return _by_name["float64"]
    if value is int:
        return _by_name["int64"]
    if value is bool:
        return _by_name["bool"]
    if value is complex:
        return _by_name["complex128"]
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype_of_num(np.dtype(value).num)
    raise TypeError(f"dtype must be a torch.dtype, not {type(value).__name__}")


cdef dtype default_dtype():
    return _default


cdef dtype default_complex_dtype():
    return _by_name["complex128"] if _default.name == "float64" else _by_name["complex64"]


def get_default_dtype():
    """Return the dtype of tensors made from Python floats: float32 unless changed by `set_default_dtype`.

    >>> import cygrad
    >>> cygrad.get_default_dtype()
    torch.float32
    """
    return _default


def set_default_dtype(d):
    """Make `d`, a floating-point dtype, the dtype of tensors made from Python floats.

    Raises TypeError for any other dtype.

    >>> import cygrad
    >>> cygrad.set_default_dtype(cygrad.float64)
    >>> cygrad.tensor(1.5).dtype
    torch.float64
    >>> cygrad.set_default_dtype(cygrad.float32)
    """
    global _default
    cdef dtype wanted
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    wanted = as_dtype(d)
    if wanted.category != FLOATING:
        raise TypeError(
            "only floating-point types are supported as the default type")
    if wanted.itemsize == 1:
        raise TypeError(f"couldn't find storage object {wanted.type_name}Storage")
    _default = wanted


cdef dtype promote_types(dtype a, dtype b):
    if a is b:
        return a
    found = _promotions.get((a, b))
    if found is None:
        found = _promotions[a, b] = _promote(a, b)
    return found


cdef inline bint is_bare_unsigned(dtype d) noexcept:
    """Whether d is one of the unsigned integers that have few ops: all but uint8."""
    return d.category == INTEGRAL and not d.is_signed and d.name != "uint8"


cdef inline bint _is_mere_bits(dtype d):
    return d.name.startswith("bits") or (d.num < 0 and d.category == INTEGRAL and d.is_signed)


cdef int _check_promotable(dtype a, dtype b) except -1:
    """Refuse a promotion of quantized numbers and of mere bits, which have no values to keep."""
    if a.name.startswith("q") or b.name.startswith("q"):
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {a.type_name} {b.type_name}")
    if _is_mere_bits(a) or _is_mere_bits(b):
        raise RuntimeError(f"Promotion from {a.type_name} and {b.type_name} is unsupported.")
    return 0


cdef dtype _promote(dtype a, dtype b):
    _check_promotable(a, b)
    if (is_bare_unsigned(a) and b.category != FLOATING) or (is_bare_unsigned(b) and a.category != FLOATING):
        raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                           f"{a.type_name} and {b.type_name}")
    if (a.category == FLOATING and a.itemsize == 1) or (b.category == FLOATING and b.itemsize == 1):
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.type_name} and {b.type_name}")
    if a.category < b.category:
        a, b = b, a
    if a.category > b.category:
        return _complex_holding(a, b) if a.category == COMPLEX and b.category == FLOATING else a
    if a.category == FLOATING and a.itemsize == b.itemsize:      # float16 and bfloat16
        return _by_name["float32"]
    if a.category == FLOATING or a.category == COMPLEX:
        return a if a.itemsize >= b.itemsize else b
    return dtype_of_num(np.promote_types(a.numpy, b.numpy).num)


cdef dtype _complex_holding(dtype a, dtype real):
    """Return the narrowest complex dtype that holds numbers of the complex dtype `a` and of a real one."""
    if real.itemsize == 8:
        return _by_name["complex128"]
    if a.itemsize == 4 and real.name != "float16":              # complex32 consists of two of float16
        return _by_name["complex64"]
    return a


cdef dtype dtype_of_scalar(object number):
    if isinstance(number, bool):
        return _by_name["bool"]
    if isinstance(number, int):
        return _by_name["int64"]
    if isinstance(number, float):
        return _default
    if isinstance(number, complex):
        return default_complex_dtype()
    raise TypeError(f"not a number: {type(number).__name__}")


cdef dtype combine(dtype higher, dtype lower):
    if higher is None:
        return lower
    if lower is None or higher.category == COMPLEX:
        return higher
    if higher.category == FLOATING:
        return higher.to_complex() if lower.category == COMPLEX else higher
    if lower.category == COMPLEX:
        return lower
    if higher.category == BOOLEAN or lower.category == FLOATING:
        return promote_types(higher, lower)
    return higher


def by_name():
    """Return all dtypes by name, including aliases, as the package exports them."""
    aliases = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64",
               "short": "int16", "cfloat": "complex64", "cdouble": "complex128"}
    return {**_by_name, **{alias: _by_name[name] for alias, name in aliases.items()}}


def promote_types_py(type1, type2):
    """Return the smallest dtype that both dtypes convert to.

    >>> import cygrad
    >>> cygrad.promote_types(cygrad.int64, cygrad.float32)
    torch.float32
    """
    return promote_types(dtype_argument(type1, "promote_types", "type1", 1),
                         dtype_argument(type2, "promote_types", "type2", 2))


def can_cast(from_, to):
    """Whether a result of dtype `from_` may be written into a tensor of dtype `to`.

    Casting may narrow within a category but never lower the category: float to int is not allowed.

    >>> import cygrad
    >>> cygrad.can_cast(cygrad.double, cygrad.float), cygrad.can_cast(cygrad.float, cygrad.int)
    (True, False)
    """
    cdef dtype given = dtype_argument(from_, "can_cast", "from_", 1), wanted = dtype_argument(to, "can_cast", "to", 2)
    # Quantized numbers and mere bits do not count as integers.
    return given.category <= wanted.category or (wanted.num < 0 and given.category != COMPLEX)


cdef dtype dtype_argument(object value, str function, str name, int position):
    if isinstance(value, dtype):        # also one without arrays, of which one may ask
        return value
    try:
        return as_dtype(value)
    except TypeError:
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be torch.dtype, "
                        f"not {type(value).__name__}") from None


def dtype_by_num(int num):
    """Return the dtype for a NumPy type number."""
    return dtype_of_num(num)


def dtype_of_number(number):
    """Return the dtype of a Python number on its own."""
    return dtype_of_scalar(number)
