"""Element types and type promotion."""

cdef enum:              # categories, in the order of promotion
    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2
    COMPLEX = 3

cdef class dtype:
    cdef readonly str name
    "The name of the dtype: 'float32'."
    cdef readonly str type_name
    "Its name in error messages: 'Float'."
    cdef readonly object numpy
    "The NumPy dtype."
    cdef readonly int num
    "NumPy's type number."
    cdef readonly int itemsize
    "The number of bytes per element."
    cdef readonly int category
    "0 for booleans, 1 for integers, 2 for floating-point numbers, 3 for complex numbers."
    cdef readonly bint is_signed
    "Whether the dtype can represent negative numbers."

cdef dtype dtype_of_num(int num)                    # raises TypeError for an unsupported type number
cpdef dtype as_dtype(object value)                   # from a dtype, a NumPy dtype or a Python type
cdef int category_of_num(int num) noexcept          # -1 if unknown
cdef bint is_float_num(int num) noexcept            # floating or complex: may require grad
cdef dtype default_dtype()
cdef dtype default_complex_dtype()
cdef dtype promote_types(dtype a, dtype b)
cdef dtype dtype_of_scalar(object number)           # the dtype of a Python number on its own
cdef dtype combine(dtype higher, dtype lower)       # see Note [Promotion]

cdef inline int category_of_number(object value) except -1:
    if type(value) is int:
        return INTEGRAL
    if type(value) is float:
        return FLOATING
    if type(value) is bool:
        return BOOLEAN
    return dtype_of_scalar(value).category
