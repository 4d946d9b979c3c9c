"""Samples for short-time Fourier transforms and window functions."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers

WINDOWS = ("bartlett", "blackman", "hamming", "hann", "kaiser")


def samples():
    x, z = grid(2, 20), complex_grid(12)
    window = np.hanning(10)[1:-1]
    given = {"window": window, "return_complex": True}

    def stft(*cases):
        return [Sample(args, kwargs) for args, kwargs in cases]

    spectrum = complex_grid(2, 5, 7)
    lengths = [((n,), {}) for n in (0, 1, 2, 5, 8)]
    periodic = [*lengths, ((6, False), {}), ((3,), {"periodic": False}), ((), {"window_length": 4})]
    symmetric = [*lengths, ((6,), {"sym": False}), ((1,), {"sym": False})]

    def made(cases, *more):
        return [Sample(args, kwargs, grad=False) for args, kwargs in (*cases, *more)]

    def spectra(a, window, size, hop, norm):
        sections = np.lib.stride_tricks.sliding_window_view(a, size, -1)[..., ::hop, :]
        return np.fft.rfft(sections * window, norm=norm)

    return {
        "stft": stft(
            ((x, 8), given),
            ((x[0], 8), {**given, "normalized": True}),
            ((x, 8, 3), {**given, "onesided": False}),
            ((x, 8, 3, 4), {"window": window[:4], "return_complex": True, "center": False}),
            ((x, 7, 7), {"window": window[:7], "return_complex": True, "pad_mode": "constant"}),
            ((x, 8, 2, 5), {"window": window[:5], "return_complex": True, "center": False, "align_to_window": True}),
            ((z, 8), {"window": window}),
            ((x, 8), {"window": window + 0.5j}),
        ),
        "windowed_spectra": [
            Sample((a, window[:size], size, hop, norm), numpy=spectra)
            for a, size, hop, norm in ((x, 8, 2, "backward"), (x[0], 7, 3, "ortho"), (x, 8, 9, "backward"))
        ],
        "istft": stft(
            ((spectrum, 8), {"window": window}),
            ((spectrum[0], 8, 3), {"window": window, "normalized": True}),
            ((spectrum, 8), {"window": window, "length": 9}),
            ((spectrum, 8, 2, 6), {"window": window[:6]}),
            ((spectrum, 8), {"window": window, "center": False}),
            ((complex_grid(8, 7), 8), {"window": window, "onesided": False}),
            ((complex_grid(8, 7), 8), {"window": window, "return_complex": True}),
        ),
        **{f"{name}_window": made(periodic) for name in WINDOWS},
        **{name: made(symmetric) for name in (*WINDOWS, "cosine", "nuttall")},
        "exponential": made(symmetric, ((5,), {"tau": 2.0, "center": 1.0, "sym": False})),
        "gaussian": made(symmetric, ((5,), {"std": 2.0})),
        "general_hamming": made(symmetric, ((5,), {"alpha": 0.3})),
        "general_cosine": made([(args, {"a": [0.46, 0.23, 0.31], **kwargs}) for args, kwargs in symmetric]),
    }


def errors():
    x, z, i = grid(2, 20), complex_grid(12), integers(16)
    w = np.ones(8)
    spectrum = complex_grid(5, 7)
    given = {"window": w, "return_complex": True}

    def calls(*cases):
        return [Sample(args, kwargs) for args, kwargs in cases]

    package = [((-1,), {}), ((2.5,), {})]
    module = [((-1,), {})]
    return {
        "stft": calls(
            ((x, 8), {"window": w}),
            ((x, 8), {"window": w[:4], "return_complex": True}),
            ((x, 8, 2, 4), given),
            ((x, 0), given),
            ((x, -1), given),
            ((x, 60), given),
            ((x, 30), {**given, "center": False}),
            ((x, 8, 0), given),
            ((x, 8, 2, 0), given),
            ((x, 8, 2, 9), given),
            ((x[None], 8), given),
            ((i, 8), given),
            ((z, 8), {"window": w, "onesided": True}),
            ((x, 8), {**given, "pad_mode": "zzz"}),
            ((x, 8), {**given, "align_to_window": True}),
        ),
        "istft": calls(
            ((spectrum, 8), {"window": w, "return_complex": True}),
            ((spectrum, 8), {"window": w, "onesided": False}),
            ((spectrum, 6), {"window": w[:6]}),
            ((x, 8), {"window": w}),
            ((spectrum, 8), {"window": w[:4]}),
            ((spectrum, 8, 0), {"window": w}),
            ((spectrum, 8, 9), {"window": w}),
            ((spectrum, 8, 2, 9), {"window": w}),
            ((spectrum[0], 8), {"window": w}),
            ((spectrum[None, None], 8), {"window": w}),
            ((spectrum[:, :0], 8), {"window": w}),
            ((spectrum, 8), {"window": 0 * w}),
            ((spectrum, 8), {"window": w + 0j}),
            ((spectrum, 8), {"window": w, "length": 0}),
        ),
        **{f"{name}_window": calls(*package) for name in WINDOWS},
        **{name: calls(*module) for name in (*WINDOWS, "cosine", "nuttall")},
        "exponential": calls(*module, ((5,), {"tau": -1.0}), ((5,), {"center": 1.0})),
        "gaussian": calls(*module, ((5,), {"std": 0})),
        "kaiser": calls(*module, ((5,), {"beta": -1.0})),
        "general_hamming": calls(*module),
        "general_cosine": calls(((-1,), {"a": [1]}), ((5,), {"a": 0.5}), ((5,), {"a": []})),
    }
