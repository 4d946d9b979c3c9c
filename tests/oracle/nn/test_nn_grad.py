"""`nn.grad` gives PyTorch's gradients of convolutions; `resize` matches PyTorch's."""

import numpy as np
import pytest
from oracle.answers import check, lines
from oracle.programs import compare

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("how", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}])
def test_gradients_of_convolutions(dims, how):
    def program(lib, say):
        def tensor(*shape):
            return lib.from_numpy(np.cos(np.arange(np.prod(shape)) * 1.3).reshape(shape)).requires_grad_()

        x, w = tensor(2, 4, *[6] * dims), tensor(6, 4 // how.get("groups", 1), *[2] * dims)
        g = lib.ones_like(getattr(lib.nn.functional, f"conv{dims}d")(x, w, **how))
        of_input = getattr(lib.nn.grad, f"conv{dims}d_input")(x.shape, w, g, **how)
        of_weight = getattr(lib.nn.grad, f"conv{dims}d_weight")(x, w.shape, g, **how)
        say(of_input)
        say(of_weight)
        say(lib.autograd.grad((of_input * of_weight.sum()).sum(), [x, w]))
        with lib.no_grad():
            say(getattr(lib.nn.grad, f"conv{dims}d_input")(x.shape, w, g, **how))

    compare(program)


RESIZED = """
x.resize(4)
x.resize(1, 4)
x.t().resize(4)
x.resize(2, 3)
x.resize(-1)
x.resize_as(torch.ones(4))
x.resize_as(torch.ones(5))
"""


@pytest.mark.parametrize("call", lines(RESIZED))
def test_resize(call):
    check(call, lambda lib: {"x": lib.arange(4.0).view(2, 2)})
