"""The texts of many tensors, as observed in PyTorch 2.13; see also oracle/ops/test_repr.py."""

import math

import numpy as np
import pytest
from printing import sealed_options, text_of  # noqa: F401 (a fixture)

import cygrad as torch
from cygrad._core.tensor.tensor_str import printoptions

inf, nan = math.inf, math.nan

# --- Texts -------------------------------------------------------------------------------------

# fmt: off
ARRAYS = [
    ("a float, whole", np.float32(3), "tensor(3.)"),
    ("a float", np.float32(1.5), "tensor(1.5000)"),
    ("a negative zero", np.float32(-0.0), "tensor(-0.)"),
    ("a large float", np.float32(1e10), "tensor(1.0000e+10)"),
    ("a small float32", np.float32(1e-4), "tensor(1.0000e-04)"),
    ("the same in float64", np.float64(1e-4), "tensor(0.0001, dtype=torch.float64)"),
    ("an int", np.int64(-3), "tensor(-3)"),
    ("a bool", np.True_, "tensor(True)"),
    ("a complex", np.complex64(1.5 - 2j), "tensor(1.5000-2.j)"),
    ("whole floats", np.array([1, -2, 30], np.float32), "tensor([ 1., -2., 30.])"),
    ("floats", np.array([0.1, -2.25, 30], np.float32), "tensor([ 0.1000, -2.2500, 30.0000])"),
    (
        "float16",
        np.array([0.1, 65504], np.float16),
        "tensor([9.9976e-02, 6.5504e+04], dtype=torch.float16)",
    ),
    ("float64", np.array([0.1, 2]), "tensor([0.1000, 2.0000], dtype=torch.float64)"),
    ("all zeros", np.zeros(3, np.float32), "tensor([0., 0., 0.])"),
    (
        "only nan and inf, unaligned",
        np.array([nan, 0, -inf, -0.0], np.float32),
        "tensor([nan, 0., -inf, -0.])",
    ),
    ("nan beside whole floats", np.array([1, -inf, nan], np.float32), "tensor([1., -inf, nan])"),
    (
        "nan beside floats",
        np.array([1.5, -inf, nan], np.float32),
        "tensor([1.5000,   -inf,    nan])",
    ),
    (
        "nan beside scientific",
        np.array([1e10, nan, -inf, 0], np.float32),
        "tensor([1.0000e+10,        nan,       -inf, 0.0000e+00])",
    ),
    ("ratio of 1000", np.array([1000, 1], np.float32), "tensor([1000.,    1.])"),
    ("ratio above 1000", np.array([1001, 1], np.float32), "tensor([1.0010e+03, 1.0000e+00])"),
    ("up to 1e8", np.array([1e8]), "tensor([100000000.], dtype=torch.float64)"),
    ("above 1e8", np.array([1e8 + 1]), "tensor([1.0000e+08], dtype=torch.float64)"),
    (
        "tiny, not whole",
        np.array([0.00009, 0.01]),
        "tensor([9.0000e-05, 1.0000e-02], dtype=torch.float64)",
    ),
    (
        "three-digit exponents",
        np.array([1e-300, 1.5, -1e300]),
        "tensor([ 1.0000e-300,   1.5000e+00, -1.0000e+300], dtype=torch.float64)",
    ),
    ("subnormal", np.array([5e-324]), "tensor([4.9407e-324], dtype=torch.float64)"),
    (
        "rounds to a wider text",
        np.array([99999.99999, -1234.5]),
        "tensor([100000.0000,  -1234.5000], dtype=torch.float64)",
    ),
    (
        "bools",
        np.array([[True, False], [False, False]]),
        """\
tensor([[ True, False],
        [False, False]])""",
    ),
    ("all true", np.array([True, True]), "tensor([True, True])"),
    ("uint8", np.array([1, 255], np.uint8), "tensor([  1, 255], dtype=torch.uint8)"),
    ("int8", np.array([1, -128], np.int8), "tensor([   1, -128], dtype=torch.int8)"),
    ("int16", np.array([1, -300], np.int16), "tensor([   1, -300], dtype=torch.int16)"),
    ("int32", np.array([1, 70000], np.int32), "tensor([    1, 70000], dtype=torch.int32)"),
    ("int64", np.array([1, -(2**63)]), "tensor([                   1, -9223372036854775808])"),
    ("complex, whole", np.array([1 + 2j, 100 - 3j], np.complex64), "tensor([  1.+2.j, 100.-3.j])"),
    (
        "complex, parts in notations of their own",
        np.array([1.5 + 1e10j, -30 + 1j], np.complex64),
        "tensor([  1.5000+1.0000e+10j, -30.0000+1.0000e+00j])",
    ),
    (
        "complex nan and inf",
        np.array([complex(1.5, nan), complex(-inf, -0.0), 2j], np.complex64),
        "tensor([1.5000+nanj,   -inf-0.j, 0.0000+2.j])",
    ),
    ("complex128", np.array([0.5j]), "tensor([0.+0.5000j], dtype=torch.complex128)"),
    ("empty", np.zeros(0, np.float32), "tensor([])"),
    ("empty, of two dims", np.zeros((0, 3), np.float32), "tensor([], size=(0, 3))"),
    ("empty int64 shows its dtype", np.zeros(0, np.int64), "tensor([], dtype=torch.int64)"),
    ("empty bool", np.zeros((2, 0), bool), "tensor([], size=(2, 0), dtype=torch.bool)"),
    (
        "empty complex64 shows its dtype",
        np.zeros(0, np.complex64),
        "tensor([], dtype=torch.complex64)",
    ),
    (
        "two dims",
        np.arange(6, dtype=np.float32).reshape(2, 3),
        """\
tensor([[0., 1., 2.],
        [3., 4., 5.]])""",
    ),
    (
        "three dims",
        np.arange(8).reshape(2, 2, 2),
        """\
tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]])""",
    ),
    (
        "five dims",
        np.arange(8).reshape(2, 1, 2, 1, 2),
        """\
tensor([[[[[0, 1]],

          [[2, 3]]]],



        [[[[4, 5]],

          [[6, 7]]]]])""",
    ),
    (
        "long line",
        np.arange(25, dtype=np.float32),
        """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24.])""",
    ),
    (
        "long rows",
        np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 12),
        """\
tensor([[-1.0000, -0.9130, -0.8261, -0.7391, -0.6522, -0.5652, -0.4783, -0.3913,
         -0.3043, -0.2174, -0.1304, -0.0435],
        [ 0.0435,  0.1304,  0.2174,  0.3043,  0.3913,  0.4783,  0.5652,  0.6522,
          0.7391,  0.8261,  0.9130,  1.0000]])""",
    ),
    (
        "long complex line",
        np.arange(9) * (0.5 - 100j),
        """\
tensor([0.0000+0.j, 0.5000-100.j, 1.0000-200.j, 1.5000-300.j, 2.0000-400.j,
        2.5000-500.j, 3.0000-600.j, 3.5000-700.j, 4.0000-800.j],
       dtype=torch.complex128)""",
    ),
    (
        "1000 elements are shown, 1001 are summarised",
        np.arange(1001),
        "tensor([   0,    1,    2,  ...,  998,  999, 1000])",
    ),
    (
        "summarised, by the width of what is shown",
        np.where(np.arange(2000) == 1000, 1e20, np.arange(2000) / 2),
        """\
tensor([0.0000e+00, 5.0000e-01, 1.0000e+00,  ..., 9.9850e+02, 9.9900e+02,
        9.9950e+02], dtype=torch.float64)""",
    ),
    (
        "summarised rows",
        np.arange(40000, dtype=np.float32).reshape(200, 200),
        """\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9700e+02, 1.9800e+02,
         1.9900e+02],
        [2.0000e+02, 2.0100e+02, 2.0200e+02,  ..., 3.9700e+02, 3.9800e+02,
         3.9900e+02],
        [4.0000e+02, 4.0100e+02, 4.0200e+02,  ..., 5.9700e+02, 5.9800e+02,
         5.9900e+02],
        ...,
        [3.9400e+04, 3.9401e+04, 3.9402e+04,  ..., 3.9597e+04, 3.9598e+04,
         3.9599e+04],
        [3.9600e+04, 3.9601e+04, 3.9602e+04,  ..., 3.9797e+04, 3.9798e+04,
         3.9799e+04],
        [3.9800e+04, 3.9801e+04, 3.9802e+04,  ..., 3.9997e+04, 3.9998e+04,
         3.9999e+04]])""",
    ),
    (
        "summarised where long only",
        np.arange(1400).reshape(2, 700),
        """\
tensor([[   0,    1,    2,  ...,  697,  698,  699],
        [ 700,  701,  702,  ..., 1397, 1398, 1399]])""",
    ),
    (
        "summarised, three dims",
        np.arange(1050).reshape(7, 1, 150),
        """\
tensor([[[   0,    1,    2,  ...,  147,  148,  149]],

        [[ 150,  151,  152,  ...,  297,  298,  299]],

        [[ 300,  301,  302,  ...,  447,  448,  449]],

        ...,

        [[ 600,  601,  602,  ...,  747,  748,  749]],

        [[ 750,  751,  752,  ...,  897,  898,  899]],

        [[ 900,  901,  902,  ..., 1047, 1048, 1049]]])""",
    ),
]

