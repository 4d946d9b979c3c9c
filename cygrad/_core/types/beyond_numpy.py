"""Dtypes that NumPy lacks, and the schemes of quantized tensors; imported on first use.

See Note [Dtypes beyond NumPy's] in dtypes.pyx. cygrad has no quantized tensors: programs compare with these names.
"""

from cygrad._core.types.dtypes import beyond_numpy, dtype_named

NAMES = (*beyond_numpy(), "chalf", "bit")
_ALIASES = {"chalf": "complex32", "bit": "uint1"}


class qscheme:
    """A way to store numbers as small integers: `per_tensor_affine`, `per_channel_symmetric`, ...

    >>> import cygrad
    >>> cygrad.per_tensor_affine
    torch.per_tensor_affine
    """

    __module__ = "cygrad"
    __slots__ = ("_name",)
    _name: str

    def __new__(cls):
        raise TypeError("cannot create 'torch.qscheme' instances")

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name  # which pickle finds in the package

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _scheme(name):
    made = object.__new__(qscheme)
    made._name = name
    return made


SCHEMES = {
    name: _scheme(name)
    for name in (
        "per_channel_affine",
        "per_channel_affine_float_qparams",
        "per_channel_symmetric",
        "per_tensor_affine",
        "per_tensor_symmetric",
    )
}


def __getattr__(name):
    if name in SCHEMES:
        return SCHEMES[name]
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return dtype_named(_ALIASES.get(name, name))
