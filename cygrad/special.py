"""Special functions under PyTorch's names; those of gamma, Bessel and error functions need SciPy."""

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
    logsumexp,
    polygamma,
    round,
    sinc,
    softmax,
    xlogy,
)
from cygrad import igamma as gammainc
from cygrad import igammac as gammaincc
from cygrad import lgamma as gammaln
from cygrad import mvlgamma as multigammaln
from cygrad import sigmoid as expit
from cygrad._ops.special_functions import erfcx, i0e, i1, i1e, log_ndtr, ndtri

psi = digamma

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
