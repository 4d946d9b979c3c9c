"""What the text of a tensor depends on besides its elements; see also test_repr_texts.py."""

import math
import subprocess
import sys

import numpy as np
import pytest
from printing import sealed_options, text_of  # noqa: F401 (a fixture)

import cygrad as torch
from cygrad._core.tensor import tensor_str as module
from cygrad._core.tensor.tensor_str import get_printoptions, printoptions, set_printoptions

inf, nan = math.inf, math.nan


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 of its own")
    array = np.array([0.1, -3, nan], ml_dtypes.bfloat16)
    assert text_of(array) == "tensor([ 0.1001, -3.0000,     nan], dtype=torch.bfloat16)"


# --- When the dtype suffix appears -------------------------------------------------------------

DEFAULTS = [
    ("float64", "float64", "tensor([1.])"),
    ("float32", "float64", "tensor([1.], dtype=torch.float32)"),
    ("complex128", "float64", "tensor([1.+0.j])"),
    ("complex64", "float64", "tensor([1.+0.j], dtype=torch.complex64)"),
    ("complex64", "float16", "tensor([1.+0.j])"),
    ("int64", "float64", "tensor([1])"),
]


@pytest.mark.parametrize(("dtype", "default", "text"), DEFAULTS)
def test_default_dtype(dtype, default, text):
    array = np.ones(1, dtype)
    assert text_of(array, default_dtype_name=f"torch.{default}") == text
    torch.set_default_dtype(getattr(torch, default))
    assert repr(torch.from_numpy(array)) == text


# --- Text around the elements ------------------------------------------------------------------


def test_suffixes_in_order():
    text = text_of(np.zeros((0, 2)), device="cuda:0", requires_grad=True, grad_fn_name="MulBackward0")
    assert text == ("tensor([], device='cuda:0', size=(0, 2), dtype=torch.float64,\n       grad_fn=<MulBackward0>)")


@pytest.mark.parametrize(("linewidth", "is_broken"), [(36, True), (37, False)])
def test_a_suffix_that_does_not_fit_gets_its_own_line(linewidth, is_broken):
    with printoptions(linewidth=linewidth):
        text = text_of(np.ones(2, np.float32), requires_grad=True)
    gap = "\n       " if is_broken else " "
    assert text == f"tensor([1., 1.],{gap}requires_grad=True)"


def test_subclass():
    class Reading(torch.Tensor):
        pass

    text = """\
Reading([[1., 1.],
         [1., 1.]])"""
    assert text_of(np.ones((2, 2), np.float32), class_name="Reading") == text
    assert repr(torch.ones(2, 2).as_subclass(Reading)) == text


def test_subclass_of_parameter():
    class Weight(torch.nn.Parameter):
        pass

    text = """\
Parameter containing:
Parameter(Weight([[1.],
        [1.]], requires_grad=True))"""
    array = np.ones((2, 1), np.float32)
    names = {"class_name": "Weight", "is_parameter_prefix": True}
    assert text_of(array, requires_grad=True, **names) == text
    assert repr(Weight(torch.ones(2, 1))) == text


def test_tangent():
    assert text_of(np.ones(1, np.float32), tangent="tensor([2.])") == ("tensor([1.], tangent=tensor([2.]))")


def test_given_contents():
    text = "tensor(<hidden>, requires_grad=True)"
    array = np.ones(2, np.float32)
    assert text_of(array, requires_grad=True, tensor_contents="<hidden>") == text
    tensor = torch.ones(2, requires_grad=True)
    assert tensor.__repr__(tensor_contents="<hidden>") == text


def test_indent_moves_further_lines():
    plain = text_of(np.ones((2, 2)))
    assert text_of(np.ones((2, 2)), indent=4) == plain.replace("\n", "\n    ")
    # Lines are wrapped where the full line would exceed the line width.
    lines = ("x = " + text_of(np.arange(100), indent=4)).splitlines()
    assert max(map(len, lines)) <= get_printoptions()["linewidth"]
    assert "x = " + text_of(np.arange(100), indent=4) != "x = " + text_of(np.arange(100))


