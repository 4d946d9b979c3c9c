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


_STEPS = {  # what PyTorch calls the step that a function cannot do, where it is not "empty_strided"
    "arange": "arange.start_out",
    "eye": "eye.m_out",
    "fftfreq": "arange.start_out",
    "linspace": "linspace.out",
    "logspace": "logspace.out",
    "new_full": "fill_.Scalar",
    "new_ones": "fill_.Scalar",
    "normal": "normal_",
    "rand": "uniform_",
    "randint": "random_.from",
    "randn": "normal_",
    "randperm": "randperm.generator_out",
    "range": "range.out",
    "rfftfreq": "arange.start_out",
    "tril_indices": "tril_indices",
    "triu_indices": "triu_indices",
}


def not_made(function, layout):
    """Return the error for a function that makes dense tensors alone and is asked for another layout."""
    return not_for(_STEPS.get(function, "empty_strided"), backend(layout))
