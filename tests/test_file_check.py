"""`FileCheck`: which texts pass, and the first lines of the errors."""

import pytest

from cygrad.testing import FileCheck
from helpers import fails

TEXT = "foo bar\nbaz qux\nfoo end\n"


def checks(*calls):
    made = FileCheck()
    for name, *args in calls:
        getattr(made, name)(*args)
    return made


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ([("check", "foo"), ("check", "qux")], None),
        ([("check", "qux"), ("check", "bar")], 'Expected to find "bar" but did not find it'),
        ([("check_not", "qux")], 'Expected to not find "qux" but found it'),
        ([("check", "foo"), ("check_not", "qux"), ("check", "end")], 'Expected to not find "qux" but found it'),
        ([("check", "baz"), ("check_not", "bar"), ("check", "end")], None),
        ([("check", "foo"), ("check_same", "bar")], None),
        ([("check", "foo"), ("check_same", "baz")], r'Expected to not find "\n" but found it'),
        ([("check", "foo"), ("check_next", "baz"), ("check_next", "end")], None),
        ([("check", "foo"), ("check_next", "end")], r'Expected to not find "\n" but found it'),
        ([("check", "foo"), ("check_next", "bar")], 'Expected to find "bar" but did not find it'),
        ([("check", "end"), ("check_next", "bar")], 'Expected to find "bar" but did not find it'),
        ([("check_count", "foo", 2)], None),
        ([("check_count", "foo", 3)], 'Expected to find "foo" but did not find it'),
        ([("check_count", "foo", 1, True)], 'Expected to not find "foo" but found it'),
        ([("check_count", "foo", 0, True)], 'Expected to not find "foo" but found it'),
        ([("check_count", "foo", 1, True), ("check", "baz")], None),
        ([("check_dag", "qux"), ("check_dag", "bar"), ("check", "end")], None),
        ([("check_dag", "qux"), ("check_dag", "nope")], 'Expected to find "nope" but did not find it'),
        ([("check_dag", "qux"), ("check_dag", "bar"), ("check_not", "end")], 'Expected to not find "end" but found it'),
        ([("check_regex", r"b.z\s+q")], None),
        ([("check_regex", "zz+")], 'Expected to find regex "zz+" but did not find it'),
        ([], "No checks have been added to this instance ofFilecheck! Check for bad input."),
    ],
)
def test_checks(calls, error):
    if error is None:
        checks(*calls).run(TEXT)
    else:
        with fails(RuntimeError, error):
            checks(*calls).run(TEXT)


@pytest.mark.parametrize(
    ("comments", "error"),
    [
        ("# CHECK: foo\n# CHECK-NEXT: baz\n# CHECK-NOT: zzz\n# CHECK-COUNT-1: end\n", None),
        ("x = 1  #CHECK: foo\n# CHECK-COUNT-EXACTLY-1: foo", None),
        ("# CHECK-COUNT-EXACTLY-1: foo", 'Expected to not find "foo" but found it'),
        ("# CHECK-DAG: qux\n# CHECK-DAG: bar\n# CHECK-SAME: baz\n", 'Expected to find "baz" but did not find it'),
        ("# CHECK-REGEX: b.z\n# # CHECK: this is none", None),
        ("# CHECK-FOO: foo\n", "Could not parse check at:"),
        ("# CHECK:\n", "Could not parse check at:"),
        ("nothing\n", "No checks have been added to this instance ofFilecheck! Check for bad input."),
    ],
)
def test_checks_in_comments(comments, error):
    if error is None:
        FileCheck().run(comments, TEXT)
    else:
        with fails(RuntimeError, error):
            FileCheck().run(checks_file=comments, test_file=TEXT)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x + y", None),
        ("x", 'Expected to not find "~" but found it'),
        ("y", 'Expected to not find "~" but found it'),
        ("return", 'Expected to find "return"highlighted but it is not.'),
        ("zzz", 'Expected to find "zzz" but did not find it'),
    ],
)
def test_marked_source(text, error):
    source = "def f():\n    return x + y\n           ~~~~~ <--- HERE\n"
    if error is None:
        FileCheck().check_source_highlighted(text).run(source)
    else:
        with fails(RuntimeError, error):
            FileCheck().check_source_highlighted(text).run(source)


def test_the_place_is_shown():
    with pytest.raises(RuntimeError) as caught:
        FileCheck().check_not("qux").run(TEXT)
    assert str(caught.value).split("\n")[1:] == [
        *("foo bar", "baz qux", "    ~~~ <--- HERE", "foo end", "From CHECK-NOT: qux", "")
    ]
    long = "".join(f"line {i}\n" for i in range(100))
    with pytest.raises(RuntimeError) as caught:
        FileCheck().check_not("line 50").run(long)
    assert "line 45" in str(caught.value) and "line 20" not in str(caught.value)


def test_wrong_calls():
    FileCheck().check("foo").run(TEXT.encode())
    made = FileCheck()
    with fails(TypeError, "check(): incompatible function arguments."):
        made.check(3)
    with fails(TypeError, "run(): incompatible function arguments."):
        made.run(3)
    with fails(RuntimeError, "Count == 0 && !exactly doesn't do anything"):
        made.check_count("a", 0)


def test_checks_that_were_not_run_are_printed(capsys):
    made = FileCheck().check("foo").check_not("z").check_count("a", 2)
    del made
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["You have not run this instance of FileCheck!", "FileCheck checks:"]
    assert lines[2:] == ["\tCHECK: foo", "\tCHECK-NOT: z", "\tCHECK-COUNT-2: a"]
