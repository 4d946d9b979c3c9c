"""Which algorithm computes a convolution."""

import numpy as np
import pytest

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.image import convolution, depthwise_convolution, patch_convolution, winograd_convolution
from cygrad._kernels.cpu.image.window_geometry import Geometry

has_loops = loop_table.has_loops(np.ones(1)) and loop_table.has_loop(winograd_convolution.RESULTS)
needs_loops = pytest.mark.skipif(not has_loops, reason="done by NumPy")


def same(kernel, side=16):
    return Geometry((side, side), (kernel, kernel), (side, side), (1, 1), (1, 1), (kernel // 2, kernel // 2))


CASES = [
    pytest.param("winograd", "f", (16, 16, 3, 3), same(3), 1, marks=needs_loops),
    pytest.param("patchwise", "f", (16, 16, 5, 5), same(5), 1, marks=needs_loops),
    pytest.param("patchwise", "f", (16, 8, 3, 3), same(3), 2, marks=needs_loops),
    ("depthwise", "d", (16, 1, 3, 3), same(3), 16),
    ("product", "f", (16, 16, 1, 1), same(1), 1),
    ("patches", "d", (16, 16, 3, 3), same(3), 1),
]


@pytest.mark.parametrize(("name", "dtype", "filters", "where", "groups"), CASES)
def test_algorithm(monkeypatch, name, dtype, filters, where, groups):
    x, w = np.ones((8, filters[1] * groups, 16, 16), dtype), np.ones(filters, dtype)
    assert convolution.algorithm_for(x, filters, where, groups) == name
    g = np.ones((8, filters[0], 16, 16), dtype)
    assert convolution.algorithm_for(g, filters, where, groups, is_spread=True) == name
    called = []
    modules = {"winograd": winograd_convolution, "patchwise": patch_convolution, "depthwise": depthwise_convolution}
    for other, module in modules.items():
        inner = module.correlate
        monkeypatch.setattr(
            module, "correlate", lambda *args, other=other, inner=inner: called.append(other) or inner(*args)
        )
    convolution.correlate(x, w, None, where, groups)
    assert called == ([name] if name in modules else [])
