"""Functions of autograd's first days, which exporters and older libraries still name."""

from cygrad.autograd._functions.tensor import *  # noqa: F403
