"""Fourier transforms by codes of their scaling."""

from cygrad._ops.signal import fourier
from cygrad.ops._aten.table import aten


def _scaling(code, forward):
    """Return NumPy's name for the scaling of a transform: 0 for none, 1 for 1 / sqrt(n), 2 for 1 / n."""
    return "ortho" if code == 1 else "backward" if (code == 0) == forward else "forward"


@aten
def _fft_c2c(self, dim, normalization, forward):
    """Transform complex numbers over dimensions, scaled by 1, 1 / sqrt(n) or 1 / n for the codes 0, 1 and 2."""
    return fourier.fft_c2c(self, tuple(d % self.ndim for d in dim), _scaling(normalization, forward), forward)


@aten
def _fft_r2c(self, dim, normalization, onesided):
    """Transform real numbers over dimensions; with `onesided` the last one keeps its first half."""
    return fourier.fft_r2c(self, tuple(d % self.ndim for d in dim), _scaling(normalization, True), onesided)


@aten
def _fft_c2r(self, dim, normalization, last_dim_size):
    """Transform the first half of the last dimension back to `last_dim_size` real numbers."""
    return fourier.fft_c2r(self, tuple(d % self.ndim for d in dim), _scaling(normalization, False), last_dim_size)
