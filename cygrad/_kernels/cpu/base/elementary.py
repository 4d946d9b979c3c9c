"""Elementary functions that use the loops of recorded ops, which may be our own.

NumPy's functions call the C library for each element on processors without 512-bit vectors (ufuncs.h).
Names in capitals are loops for arrays in memory; functions take arrays on any device.
"""

import numpy as np

from cygrad._kernels.cpu.base.ufunc import Ufunc

ADD, SUBTRACT, MULTIPLY, DIVIDE = Ufunc(np.add), Ufunc(np.subtract), Ufunc(np.multiply), Ufunc(np.divide)
COS, SIN, EXP2, LOG10 = Ufunc(np.cos), Ufunc(np.sin), Ufunc(np.exp2), Ufunc(np.log10)


def _by_loop(ufunc):
    loop = Ufunc(ufunc)

    def function(*arrays):
        return loop(*arrays) if all(type(a) is np.ndarray for a in arrays) else ufunc(*arrays)

    return function


arctan2 = _by_loop(np.arctan2)
exp, log, log1p = _by_loop(np.exp), _by_loop(np.log), _by_loop(np.log1p)
