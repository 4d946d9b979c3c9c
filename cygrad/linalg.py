"""Linear algebra on matrices and stacks of matrices, under the names of PyTorch's `torch.linalg`."""

from cygrad import det, matmul, matrix_power
from cygrad._ops.linalg.cholesky import linalg_cholesky as cholesky
from cygrad._ops.linalg.cholesky import linalg_cholesky_ex as cholesky_ex
from cygrad._ops.linalg.common import LinAlgError
from cygrad._ops.linalg.determinants import linalg_slogdet as slogdet
from cygrad._ops.linalg.eigen import linalg_eig as eig
from cygrad._ops.linalg.eigen import linalg_eigh as eigh
from cygrad._ops.linalg.eigen import linalg_eigvals as eigvals
from cygrad._ops.linalg.eigen import linalg_eigvalsh as eigvalsh
from cygrad._ops.linalg.ldl import linalg_ldl_factor as ldl_factor
from cygrad._ops.linalg.ldl import linalg_ldl_factor_ex as ldl_factor_ex
from cygrad._ops.linalg.ldl import linalg_ldl_solve as ldl_solve
from cygrad._ops.linalg.least_squares import linalg_lstsq as lstsq
from cygrad._ops.linalg.lu import linalg_lu as lu
from cygrad._ops.linalg.lu import linalg_lu_factor as lu_factor
from cygrad._ops.linalg.lu import linalg_lu_factor_ex as lu_factor_ex
from cygrad._ops.linalg.lu import linalg_lu_solve as lu_solve
from cygrad._ops.linalg.matrix_functions import linalg_matrix_exp as matrix_exp
from cygrad._ops.linalg.matrix_functions import linalg_multi_dot as multi_dot
from cygrad._ops.linalg.matrix_norms import linalg_cond as cond
from cygrad._ops.linalg.matrix_norms import linalg_matrix_norm as matrix_norm
from cygrad._ops.linalg.matrix_norms import linalg_norm as norm
from cygrad._ops.linalg.qr import linalg_householder_product as householder_product
from cygrad._ops.linalg.qr import linalg_qr as qr
from cygrad._ops.linalg.solve import linalg_inv as inv
from cygrad._ops.linalg.solve import linalg_inv_ex as inv_ex
from cygrad._ops.linalg.solve import linalg_solve as solve
from cygrad._ops.linalg.solve import linalg_solve_ex as solve_ex
from cygrad._ops.linalg.solve import linalg_tensorinv as tensorinv
from cygrad._ops.linalg.solve import linalg_tensorsolve as tensorsolve
from cygrad._ops.linalg.svd import linalg_matrix_rank as matrix_rank
from cygrad._ops.linalg.svd import linalg_pinv as pinv
from cygrad._ops.linalg.svd import linalg_svd as svd
from cygrad._ops.linalg.svd import linalg_svdvals as svdvals
from cygrad._ops.linalg.triangular import linalg_solve_triangular as solve_triangular
from cygrad._ops.linalg.vandermonde import linalg_vander as vander
from cygrad._ops.linalg.vector_norms import linalg_vector_norm as vector_norm
from cygrad._ops.linalg.vector_products import linalg_vecdot as vecdot
from cygrad._ops.nn.distances import linalg_cross as cross
from cygrad._ops.shape.diagonals import linalg_diagonal as diagonal

__all__ = [name for name in dir() if not name.startswith("_")]
