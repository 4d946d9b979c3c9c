"""Checks the dtype of `out=` for ops where PyTorch requires more than that the result can be converted.

Rows are looked up by name; of several results, later ones may be listed separately ("frexp:1").
In the texts, a field like {out} is PyTorch's name for the dtype of `out`, {out_c} the C++ name, {out_tensor} that of a
tensor with the dtype; {result}, ... are the same for the dtype of the result, {title} is the name of the row.
"""

from functools import cache

from cygrad._core.errors.messages import c_name
from cygrad._core.graph.opdef import registry
from cygrad._core.types.dtypes import can_cast

# `out` must have exactly the dtype of the result; otherwise a RuntimeError with this text is raised
SAME = {
    "Expected out tensor to have dtype {result_c}, but got {out_c} instead": """
        addmm addmv alias_copy aminmax argmax argmin as_strided_copy baddbmm bmm detach_copy diag diag.vector
        diagonal_copy expand_copy frobenius_norm gather index_add index_copy index_reduce isin
        linalg_cholesky_ex linalg_cross linalg_eigh linalg_eigvalsh linalg_inv_ex linalg_ldl_factor
        linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve
        linalg_qr linalg_slogdet linalg_solve_ex linalg_svd linalg_svdvals linalg_vector_norm log_softmax
        lu_solve lu_unpack matmul max.dim mean.dtype min.dim mm permute_copy prod prod.dim_int renorm scatter
        scatter.value scatter_add scatter_reduce scatter_reduce.sum select_copy slice_copy slice_scatter slogdet
        softmax sort sort.stable split_with_sizes_copy squeeze_copy sum sum.dim svd:1 t_copy take_along_dim topk
        transpose_copy triangular_solve tril triu unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy
        view_as_real_copy view_copy""",
    "Found dtype {out} but expected {result}": """abs bitwise_not ceil clamp clamp_max clamp_min conj_physical
        floor frac hardshrink neg round round.decimals sgn sign softshrink trunc""",
    "expected scalar_type {result} but found {out}": "cummax cummin diff logcumsumexp",
    "expected scalar type {result} but found {out}": "linalg_solve_triangular",
    "expected scalar type '{result}' but got '{out}' for values output": "mode",
    "expected scalar type '{result}' but got '{out}' for indices output": "mode:1",
    "output values must be of same type as input": "kthvalue",
    "output indices must be of scalar type Long": "kthvalue:1",
    "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type {out_tensor} does "
    "not equal {result_tensor} (while checking arguments for median)": "median.dim nanmedian.dim",
    "Expected tensor for argument #1 'indices' to have scalar type Long; but got {out_tensor} instead (while checking "
    "arguments for median)": "median.dim:1 nanmedian.dim:1",
    "Expected the dtype for input and out to match, but got {result} for input's dtype and {out} for out's "
    "dtype.": "amax amin",
    "addmv input tensors must have the same dtype, but got {out}, {result}, and {result}": "mv",
    "self and mat2 must have the same dtype, but got {out} and {result}": "addbmm",
    "multi_dot(): expected out tensor to have dtype {result_c} but got {out_c}": "chain_matmul linalg_multi_dot",
    "result dtype {out} does not match input dtype {result}": "dot vdot",
    "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype "
    "{out}": "inner tensordot",
    "linalg.vecdot: Expected out of dtype{result} but found {out}": "linalg_vecdot",
    "linalg.matrix_norm expected out tensor dtype {result} but got: {out}": "linalg_matrix_norm",
    "torch.svd: Expected out tensor to have dtype {result} but got {out} instead": "svd svd:2",
    "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and result has dtype "
    "{out}": "ormqr",
    "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result_c} and hist "
    "{out_c}": "histc histogram",
    "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input {result_c} and "
    "bin_edges {out_c} for dimension 0": "histogram:1",
    "multinomial expects Long tensor out, got: {out}": "multinomial",
    "heaviside is not yet implemented for tensors with different dtypes.": "heaviside",
    "{title}: Expected out tensor to have scalar type Long but got scalar type{out}": "nonzero nonzero_static",
    "{title} does not support non-boolean outputs.": "signbit isposinf isneginf",
    "nansum: provided dtype must match dtype of result. Got {out} and {result}.": "nansum.dtype",
    "nan_to_num: dtype of out: {out} should be same as input: {result}": "nan_to_num",
    "torch.frexp() expects mantissa to have dtype {result_c} but got {out_c}": "frexp",
    "torch.frexp() expects exponent to have int dtype but got {out_c}": "frexp:1",
}
# The result must be convertible to the dtype of `out`; otherwise a RuntimeError with this text instead of the usual one
# is raised. Rows that are also listed above additionally require the same dtype.
CASTABLE = {
    "{title}: Expected result to be safely castable from {result} dtype, but got result with dtype {out}": """cholesky
        cholesky_inverse cholesky_solve matrix_power""",
    "tensorinv: Expected result to be safely castable from {result} dtype, but got result with dtype "
    "{out}": "linalg_tensorinv",
    "tensorsolve: Expected result to be safely castable from {result} dtype, but got result with dtype "
    "{out}": "linalg_tensorsolve",
    "torch.linalg.householder_product: Expected result to be safely castable from {result} dtype, but got result with "
    "dtype {out}": "linalg_householder_product orgqr",
    "torch.linalg.matrix_rank: Expected result to be safely castable from {result} dtype, but got result with dtype "
    "{out}": "linalg_matrix_rank",
    "linalg.pinv: Expected result to be safely castable from {result} dtype, but got result with dtype "
    "{out}": "linalg_pinv",
    "linalg.cond: Expected result to be safely castable from {result} dtype, but got result with dtype "
    "{out}": "linalg_cond",
    **{
        f"torch.{function}: Expected {part} to be safely castable from {{result}} dtype, but got {part} with dtype "
        "{out}": rows
        for function, part, rows in (
            ("geqrf", "a", "geqrf"),
            ("geqrf", "tau", "geqrf:1"),
            ("linalg.eig", "eigenvalues", "linalg_eig"),
            ("linalg.eig", "eigenvectors", "linalg_eig:1"),
            ("linalg.eigvals", "eigenvalues", "linalg_eigvals"),
            ("linalg.lstsq", "solution", "linalg_lstsq linalg_lstsq:1"),
            ("linalg.lstsq", "rank", "linalg_lstsq:2"),
            ("linalg.lstsq", "singular_values", "linalg_lstsq:3"),
        )
    },
    "ldexp can't be cast to the desired output type {out}": "ldexp",
    "diag: result type {result} can't be cast to the desired out= type {out}": "diag.vector",
    "mean.dtype_out(): input types can't be cast to the desired output type {out}": "mean",
    "logsumexp(): Expected floating point type for result tensor, but got: {out}": "logsumexp",
    "Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, but got "
    "false.  (Could this error message be improved?  If so, please report an enhancement request to "
    "PyTorch.)": "max min",
}
TRUTH = "{title} only supports bool tensor for result, got: {out}"  # or uint8
CAST = "result type {result} can't be cast to the desired output type {out}"


