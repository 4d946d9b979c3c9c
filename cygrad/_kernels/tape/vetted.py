"""What may run while a step is noted: kernels that compute by noted loops, callers that do not read values.

Any other kernel is noted as a call (Note [Noted calls] in calls.pyx). Code in Python above the kernels could read
values and decide by them, which leaves no trace. Hence these lists; `tests/compile/test_every_row.py` compares each op
with other values.
"""

# Compiled modules whose kernels note their loops, or refuse where they read values.
MODULES = frozenset(
    "cygrad._kernels." + name
    for name in (
        "array_ops cpu.base.arrays cpu.base.elementwise cpu.base.matmul cpu.base.reduce cpu.base.ufunc "
        "cpu.base.view_geometry cpu.nn.activations cpu.nn.softmax cpu.optim.formulas "
        "cpu.optim.optim cpu.random.draw"
    ).split()
)

# Kernels of whose results the values of their arguments tell the number of elements; so does `index` if given masks.
OF_DATA_SIZE = frozenset(
    {"bincount", "distinct", "distinct_slices", "masked_select", "nonzero", "runs", "runs_of_slices"}
)

# Classes of objects without arrays: kernels that take them can be called again with the same ones.
PLAIN_TYPES = frozenset(
    {
        "Frame",
        "Geometry",
        "Kernel",
        "Noted",
        "OpDef",
        "Table",
        "Ufunc",
        "_ArrayFunctionDispatcher",
        "_ByLoop",
        "_lru_cache_wrapper",
        "cython_function_or_method",
        "dtype",
    }
)

# Kernels in Python that call others through the layer above: {module: names}
KERNELS: dict[str, frozenset[str]] = {
    "cygrad._core.engine.blocked_gradients": frozenset({"gradients"}),
    "cygrad._ops.base.products": frozenset({"linear_array"}),
    "cygrad._ops.linalg.addmm": frozenset({"add_product_array"}),
}

# Functions in Python outside of `_ops/` that get arrays and hand them on to kernels: (end of the file's name, function)
CALLERS = frozenset(
    {
        ("cygrad/optim/sgd.py", "_step_compiled"),
        ("cygrad/optim/adam.py", "arrays"),
        # which compare arrays by identity, and ask for their type
        *(("cygrad/_core/registry/autocast.py", name) for name in ("_cast_ahead", "__init__", "holds")),
        ("cygrad/_core/replay/decisions.py", "decide"),
        ("cygrad/_core/tensor/predicates.py", "is_contiguous"),  # asks for the layout, which guards know
        ("cygrad/_core/tensor/predicates.py", "_itemsize"),
        ("cygrad/_core/tensor/predicates.py", "memory_of"),
        ("cygrad/_core/tensor/predicates.py", "storage_offset"),  # which depends on places in memory that guards know
        ("cygrad/_core/saved/saved_tensor_hooks.py", "memory_of"),
        ("cygrad/optim/formula.py", "_step_arrays"),
        ("cygrad/optim/adam.py", "_step_compiled"),
        # of those in `_ops/random/`, which may read values
        ("_ops/random/dropout.py", "_dropped"),
        *(("_ops/random/sampling.py", name) for name in ("_check_weights", "_shape_of", "bernoulli", "coins")),
        *(("_ops/random/sampling.py", name) for name in ("gammas", "log_gammas", "multinomial", "normal")),
        ("_ops/random/sampling.py", "poisson"),
    }
)

# Functions in `_ops/` that read values of arrays, other than by kernels and functions that are `noted`, or that change
# arrays by means of NumPy: {file: names}.
# All others look at shapes and dtypes alone. `tests/compile/test_vetted.py` finds those that are missing here.
READERS: dict[str, frozenset[str]] = {
    file: frozenset(names.split())
    for file, names in {
        "elementwise/binary.py": "at_some",
        "elementwise/logic.py": "allclose",
        "elementwise/python_map.py": "mapped",
        "image/average_pooling.py": "_norms",
        "indexing/scattering.py": "_product_gradients _products_within index_fill_tensor_rule",
        "indexing/take_and_mask.py": "_masked_scatter nonzero_static",
        "linalg/cholesky.py": "solve_rule",
        "linalg/eigen.py": "check_phase general",
        "linalg/grouped_products.py": "_checked_ends",
        "linalg/least_squares.py": "linalg_lstsq",
        "linalg/ldl.py": "check_factors",
        "linalg/low_rank.py": "lobpcg_rule lobpcg",
        "linalg/lu.py": "lu_unpack",
        "linalg/qr.py": "product_rule rows_of_vectors tall_gradient",
        "linalg/svd.py": "check_phase pinv_gradient",
        "loss/similarity.py": "_cosine_losses",
        "nn/distances.py": "renorm_rule _renorm_gradient",
        "nn/embeddings.py": "embedding_renorm_",
        "nn/norm_scaling.py": "unit",
        "nn/rectifiers.py": "_random_slopes",
        "reduction/scans.py": "_by_logarithms",
        "reduction/searching.py": "_check_sorter",
        "reduction/segments.py": "_bounds _checked",
        "reduction/statistics.py": "cov observation_weights corrcoef",
        "shape/repeating.py": "repeat_interleave",
        "signal/stft.py": "_scale_of divided",
    }.items()
}

# Files and folders in `_ops/` all of whose functions may do so.
READING = (
    *("creation/dlpack.py", "creation/from_data.py", "numpy_api/", "random/", "reduction/histograms.py"),
    "sparse/",
)


def is_vetted(kernel):
    """Whether a kernel, or what a partial function calls, is on the list."""
    while hasattr(kernel, "func"):
        kernel = kernel.func
    if type(kernel).__name__ == "_ByLoop":  # a loop of fused_loops.h, or a formula without conditions on values
        return True
    module = getattr(kernel, "module", None) or getattr(kernel, "__module__", None)
    if module in MODULES:
        return True
    return getattr(kernel, "__name__", None) in KERNELS.get(module or "", ())


def depends_on_values(name, arrays):
    """Whether a kernel's results have as many elements as the values of its arguments tell."""
    return name in OF_DATA_SIZE or name == "index" and any(array.dtype.kind == "b" for array in arrays[1:])


def may_have_arrays(frame):
    """Whether the function that runs in a frame hands arrays on without reading their values."""
    code = frame.f_code
    path = code.co_filename.replace("\\", "/")
    function = code.co_qualname.partition(".<locals>")[0].rpartition(".")[2]
    if any(path.endswith(end) and function == name for end, name in CALLERS):
        return True
    if not frame.f_globals.get("__name__", "").startswith("cygrad._ops."):
        return False
    inner = path.rpartition("/_ops/")[2]
    return not inner.startswith(READING) and function not in READERS.get(inner, ())


def may_have_results(frame):
    """Whether the function that runs in a frame, and calls a kernel, reads no values of its results.

    If it is compiled, the frame is that of a program, or of a module.
    """
    return not frame.f_globals.get("__name__", "").startswith("cygrad._ops.") or may_have_arrays(frame)
