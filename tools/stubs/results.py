"""Types of results, by names of functions and methods; what no table names returns a tensor."""

from cygrad import return_types
from stubs.parameters import by_name

RESULTS = by_name(
    {
        "Any": "__array_function__ __array_ufunc__ __dlpack__ __reduce_ex__ tolist",
        "None": (
            "Generator.__setstate__ Generator.set_offset Node.__init__ PyNode.mark_dirty "
            "PyNode.mark_non_differentiable PyNode.save_for_backward PyNode.save_for_forward "
            "PyNode.set_materialize_grads __delattr__ __delitem__ __exit__ __setattr__ __setitem__ backward "
            "cygrad.autograd.backward record_stream retain_grad set_default_device set_default_dtype "
            "set_default_tensor_type"
        ),
        "Number": "item",
        "RemovableHandle": "Node.register_prehook register_hook register_post_accumulate_grad_hook",
        "Self": (
            "Generator.clone_state Generator.graphsafe_set_state Generator.manual_seed Generator.set_state __enter__"
        ),
        "Tensor": "Generator.get_state Generator.graphsafe_get_state",
        "Size": "broadcast_shapes",
        "UntypedStorage": "untyped_storage",
        "TypedStorage": "storage",
        "type[TypedStorage]": "storage_type",
        "Iterator[Tensor]": "__iter__",
        "bool": (
            "__bool__ __contains__ __eq__ _is_view allclose can_cast equal has_names is_coalesced is_complex is_conj "
            "is_contiguous is_distributed is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size "
            "is_set_to is_shared is_signed"
        ),
        "complex": "__complex__",
        "device": "get_default_device",
        "dtype": "get_default_dtype promote_types result_type to_complex to_real",
        "float": "__float__",
        "int": (
            "Generator.get_offset __hash__ __index__ __int__ __len__ const_data_ptr data_ptr dense_dim dim "
            "element_size get_device initial_seed ndimension nelement numel seed sparse_dim storage_offset"
        ),
        "list[str]": "__dir__",
        "np.ndarray[Any, Any]": "__array__ numpy",
        "str": "Node.name __format__ __repr__ __str__",
        "tuple[Tensor, Tensor]": (
            "adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
            "adaptive_max_pool3d_with_indices fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices "
            "gru lobpcg lstm_cell max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
            "native_dropout rnn_relu rnn_tanh std_mean var_mean"
        ),
        "tuple[Tensor, Tensor | None]": "multi_head_attention_forward",
        "tuple[Tensor, Tensor, Tensor]": (
            "lstm native_batch_norm native_group_norm native_layer_norm pca_lowrank svd_lowrank"
        ),
        "tuple[Tensor, ...]": (
            "align_tensors broadcast_tensors chunk cygrad.autograd.grad dsplit gradient hsplit lu meshgrid split "
            "split_copy split_with_sizes split_with_sizes_copy tensor_split unbind unbind_copy unsafe_chunk "
            "unsafe_split unsafe_split_with_sizes vsplit"
        ),
        "tuple[int, int]": "__dlpack_device__",
        "tuple[int, ...]": "dim_order",
        "tuple[Tensor, Tensor, Tensor, Tensor]": "cygrad.embedding_bag",
    }
)


def result_of(module: str, name: str, unknown: str) -> str:
    """Return the type of the result of a function of this module, or of a method of the class of this name."""
    known = RESULTS.get(f"{module}.{name}") or RESULTS.get(name)
    if known:
        return known
    for named in (f"{module.rpartition('.')[2]}_{name}", name):
        if hasattr(return_types, named) and not named.startswith("_"):
            return f"return_types.{named}"
    return unknown
