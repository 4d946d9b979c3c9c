"""LDL factors, for which CUDA's libraries have nothing that the factors of LAPACK could be made of."""


def ldl_factor(a, hermitian):
    """Raises RuntimeError."""
    raise _missing("linalg.ldl_factor")


def ldl_solve(ld, pivots, b, hermitian):
    """Raises RuntimeError."""
    raise _missing("linalg.ldl_solve")


def _missing(name):
    return RuntimeError(f"{name} can not be computed on a GPU\n  move the tensors first, as in x.cpu()")
