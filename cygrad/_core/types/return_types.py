"""Result types of ops with several results: tuples with named items."""

import operator
from typing import Any


class ReturnType(tuple):
    """Base class of results with named items.

    >>> import cygrad
    >>> values, indices = cygrad.tensor([1.0, 3.0, 2.0]).max(dim=0)
    >>> cygrad.tensor([1.0, 3.0, 2.0]).max(dim=0)
    torch.return_types.max(
    values=tensor(3.),
    indices=tensor(1))
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, items, _unnamed=None):
        """Create from a sequence of the items; PyTorch's pickles also pass a dictionary of unnamed ones, of which there
        are none."""
        self = tuple.__new__(cls, items)
        if len(self) != len(cls._fields):
            raise TypeError(f"{cls.__name__}() takes a {len(cls._fields)}-sequence ({len(self)}-sequence given)")
        return self

    def __repr__(self):
        items = ",\n".join(f"{name}={item!r}" for name, item in zip(self._fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{items})"

    def __reduce__(self):
        return type(self), (tuple(self),)


_DOC = """The result of `{name}`: the tuple ({fields}), whose items have these names, too.

    Raises TypeError if it is made from another number of items.

    >>> import cygrad
    >>> result = cygrad.return_types.{name}({texts})
    >>> result.{first}, result.{first} is result[0]
    ('{first}', True)
    """


def _return_type(name, *fields):
    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": "cygrad.return_types",
        "_fields": fields,
        "__doc__": _DOC.format(name=name, fields=", ".join(fields), first=fields[0], texts=fields),
    }
    for i, field in enumerate(fields):
        body[field] = property(operator.itemgetter(i), doc=f"Item {i}.")
    return type(name, (ReturnType,), body)


max = _return_type("max", "values", "indices")
min = _return_type("min", "values", "indices")
sort = _return_type("sort", "values", "indices")
topk = _return_type("topk", "values", "indices")
kthvalue = _return_type("kthvalue", "values", "indices")
median = _return_type("median", "values", "indices")
nanmedian = _return_type("nanmedian", "values", "indices")
mode = _return_type("mode", "values", "indices")
cummax = _return_type("cummax", "values", "indices")
cummin = _return_type("cummin", "values", "indices")
slogdet = _return_type("slogdet", "sign", "logabsdet")
linalg_slogdet = _return_type("linalg_slogdet", "sign", "logabsdet")
frexp = _return_type("frexp", "mantissa", "exponent")
aminmax = _return_type("aminmax", "min", "max")
histogram = _return_type("histogram", "hist", "bin_edges")
histogramdd = _return_type("histogramdd", "hist", "bin_edges")
linalg_inv_ex = _return_type("linalg_inv_ex", "inverse", "info")
linalg_solve_ex = _return_type("linalg_solve_ex", "result", "info")
linalg_cholesky_ex = _return_type("linalg_cholesky_ex", "L", "info")
triangular_solve = _return_type("triangular_solve", "solution", "cloned_coefficient")
linalg_lu = _return_type("linalg_lu", "P", "L", "U")
linalg_lu_factor = _return_type("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _return_type("linalg_lu_factor_ex", "LU", "pivots", "info")
lu_unpack = _return_type("lu_unpack", "P", "L", "U")
_lu_with_info = _return_type("_lu_with_info", "LU", "pivots", "info")
linalg_ldl_factor = _return_type("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _return_type("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_qr = _return_type("linalg_qr", "Q", "R")
qr = _return_type("qr", "Q", "R")
geqrf = _return_type("geqrf", "a", "tau")
linalg_eig = _return_type("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _return_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_svd = _return_type("linalg_svd", "U", "S", "Vh")
svd = _return_type("svd", "U", "S", "V")
linalg_lstsq = _return_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")

__all__ = [
    name
    for name, value in list(vars().items())
    if isinstance(value, type) and issubclass(value, ReturnType) and name[0] not in "_R"
]
