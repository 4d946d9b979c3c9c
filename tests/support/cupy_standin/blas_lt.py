"""cuBLASLt: what its functions in C do, as far as a product plus a bias needs them."""

import itertools

import numpy as np

from . import blas, state

TYPES = {0: "f", 1: "d", 2: "e", 14: "E"}  # by cudaDataType
SIZES = {3: 4, 4: 4, 7: 4, 8: 8}  # bytes of the attributes of a product
INVALID_VALUE, NOT_SUPPORTED = 7, 15


class Library:
    """The shared library, which takes any stream, capturing or not."""

    numbers = itertools.count(1)
    layouts: dict = {}  # (type, rows, columns, leading dimension) by number
    products: dict = {}  # (arithmetic, type of factors, attributes) by number
    refuses = False  # whether there is no algorithm for any product

    @classmethod
    def cublasLtMatrixLayoutCreate(cls, layout, code, rows, columns, leading):
        if code not in TYPES or leading < rows:
            return INVALID_VALUE
        layout._obj.value = next(cls.numbers)
        cls.layouts[layout._obj.value] = code, rows, columns, leading
        return 0

    @classmethod
    def cublasLtMatrixLayoutDestroy(cls, layout):
        del cls.layouts[layout.value]
        return 0

    @classmethod
    def cublasLtMatmulDescCreate(cls, product, how, factors):
        product._obj.value = next(cls.numbers)
        cls.products[product._obj.value] = how, factors, {}
        return 0

    @classmethod
    def cublasLtMatmulDescSetAttribute(cls, product, attribute, value, size):
        if SIZES.get(attribute) != size:
            return INVALID_VALUE
        cls.products[product.value][2][attribute] = value._obj.value
        return 0

    @classmethod
    def cublasLtMatmul(cls, handle, product, alpha, A, Adesc, B, Bdesc, beta, C, Cdesc, D, Ddesc, algo, workspace,
                       size, stream):  # fmt: skip
        how, factors, attributes = cls.products[product.value]
        first, second, _, made = (cls.layouts[layout.value] for layout in (Adesc, Bdesc, Cdesc, Ddesc))
        assert attributes[7] == 4 and attributes[8] % np.dtype(blas.TYPES[made[0]]).itemsize == 0
        assert C == D and Cdesc is Ddesc and algo is None and workspace % 256 == 0
        assert stream == (state.stream().ptr if state.stream() else 0), "the stream of this thread"
        assert first[0] == second[0] == made[0], "one type"
        computed, held = blas.COMPUTED_IN[how], blas.TYPES[factors]
        assert np.dtype(computed) == np.dtype(held)
        one, zero = blas.scalar(alpha, held), blas.scalar(beta, held)
        bias, turned = attributes[8], (attributes[3], attributes[4])
        assert (one, zero) == (1, 0)
        if cls.refuses:
            return NOT_SUPPORTED
        inner = first[1] if turned[0] else first[2]
        if inner != (second[2] if turned[1] else second[1]):
            return INVALID_VALUE

        def work():
            left, right, result = (
                blas.matrix(address, blas.TYPES[code], *rest)[0]
                for address, (code, *rest) in ((A, first), (B, second), (D, made))
            )
            left, right = (blas.transposed(m.astype(computed), t) for m, t in zip((left, right), turned))
            added = blas.matrix(bias, blas.TYPES[made[0]], len(result), 1, len(result))[0].astype(computed)
            result[...] = one * (left @ right) + added

        state.launch("cublasLtMatmul", work, [])
        return 0
