"""Errors of operations that do not take sparse tensors."""


def backend(layout, on_gpu=False):
    """Return PyTorch's name for the backend of a layout."""
    name = "Sparse" if layout == "sparse_coo" else "SparseCsr"
    return name + ("CUDA" if on_gpu else "CPU")


def not_for(name, kind):
    """Return the error for an op that does not take tensors of a kind, such as "SparseCPU"."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{kind}' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom "
        "build).\n  "
        + (
            "only sparse tensors have this: convert the tensor first, as in x.to_sparse()"
            if kind in ("CPU", "CUDA")
            else f"{name} does not take a sparse tensor: convert it first, as in x.to_dense()"
        )
    )
