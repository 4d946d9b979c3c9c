"""The modules that stand for CuPy's, known here to whatever needs them."""

from types import SimpleNamespace

namespace = SimpleNamespace(cupy=None, ndarray=None)
