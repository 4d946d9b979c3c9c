"""Samples for discrete Fourier transforms."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

NORMS = (None, "backward", "forward", "ortho")


def samples():
    x, z = grid(3, 4), complex_grid(3, 4)
    y, w = grid(2, 3, 5), complex_grid(2, 3, 5)

    def one(function, *arrays):
        """Samples along one dimension: lengths, dimensions, scales."""
        calls = [(a, n, dim, None) for a in arrays for n, dim in ((None, 0), (1, 0), (2, 1), (5, 0), (8, -1))]
        calls += [(a, None, -1, norm) for a in arrays for norm in NORMS]
        return [Sample(args, numpy=function) for args in [*calls, (arrays[0][0], None, -1, "ortho")]]

    def several(function, *arrays, default):
        calls = [(a, s, dim, None) for a in arrays for s, dim in ((None, default), ((4, 3), (0, 2)), ((2, 6), (-1, 1)))]
        calls += [(a, (-1, 4), (-2, -1), norm) for a in arrays[:1] for norm in NORMS]
        calls += [(a, None, (1,), None) for a in arrays]
        return [Sample(args, numpy=by_numpy(function)) for args in calls]

    def by_numpy(function):
        """A NumPy function that takes -1 for an unchanged length."""

        def call(a, s, dim, norm):
            if s is not None:
                s = [a.shape[d] if n == -1 else n for n, d in zip(s, dim)]
            return function(a, s, dim, norm)

        return call

    def hfftn(a, s, dim, norm):
        return np.fft.irfftn(np.conj(a), s, dim, SWAPPED[norm])

    def ihfftn(a, s, dim, norm):
        return np.conj(np.fft.rfftn(a, s, dim, SWAPPED[norm]))

    others = (integers(4), booleans(4))
    frequencies = [(n, d) for n in (1, 4, 5) for d in (1, 0.5)]
    shifts = [(a, dim) for a in (np.arange(5), grid(3, 4), z) for dim in (None, 0, (-1,))]
    return {
        "fft": [*one(np.fft.fft, x, z), *(Sample((a,), numpy=np.fft.fft) for a in others)],
        "ifft": [*one(np.fft.ifft, x, z), *(Sample((a,), numpy=np.fft.ifft) for a in others)],
        "rfft": [*one(np.fft.rfft, x), *(Sample((a,), numpy=np.fft.rfft) for a in others)],
        "irfft": [*one(np.fft.irfft, x, z), *(Sample((a,), numpy=np.fft.irfft) for a in others)],
        "hfft": one(np.fft.hfft, x, z),
        "ihfft": one(np.fft.ihfft, x),
        "fftn": several(np.fft.fftn, y, w, default=None) + [Sample((grid(),))],
        "ifftn": several(np.fft.ifftn, y, w, default=None),
        "rfftn": several(np.fft.rfftn, y, default=None),
        "irfftn": several(np.fft.irfftn, y, w, default=None),
        "hfftn": several(hfftn, y, w, default=None),
        "ihfftn": several(ihfftn, y, default=None),
        "fft2": several(np.fft.fft2, y, w, default=(-2, -1)),
        "ifft2": several(np.fft.ifft2, y, w, default=(-2, -1)),
        "rfft2": several(np.fft.rfft2, y, default=(-2, -1)),
        "irfft2": several(np.fft.irfft2, y, w, default=(-2, -1)),
        "hfft2": several(hfftn, y, w, default=(-2, -1)),
        "ihfft2": several(ihfftn, y, default=(-2, -1)),
        "fftfreq": [Sample(args, numpy=lambda n, d: np.fft.fftfreq(n, d).astype(np.float32)) for args in frequencies],
        "rfftfreq": [Sample(args, numpy=lambda n, d: np.fft.rfftfreq(n, d).astype(np.float32)) for args in frequencies],
        "fftshift": [Sample(args, numpy=np.fft.fftshift) for args in shifts],
        "ifftshift": [Sample(args, numpy=np.fft.ifftshift) for args in shifts],
        "fft_c2c": [
            Sample((z, (0, 1), "ortho", False)),
            Sample((x, (1,), "forward", True)),
            Sample((z, (), "ortho", True)),
        ],
        "fft_r2c": [Sample((x, (1,), "backward", onesided)) for onesided in (False, True)],
        "fft_c2r": [Sample((z, (0, 1), "backward", n)) for n in (6, 7)],
        "lengthened": [Sample((x, 1, 6)), Sample((z, 0, 4))],
    }


SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def errors():
    x, z, half = grid(3, 4), complex_grid(3, 4), grid(4).astype(np.float16)
    one = [(x, 0), (x, -1), (x, None, 5), (x, None, -1, "abc"), (grid(),), (half,), (3,), (np.zeros((3, 0)),)]
    several = [
        (x, (2, 2), (0,)),
        (x, (2, 2), (0, 0)),
        (x, None, (0, 7)),
        (x, (0, 2), (0, 1)),
        (x, (-2, 2), (0, 1)),
        (x, None, (0, 1), 3),
        (x, (2, 2), (0, 1), "no"),
        (half,),
        (np.zeros((3, 0)),),
        (1,),
    ]
    two = [(grid(3),), (x, None, None)]
    more = [(x, (2, 2, 2))]

    def calls(*cases):
        return [Sample(args, {}) for args in cases]

    frequencies = [(-1,), (2.5,), (4, "a")]
    return {
        **{name: calls(*one) for name in ("fft", "ifft", "irfft", "hfft")},
        **{name: calls(*one, (z,)) for name in ("rfft", "ihfft")},
        **{name: calls(*several, *more) for name in ("fftn", "ifftn", "irfftn", "hfftn")},
        **{name: calls(*several, *more, (z,)) for name in ("rfftn", "ihfftn")},
        **{name: calls(*several, *two) for name in ("fft2", "ifft2", "irfft2", "hfft2")},
        **{name: calls(*several, *two, (z,)) for name in ("rfft2", "ihfft2")},
        "fftfreq": calls(*frequencies),
        "rfftfreq": calls((2.5,), (4, "a")),
        "fftshift": calls((1,), (x, 5), (grid(),)),
        "ifftshift": calls((1,), (x, 5), (x, ())),
    }
