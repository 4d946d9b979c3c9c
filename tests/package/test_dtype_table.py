"""tools/op_dtypes.json, from which the reference says which dtypes an op takes, is up to date."""

import importlib.util

import pytest
from conftest import CHECKOUT


@pytest.fixture(scope="module")
def tool():
    """tools/make_dtype_table.py as a module."""
    pytest.importorskip("scipy")  # needed by some ops
    pytest.importorskip("ml_dtypes")
    spec = importlib.util.spec_from_file_location("make_dtype_table", CHECKOUT / "tools" / "make_dtype_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_is_up_to_date(tool):
    assert tool.TABLE.read_text(encoding="utf-8") == tool.text(), "run python tools/make_dtype_table.py"


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("add", "Takes tensors of every common dtype."),
        ("sin", "Takes tensors of every common dtype. Integer and `bool` tensors give `float32`."),
        (
            "relu6",
            "Takes floating-point and integer tensors. Other dtypes raise `NotImplementedError` or `RuntimeError`.",
        ),
        ("isnan", "Takes tensors of every common dtype. The result is `bool`."),
        ("gcd", "Takes integer tensors. Other dtypes raise `NotImplementedError`."),
    ],
)
def test_sentences_say_what_happens(tool, op, expected):
    assert tool.sentences(tool.outcomes_of([op])) == expected


def test_indices_are_not_cast(tool):
    (sample, *_) = tool.calls.SAMPLES["gather"]
    assert tool.outcome("gather", sample, tool.DTYPES["bool"]) == "bool"


def test_values_are_cast_to_some_that_the_dtype_has(tool):
    array = tool.np.array([-1.5, 2.0])
    assert tool.converted(array, tool.np.uint8).tolist() == [1, 2]
    assert tool.converted(array + 1j, tool.np.float32).tolist() == [-1.5, 2.0]
