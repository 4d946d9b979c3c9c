"""NumPy's products, linear algebra and Fourier transforms on tensors; see numpy_functions.py."""

from cygrad._ops.numpy_operands import as_tensor, common, deliver, means, method_of, public, typed

# -- products and linear algebra ---------------------------------------------------------------------------


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
    if ord is None:  # of all numbers that there are, however they are arranged
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


# -- Fourier transforms ------------------------------------------------------------------------------------


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