# --- All kinds of arrays -----------------------------------------------------------------------


def test_layout_in_memory_does_not_show():
    array = np.arange(24.0).reshape(2, 3, 4)
    expected = text_of(array)
    assert text_of(np.asfortranarray(array)) == expected
    assert text_of(array[::-1, ::-1][::-1, ::-1]) == expected
    assert text_of(array.astype(">f8")) == expected
    array.flags.writeable = False
    assert text_of(array) == expected


def test_signalling_nan():
    array = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)
    assert text_of(array) == "tensor([nan, 1.])"


def test_only_the_edges_are_looked_at():
    array = np.broadcast_to(np.float32(1), (10**6, 10**6))  # 4 TB if it were read
    assert text_of(array).splitlines()[:2] == [
        "tensor([[1., 1., 1.,  ..., 1., 1., 1.],",
        "        [1., 1., 1.,  ..., 1., 1., 1.],",
    ]


def test_only_the_edges_are_brought_from_the_device(monkeypatch):
    class DeviceArray:
        """The part of the interface of cupy.ndarray that is used."""

        def __init__(self, host):
            self.host = host
            self.shape, self.size, self.ndim = host.shape, host.size, host.ndim

        def __getitem__(self, index):
            return DeviceArray(self.host[index])

        def get(self):
            brought.append(self.size)
            return self.host

    monkeypatch.setattr(module, "in_memory", lambda a: a.get() if isinstance(a, DeviceArray) else a)
    for length, count in ((1000, 1000), (10**6, 6)):
        brought = []
        host = np.arange(length)
        names = {"dtype_name": "torch.int64", "default_dtype_name": "torch.float32"}
        assert module.tensor_str(DeviceArray(host), **names) == text_of(host)
        assert brought == [count]


# --- Options -----------------------------------------------------------------------------------


def test_options_at_first():
    assert get_printoptions() == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }


def test_what_is_not_given_stays_but_for_sci_mode():
    set_printoptions(precision=2, sci_mode=True)
    set_printoptions(linewidth=70)
    assert get_printoptions() == {
        "precision": 2,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 70,
        "sci_mode": None,
    }


def test_a_profile_sets_all_and_the_rest_wins():
    set_printoptions(precision=7, linewidth=10)
    set_printoptions(profile="full", edgeitems=5)
    assert get_printoptions() == {
        "precision": 4,
        "threshold": inf,
        "edgeitems": 5,
        "linewidth": 80,
        "sci_mode": None,
    }
    set_printoptions(profile="no such")
    assert get_printoptions()["edgeitems"] == 5


def test_printoptions_puts_back():
    set_printoptions(sci_mode=True)
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=1):
        assert get_printoptions()["precision"] == 1
        with printoptions(precision=2):
            assert get_printoptions()["precision"] == 2
        assert get_printoptions()["precision"] == 1
        raise KeyError
    assert get_printoptions() == before


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"precision": 2.5}, TypeError),
        ({"precision": -1}, ValueError),
        ({"edgeitems": "3"}, TypeError),
        ({"edgeitems": -1}, ValueError),
        ({"threshold": "many"}, TypeError),
        ({"linewidth": nan}, ValueError),
    ],
)
def test_wrong_options_change_nothing(options, error):
    (name,) = options
    with pytest.raises(error, match=rf"^set_printoptions\(\): {name} must"):
        set_printoptions(**({"linewidth": 60} | options))
    assert get_printoptions()["linewidth"] == 80


def test_no_limit_to_the_line():
    set_printoptions(linewidth=inf)
    assert text_of(np.arange(500)).count("\n") == 0


def test_imported_on_first_use():
    code = """if True:
        import sys
        import cygrad
        x = cygrad.ones(2) * 2
        assert "cygrad._core.tensor.tensor_str" not in sys.modules
        repr(x)
        assert "cygrad._core.tensor.tensor_str" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
