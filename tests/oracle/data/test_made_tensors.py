"""`testing.make_tensor` draws PyTorch's numbers."""

import pytest

import cygrad

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

DTYPES = "float32 float64 float16 bfloat16 complex64 complex128 int64 int32 uint8 bool float8_e5m2".split()


@pytest.mark.parametrize("options", ["", "low=-1, high=2", "low=-1e300, high=1e300", "noncontiguous=True"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_numbers(dtype, options):
    found = []
    for lib in (torch, cygrad):
        lib.manual_seed(3)
        program = f"make_tensor(5, 4, dtype=lib.{dtype}, device='cpu', {options})"
        x = eval(program, {"make_tensor": lib.testing.make_tensor, "lib": lib})
        found.append((x.to(lib.complex128 if x.is_complex() else lib.float64).tolist(), x.stride()))
    theirs, ours = found
    assert ours == theirs
