"""Samples for complex numbers: parts, conjugates, angles."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers, positive


def samples():
    x, p, z, i = grid(2, 3), positive(2, 3), complex_grid(2, 3), integers(2, 3)
    empty = np.zeros((2, 0), complex)

    def unary(function, *arrays, **more):
        return [Sample((a,), numpy=function, **more) for a in arrays]

    def adjoint(a):
        return np.conj(np.swapaxes(a, -1, -2))

    edges = np.array([0.0, -0.0, -1.0, np.nan, np.inf])
    return {
        "view_as_real": unary(lambda a: np.stack([a.real, a.imag], -1), z, complex_grid()),
        "view_as_complex": unary(lambda a: a[..., 0] + 1j * a[..., 1], grid(3, 2), grid(2), any_layout=False),
        "real": unary(np.real, z, x, complex_grid(), empty),
        "imag": unary(np.imag, z, complex_grid(), empty),
        "conj": unary(np.conj, z, complex_grid(), empty),
        "neg_view": unary(np.negative, x, grid(), np.zeros((2, 0))),
        "_neg_view": unary(np.negative, x, i, grid(), np.zeros((2, 0))),
        "resolve_conj": unary(np.array, z, x, i),
        "resolve_neg": unary(np.array, z, x, i),
        "is_conj": [Sample((x,), numpy=lambda a: False)],
        "is_neg": [Sample((x,), numpy=lambda a: False)],
        "adjoint": unary(adjoint, z, complex_grid(2, 3, 2), x, grid(2, 3, 2), np.zeros((2, 0))),
        "angle": [
            *unary(np.angle, z, x, i, booleans(3), complex_grid(), np.asarray(-0.7), empty),
            *unary(None, edges, np.array([0j, 1, -1j, -2]), smooth=False),
        ],
        "complex": [
            Sample((a, b), numpy=lambda a, b: a + 1j * b)
            for a, b in ((x, p), (x, grid(3)), (grid(), x), (np.zeros((2, 0)), np.zeros((2, 0))))
        ],
        "polar": [
            Sample((a, b), numpy=lambda a, b: a * np.exp(1j * b))
            for a, b in ((p, x), (p, grid(3)), (positive(), x), (np.zeros((2, 0)), np.zeros((2, 0))))
        ]
        # PyTorch's first gradient has the wrong sign for negative magnitudes and is 0 for magnitude 0
        + [Sample((a, x), numpy=lambda a, b: a * np.exp(1j * b), oracle_grad=False) for a in (x, np.zeros((2, 3)))],
    }


def errors():
    x, z, i = grid(2, 3), complex_grid(2, 2), integers(2, 3)
    single = x.astype(np.float32)

    def calls(*cases):
        return [Sample(args, {}) for args in cases]

    return {
        "view_as_real": calls((x,), (1,), (i,)),
        "view_as_complex": calls((x,), (1,), (i,), (z,), (grid(),), (grid(0),)),
        "real": calls((1,), (None,)),
        "imag": calls((x,), (i,), ("a",)),
        "conj": calls((1j,)),
        "resolve_conj": calls((1j,)),
        "resolve_neg": calls((1j,)),
        "_neg_view": calls((1j,)),
        "is_conj": calls((1j,)),
        "is_neg": calls((1j,)),
        "adjoint": calls((grid(3),), (1j,)),
        "angle": calls(("a",), (1j,)),
        "complex": calls((x, 1.0), (1.0, x), (x, i), (i, i), (x, single), (z, z), (x, grid(4))),
        "polar": calls((x, 1.0), (1.0, x), (x, i), (i, i), (x, single), (z, z), (x, grid(4))),
    }