EXPRESSIONS = [
    ("torch.tensor([1.0, 2.0], requires_grad=True)", "tensor([1., 2.], requires_grad=True)"),
    (
        "torch.tensor([1.0, 2.0], requires_grad=True) * 2",
        "tensor([2., 4.], grad_fn=<MulBackward0>)",
    ),
    (
        "(torch.tensor([1.0, 2.0], requires_grad=True) * 2).sum()",
        "tensor(6., grad_fn=<SumBackward0>)",
    ),
    (
        "torch.tensor([1.0], dtype=torch.float64, requires_grad=True) * 2",
        "tensor([2.], dtype=torch.float64, grad_fn=<MulBackward0>)",
    ),
    (
        "torch.zeros(0, 3, dtype=torch.float64, requires_grad=True)",
        "tensor([], size=(0, 3), dtype=torch.float64, requires_grad=True)",
    ),
    ("torch.tensor([1.0, 2.0], requires_grad=True).detach()", "tensor([1., 2.])"),
    ("torch.tensor([True, False])", "tensor([ True, False])"),
    (
        "torch.arange(6.0).view(2, 3).t()",
        """\
tensor([[0., 3.],
        [1., 4.],
        [2., 5.]])""",
    ),
    (
        "torch.full((4,), 1 / 3, dtype=torch.float64, requires_grad=True).exp()",
        """\
tensor([1.3956, 1.3956, 1.3956, 1.3956], dtype=torch.float64,
       grad_fn=<ExpBackward0>)""",
    ),
    (
        "torch.arange(10.0, requires_grad=True) + 1000",
        """\
tensor([1000., 1001., 1002., 1003., 1004., 1005., 1006., 1007., 1008., 1009.],
       grad_fn=<AddBackward0>)""",
    ),
    (
        "torch.arange(12.0, requires_grad=True) / 8",
        """\
tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,
        1.1250, 1.2500, 1.3750], grad_fn=<DivBackward0>)""",
    ),
    (
        "torch.nn.Parameter(torch.ones(2, 2))",
        """\
Parameter containing:
tensor([[1., 1.],
        [1., 1.]], requires_grad=True)""",
    ),
    (
        "torch.nn.Parameter(torch.ones(1), requires_grad=False)",
        """\
Parameter containing:
tensor([1.])""",
    ),
    ("[torch.tensor(1), torch.tensor([2.5])]", "[tensor(1), tensor([2.5000])]"),
    ("str(torch.tensor([1.5]))", "tensor([1.5000])"),
    (
        "f'{torch.tensor([1.5])} {torch.tensor(1.5)} {torch.tensor(2):3d} {torch.tensor(1.5):.3f}'",
        "tensor([1.5000]) 1.5   2 1.500",
    ),
]

