"""Kernels made from the formulas of fused_formulas.h, against the CPU's loops made from the same formulas."""

import numpy as np
import pytest
from cuda_kernels import runs_kernels

from cygrad._kernels.cpu.base.loop_table import formulas
from cygrad._kernels.cpu.elementwise import fused_loops as cpu_loops
from cygrad._kernels.gpu.elementwise import fused_loops as gpu_loops

pytestmark = runs_kernels
FORMULAS = formulas()
SPECIAL = [0.0, -0.0, 3.0, -3.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 60.0, -60.0]
NUMBERS = {"softplus": (2, 1), "softplus_gradient": (2, 1), "elu": (0.7, 1.3, 2), "elu_gradient": (0.7, 1.3, 2)}
ANY_NUMBERS = 0.5, 2.0, 1.5


def operands(count, dtype):
    """All pairs of special values and as many random ones, for up to three operands."""
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    numbers = np.random.default_rng(0).normal(size=(3, x.size))
    made = [np.concatenate([part.ravel(), own]) for part, own in zip((x, y, numbers[2].reshape(x.shape)), numbers)]
    return [np.array(part, dtype) for part in made[:count]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(FORMULAS))
@pytest.mark.filterwarnings("ignore")
def test_same_as_on_the_cpu(name, dtype, cupy):
    given = operands(FORMULAS[name][0], dtype)
    numbers = NUMBERS.get(name, ANY_NUMBERS)
    found = gpu_loops.fused(name, *map(cupy.asarray, given), numbers=numbers)
    expected = cpu_loops.fused(name, *given, numbers=numbers)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(cupy.asnumpy(found), expected, *((3e-6, 1e-7) if dtype == "float32" else (1e-12, 1e-14)))


def test_every_stage_is_defined():
    for operands_of, stage, argument, formula in FORMULAS.values():
        assert 1 <= operands_of <= 3 and formula and (stage is None) == (argument is None)
        assert stage is None or f" {stage}(W x)" in gpu_loops._FUNCTIONS
