"""Holds the stand-in's modules for code that needs to refer to them."""

from types import SimpleNamespace

namespace = SimpleNamespace(cupy=None, ndarray=None)