OPTIONS = [
    ({"precision": 2}, np.array([1.23456, 2]), "tensor([1.23, 2.00], dtype=torch.float64)"),
    ({"precision": 0}, np.array([1.5, 2.25]), "tensor([2, 2], dtype=torch.float64)"),
    ({"precision": 0}, np.array([1.5 + 2j]), "tensor([2+2.j], dtype=torch.complex128)"),
    (
        {"sci_mode": True},
        np.array([1, 2.5, 0, nan]),
        "tensor([1.0000e+00, 2.5000e+00, 0.0000e+00,        nan], dtype=torch.float64)",
    ),
    ({"sci_mode": True}, np.zeros(2), "tensor([0., 0.], dtype=torch.float64)"),
    (
        {"sci_mode": True},
        np.array([1 + 2j]),
        "tensor([1.0000e+00+2.0000e+00j], dtype=torch.complex128)",
    ),
    (
        {"sci_mode": False},
        np.array([1.5e12, 2.25e-5, nan]),
        """\
tensor([1500000000000.0000,             0.0000,                nan],
       dtype=torch.float64)""",
    ),
    (
        {"threshold": 5, "edgeitems": 1},
        np.arange(36).reshape(3, 3, 4),
        """\
tensor([[[ 0,  ...,  3],
         ...,
         [ 8,  ..., 11]],

        ...,

        [[24,  ..., 27],
         ...,
         [32,  ..., 35]]])""",
    ),
    ({"threshold": 5, "edgeitems": 0}, np.arange(6), "tensor([...], size=(6,))"),
    ({"edgeitems": 0}, np.arange(6), "tensor([0, 1, 2, 3, 4, 5], size=(6,))"),
    ({"threshold": 0}, np.arange(7), "tensor([0, 1, 2,  ..., 4, 5, 6])"),
    (
        {"linewidth": 30},
        np.arange(12),
        """\
tensor([ 0,  1,  2,  3,  4,
         5,  6,  7,  8,  9,
        10, 11])""",
    ),
    (
        {"linewidth": 40},
        np.zeros(12),
        """\
tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.,
        0.], dtype=torch.float64)""",
    ),
    (
        {"linewidth": 0},
        np.array([1, 2]),
        """\
tensor([1,
        2])""",
    ),
    (
        {"profile": "short"},
        np.arange(1001) / 3,
        "tensor([  0.00,   0.33,  ..., 333.00, 333.33], dtype=torch.float64)",
    ),
    (
        {"profile": "full"},
        np.zeros(1001, bool),
        """\
tensor([False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False, False, False, False, False, False, False, False, False, False,
        False])""",
    ),
    ({"profile": "full", "threshold": 3}, np.arange(9), "tensor([0, 1, 2,  ..., 6, 7, 8])"),
]
# fmt: on


@pytest.mark.parametrize(("array", "text"), [case[1:] for case in ARRAYS], ids=[case[0] for case in ARRAYS])
class TestArrays:
    def test_text(self, array, text):
        assert text_of(array) == text

    def test_repr(self, array, text):
        tensor = torch.from_numpy(np.asarray(array))
        assert repr(tensor) == text
        assert str(tensor) == text


@pytest.mark.parametrize(("expression", "text"), EXPRESSIONS)
def test_expressions(expression, text):
    shown = eval(expression, {"torch": torch})
    assert (shown if isinstance(shown, str) else repr(shown)) == text


@pytest.mark.parametrize(("options", "array", "text"), OPTIONS)
def test_options(options, array, text):
    with printoptions(**options):
        assert text_of(array) == text
    with printoptions():
        torch.set_printoptions(**options)
        assert repr(torch.from_numpy(array)) == text
