"""Special functions under PyTorch's names; gamma, Bessel and error functions need SciPy."""

from cygrad import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    polygamma,
    round,
    sinc,
    softmax,
    xlogy,
)
from cygrad import digamma as psi
from cygrad import igamma as gammainc
from cygrad import igammac as gammaincc
from cygrad import lgamma as gammaln
from cygrad import mvlgamma as multigammaln
from cygrad import sigmoid as expit
from cygrad._ops.elementwise.bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0e,
    i1,
    i1e,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from cygrad._ops.elementwise.gamma_functions import zeta
from cygrad._ops.elementwise.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from cygrad._ops.elementwise.special_functions import entr, erfcx, log_ndtr, ndtr, ndtri, xlog1py

__all__ = [name for name in dir() if not name.startswith("_")]
