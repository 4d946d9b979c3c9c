"""NumPy's products, linear algebra and Fourier transforms on tensors; see functions.py."""

from cygrad._ops.numpy_api.operands import as_tensor, common, deliver, means, method_of, public, typed

# -- products and linear algebra --


@means("dot")
def dot(a, b, out=None):
    a, b = as_tensor(a), as_tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        result = a * b
    elif b.ndim <= 2:
        result = public("matmul")(a, b)
    else:
        result = public("tensordot")(a, b, ([a.ndim - 1], [b.ndim - 2]))
    return deliver(result, out)


@means("inner")
def inner(a, b, /):
    a, b = as_tensor(a), as_tensor(b)
    return a * b if a.ndim == 0 or b.ndim == 0 else public("tensordot")(a, b, ([a.ndim - 1], [b.ndim - 1]))


@means("outer")
def outer(a, b, out=None):
    return deliver(as_tensor(a).reshape(-1, 1) * as_tensor(b).reshape(1, -1), out)


@means("vdot")
def vdot(a, b, /):
    a, b = common(a, b)
    return public("vdot")(a.reshape(-1), b.reshape(-1))


@means("tensordot")
def tensordot(a, b, axes=2):
    if not isinstance(axes, int):
        axes = tuple([dims] if isinstance(dims, int) else list(dims) for dims in axes)
    return public("tensordot")(as_tensor(a), as_tensor(b), axes)


@means("einsum")
def einsum(subscripts, *operands, out=None, optimize=False, dtype=None, **options):
    if not isinstance(subscripts, str):
        raise TypeError("einsum() of tensors takes its subscripts as a string")
    return deliver(typed(public("einsum")(subscripts, *map(as_tensor, operands)), dtype), out)


@means("kron")
def kron(a, b):
    return public("kron")(as_tensor(a), as_tensor(b))


@means("cross")
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (public("movedim")(as_tensor(v), dim, -1) for v, dim in ((a, axisa), (b, axisb)))
    return public("movedim")(public("linalg.cross")(a, b), -1, axisc)


@means("linalg.norm")
def norm(x, ord=None, axis=None, keepdims=False):
    t = as_tensor(x)
    if ord is None:  # the norm of all elements, for any number of dimensions
        return public("norm")(t, 2, axis, keepdims)
    return public("linalg.norm")(t, ord, axis, keepdims)


@means("linalg.cond")
def cond(x, p=None):
    return public("linalg.cond")(as_tensor(x), p)


@means("linalg.matrix_power")
def matrix_power(a, n):
    return public("matrix_power")(as_tensor(a), n)


@means("linalg.solve")
def solve(a, b):
    return public("linalg.solve")(as_tensor(a), as_tensor(b))


@means("linalg.qr")
def qr(a, mode="reduced"):
    result = public("linalg.qr")(as_tensor(a), mode)
    return result[1] if mode == "r" else result


@means("linalg.svd")
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    return public("linalg.svd" if compute_uv else "linalg.svdvals")(
        as_tensor(a), *((full_matrices,) if compute_uv else ())
    )


for _name in ("det", "slogdet", "inv", "pinv", "eig", "eigvals"):
    means(f"linalg.{_name}")(method_of(f"linalg.{_name}"))


def hermitian(name):
    def function(a, UPLO="L"):
        return public(name)(as_tensor(a), UPLO)

    return function


means("linalg.eigh")(hermitian("linalg.eigh"))
means("linalg.eigvalsh")(hermitian("linalg.eigvalsh"))


@means("linalg.cholesky")
def cholesky(a, /, *, upper=False):
    return public("linalg.cholesky")(as_tensor(a), upper=upper)


@means("linalg.multi_dot")
def multi_dot(arrays, *, out=None):
    return deliver(public("linalg.multi_dot")(list(map(as_tensor, arrays))), out)


@means("linalg.matmul")
def matmul(x1, x2, /):
    return public("matmul")(as_tensor(x1), as_tensor(x2))


@means("linalg.outer")
def outer_of_vectors(x1, x2, /):
    return outer(x1, x2)


@means("linalg.tensordot")
def tensordot_of(x1, x2, /, *, axes=2):
    return tensordot(x1, x2, axes)


@means("linalg.vecdot")
def vecdot(x1, x2, /, *, axis=-1):
    a, b = common(x1, x2)
    return (public("conj_physical")(a) * b).sum(axis)


