"""The table of ONNX forms: its names exist, and the list of functions without a form only shrinks."""

from pathlib import Path

from cygrad.export._onnx_forms.table import FORMS, base_name, form_of
from cygrad.export._programs.functions import _by_name, function_named

LISTED = Path(__file__).with_name("without_onnx_form.txt").read_text(encoding="utf-8").split()


def callable_names():
    """The functions that programs call, by the names under which forms are entered."""
    found = {}
    for name in _by_name():
        try:
            function_named(name)
        except ValueError:
            continue
        found.setdefault(base_name(name), []).append(name)
    return found


def test_forms_are_of_functions_that_exist():
    form_of("add")
    names = callable_names()
    assert [name for name in FORMS if name not in names and name not in _by_name()] == []


def test_functions_without_a_form_are_listed():
    missing = {name for name, full in callable_names().items() if not any(map(form_of, full))}
    assert missing - set(LISTED) == set(), "write an ONNX form for each of these; the list may only shrink"
    assert set(LISTED) - missing == set(), "these have a form now: take them off the list"
    assert sorted(set(LISTED)) == LISTED