@cache
def _texts():
    """Return the two tables as ({row: text}, {row: text})."""
    return tuple({row: text for text, rows in table.items() for row in rows.split()} for table in (SAME, CASTABLE))


@cache
def name_of(op):
    """Return the registered name of a row ("max.dim"), or that of a variant of one."""
    return next((name for name, row in registry.items() if row is op), op.name)


def _wording(name, place, result, out):
    """Return the error text for an `out` with a dtype different from the result's, or None if that is allowed."""
    same, castable = _texts()
    if name in ("all", "any"):
        return None if out.name == "uint8" else TRUTH
    nth = f"{name}:{place}"
    wanted = same.get(nth) or same.get(name)
    if can_cast(result, out):
        return wanted
    return castable.get(nth) or castable.get(name) or wanted or CAST


def check(name, place, result, out):
    """Raise RuntimeError unless result `place` of a row may be written to an `out` of this different dtype."""
    text = _wording(name, place, result, out)
    if text is not None:
        words = {"title": name}
        for which, dtype in (("result", result), ("out", out)):
            words |= {which: dtype.type_name, f"{which}_c": c_name(dtype), f"{which}_tensor": _tensor_word(dtype)}
        raise RuntimeError(text.format(**words))


def _tensor_word(dtype):
    """Return PyTorch's name for a tensor with a dtype; some are named after their C++ class."""
    name = dtype.type_name
    return f"CPU{name}Type" if name == "Bool" or dtype.is_complex else f"torch.{name}Tensor"
