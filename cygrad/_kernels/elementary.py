"""Elementary functions of arrays wherever they are, on the CPU by the loops of recorded ops, which may be our own.

NumPy's functions call the C library for each element where processors have no vectors of 512 bits (ufuncs.h).
"""

import numpy as np

from cygrad._kernels.loops import Ufunc


def _by_loop(ufunc):
    loop = Ufunc(ufunc)

    def function(*arrays):
        return loop(*arrays) if all(type(a) is np.ndarray for a in arrays) else ufunc(*arrays)

    return function


arctan2 = _by_loop(np.arctan2)
exp, log, log1p = _by_loop(np.exp), _by_loop(np.log), _by_loop(np.log1p)
