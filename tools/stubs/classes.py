"""Types of attributes, and what the signatures of compiled classes do not tell."""

from stubs.parameters import by_name

BASES = {
    "PyNode": "Node",
    "Size": "tuple[int, ...]",
    **dict.fromkeys(
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
        "ShortTensor".split(),
        "Tensor",
    ),
}

CONSTRUCTORS = {
    "Generator": ("self, device: Device = None, *, algorithm: str = ...",),
    "Size": ("self, sizes: Iterable[int] = ..., /",),
    "PyNode": ("self, *args: Any, **kwargs: Any",),
    "Tensor": ("self, *args: Any, **kwargs: Any",),
    "device": ("self, type: str | int | device, index: int | None = None",),
    "finfo": ("self, type: dtype | None = None, /",),
    "iinfo": ("self, type: dtype, /",),
}

ATTRIBUTES = by_name(
    {
        "Any": (
            "PyNode.dirty_tensors PyNode.materialize_grads PyNode.non_differentiable PyNode.to_save "
            "__cuda_array_interface__ _accumulate_grad _backward_hooks _post_accumulate_grad_hooks dtype.numpy"
        ),
        "Node | None": "grad_fn",
        "tuple[Tensor, ...]": "PyNode.saved_tensors PyNode.saved_variables",
        "tuple[bool, ...]": "PyNode.needs_input_grad",
        "dict[Any, Any]": "Node.metadata",
        "tuple[tuple[Node | None, int], ...]": "Node.next_functions",
        "Size": "shape",
        "Tensor": "H T data imag mH mT real",
        "Tensor | None": "_base _grad grad",
        "bool": (
            "is_complex is_cpu is_cuda is_floating_point is_leaf is_meta is_mkldnn is_mps is_nested is_quantized "
            "is_signed is_sparse is_sparse_csr is_xpu requires_grad retains_grad volatile"
        ),
        "device": "Generator.device device",
        "dtype": "dtype",
        "dtype | None": "grad_dtype",
        "float": "finfo.eps finfo.max finfo.min finfo.resolution finfo.smallest_normal finfo.tiny",
        "int": "Generator.draws _version bits iinfo.max iinfo.min itemsize nbytes ndim output_nr",
        "int | None": "device.index",
        "layout": "layout",
        "str": "Generator.algorithm char device.type finfo.dtype iinfo.dtype memory_format.name name type_name",
    }
)

# Attributes that can be set.
SETTABLE = "materialize_grads _backward_hooks _grad data grad grad_dtype imag real requires_grad".split()

# Classes whose objects take any attribute, and then have it.
ANY_ATTRIBUTE = ("PyNode",)

# Names with an underscore that programs, or the package itself, use from outside.
SHOWN_PRIVATE = (
    "__version__ _backward_hooks _base _grad _is_view _make_subclass _metas _post_accumulate_grad_hooks _version "
    "_canonical_mask"
).split()
