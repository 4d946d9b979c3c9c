"""Methods that modify tensors by Python functions, sizes, switches and constants match PyTorch's."""

import pytest
from oracle.answers import check, lines

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def names(library):
    """The names available to the expressions besides the library."""
    return {
        "x": library.arange(6.0),
        "m": library.arange(6.0).reshape(2, 3),
        "i": library.zeros(3, dtype=library.int64),
        "r": library.ones(3, requires_grad=True),
    }


CASES = """
x.resize_(2, 2)
x.resize_((2, 2))
x.resize_(torch.Size([3]))
m.t().resize_(2, 2)
x.resize_(8).shape
x.resize_(8)[:6]
x[2:].resize_(2, 2)
x[2:].resize_(2)
r.resize_(2)
r.resize_(3)
(r * 1).resize_(2)
x.resize_(-1)
x.resize_()
x.resize_(2.5)
x.resize_(0)
x.resize_as_(torch.zeros(2, 3))
torch.resize_as_(x, torch.zeros(2, 3))
x.resize_as_(3)
x.resize_(1, 2, 1, 3, memory_format=torch.channels_last).stride()
x.resize_(2, 3)._version
m.t().resize_(3, 2).is_contiguous()
x.apply_(lambda v: v * 2)
m.t().apply_(lambda v: v * 2)
i.apply_(lambda v: v + 1.5)
r.apply_(lambda v: v)
(r * 1).apply_(lambda v: v)
x.apply_(3)
x.apply_(lambda v: 'a')
x.apply_(lambda v: 1 / 0)
torch.zeros(0).apply_(lambda v: v)
x.map_(torch.ones(6), lambda a, b: a + b)
x.map_(torch.ones(1), lambda a, b: a + b)
x.map_(torch.ones(2), lambda a, b: a + b)
x.map_(i, lambda a, b: a + b)
x.map_(3, lambda a, b: a + b)
torch.ones(3).map_(r, lambda a, b: a + b)
m.map2_(torch.ones(3), torch.ones(2, 1), lambda a, b, c: a + b + c)
m.dim_order()
m.t().dim_order()
torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last).dim_order()
torch.zeros(2, 3, 4).permute(2, 0, 1).dim_order()
x.is_distributed()
torch.is_distributed(3)
torch.as_strided_(x, (2,), (2,))
torch.is_distributed(x)
torch.typename(x), torch.typename(3)
torch.get_default_device()
torch.set_default_device('cpu')
torch.set_default_device(None)
torch.e, torch.pi, torch.inf, torch.newaxis
torch.are_deterministic_algorithms_enabled()
torch.is_deterministic_algorithms_warn_only_enabled()
torch.get_deterministic_debug_mode()
torch.set_deterministic_debug_mode(5)
torch.set_deterministic_debug_mode('foo')
torch.set_deterministic_debug_mode(1.5)
torch.use_deterministic_algorithms(3)
[torch.use_deterministic_algorithms(True), torch.get_deterministic_debug_mode()]
[torch.use_deterministic_algorithms(True, warn_only=True), torch.get_deterministic_debug_mode()]
[torch.set_deterministic_debug_mode('default'), torch.are_deterministic_algorithms_enabled()]
torch.is_warn_always_enabled()
torch.set_warn_always(3)
[torch.set_warn_always(True), torch.is_warn_always_enabled(), torch.set_warn_always(False)]
torch.is_anomaly_enabled()
torch.is_anomaly_check_nan_enabled()
torch.set_anomaly_enabled(False)
"""


@pytest.mark.parametrize("expression", lines(CASES))
def test_gives_what_pytorch_gives(expression):
    check(expression, names)