@means("linalg.cross")
def cross_of(x1, x2, /, *, axis=-1):
    return cross(x1, x2, axis=axis)


@means("linalg.diagonal")
def diagonal(x, /, *, offset=0):
    return public("diagonal")(as_tensor(x), offset, -2, -1)


@means("linalg.trace")
def trace(x, /, *, offset=0, dtype=None):
    return typed(diagonal(x, offset=offset), dtype).sum(-1)


@means("linalg.vector_norm")
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    return public("linalg.vector_norm")(as_tensor(x), ord, axis, keepdims)


@means("linalg.matrix_norm")
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    return public("linalg.matrix_norm")(as_tensor(x), ord, (-2, -1), keepdims)


@means("linalg.svdvals")
def svdvals(x, /):
    return public("linalg.svdvals")(as_tensor(x))


@means("linalg.tensorinv")
def tensorinv(a, ind=2):
    return public("linalg.tensorinv")(as_tensor(a), ind)


@means("linalg.tensorsolve")
def tensorsolve(a, b, axes=None):
    return public("linalg.tensorsolve")(as_tensor(a), as_tensor(b), axes)


@means("vander")
def vander(x, N=None, increasing=False):
    return public("vander")(as_tensor(x), N, increasing)


@means("cov")
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    t = observed(m, y, rowvar)
    weights = [None if w is None else as_tensor(w) for w in (fweights, aweights)]
    correction = (0 if bias else 1) if ddof is None else ddof
    return typed(public("cov")(t, correction=correction, fweights=weights[0], aweights=weights[1]), dtype)


@means("corrcoef")
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    return typed(public("corrcoef")(observed(x, y, rowvar)), dtype)


def observed(m, y, rowvar):
    """Arrange variables in rows and observations in columns."""
    parts = [as_tensor(v) for v in (m, y) if v is not None]
    if y is None and parts[0].ndim < 2:
        return parts[0]
    parts = [v.unsqueeze(0) if v.ndim < 2 else v if rowvar else v.T for v in parts]
    return public("cat")(parts)


@means("convolve")
def convolve(a, v, mode="full"):
    a, v = common(a, v)
    if len(a) < len(v):
        a, v = v, a
    n, k = len(a), len(v)
    padded = public("nn.functional.pad")(a, (k - 1, k - 1))
    full = padded.unfold(0, k, 1) @ v.flip(0)
    if mode == "full":
        return full
    first, length = {"same": ((k - 1) // 2, n), "valid": (k - 1, n - k + 1)}[mode]
    return full.narrow(0, first, length)


@means("correlate")
def correlate(a, v, mode="valid"):
    a, v = common(a, v)
    return convolve(a, public("conj_physical")(v).flip(0), mode)


@means("polyval")
def polyval(p, x):
    x = as_tensor(x)
    result = x * 0
    for coefficient in p:
        result = result * x + coefficient
    return result


@means("interp")
def interp(x, xp, fp, left=None, right=None, period=None):
    if period is not None:
        raise TypeError("interp() of tensors takes no `period`")
    x, xp, fp = as_tensor(x), as_tensor(xp), as_tensor(fp)
    place = public("searchsorted")(xp.detach().contiguous(), x.detach().contiguous(), right=True)
    place = place.clamp(1, len(xp) - 1)
    below, above = place - 1, place
    slope = (fp[above] - fp[below]) / (xp[above] - xp[below])
    result = fp[below] + slope * (x - xp[below])
    result = public("where")(x < xp[0], fp[0] if left is None else left, result)
    return public("where")(x > xp[-1], fp[-1] if right is None else right, result)


# -- Fourier transforms --


def transform(name):
    def function(a, n=None, axis=-1, norm=None, out=None):
        return deliver(public(name)(as_tensor(a), n, axis, norm), out)

    return function


def transforms(name, axes):
    def function(a, s=None, axes=axes, norm=None, out=None):
        return deliver(public(name)(as_tensor(a), s, axes, norm), out)

    return function


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    means(f"fft.{_name}")(transform(f"fft.{_name}"))
for _name in ("fft", "ifft", "rfft", "irfft"):
    means(f"fft.{_name}2")(transforms(f"fft.{_name}2", (-2, -1)))
    means(f"fft.{_name}n")(transforms(f"fft.{_name}n", None))
for _name in ("fftshift", "ifftshift"):
    means(f"fft.{_name}")(method_of(f"fft.{_name}"))
