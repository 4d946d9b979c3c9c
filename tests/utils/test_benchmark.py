"""Times of statements, and tables of them."""

import pytest

import cygrad as torch
from cygrad.utils.benchmark import (
    Compare,
    Language,
    Measurement,
    TaskSpec,
    Timer,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

TIMES = [1e-5, 1.1e-5, 1.2e-5, 5e-5]


def of(*times, runs=1, stmt="x + y", setup="", **kwargs):
    return Measurement(runs, [t * runs for t in times], TaskSpec(stmt, setup, **kwargs))


def test_statistics():
    measured = of(*TIMES, runs=10)
    assert measured.times == pytest.approx(TIMES)
    assert measured.mean == pytest.approx(2.075e-5) and measured.median == pytest.approx(1.15e-5)
    assert measured.iqr == pytest.approx(1.075e-5)  # from 1.075e-5 to 2.15e-5
    assert measured.has_warnings and not measured.meets_confidence() and measured.meets_confidence(2.0)
    assert not of(1e-5, 1.01e-5).has_warnings
    assert [of(*[t] * 4).significant_figures for t in (1e-9, 1e-5, 1e-4, 1.0)] == [1, 2, 3, 4]


def text(measured):
    first, _, rest = repr(measured).partition("\n")
    assert first.startswith("<cygrad.utils.benchmark.utils.common.Measurement object at 0x")
    return rest


def test_text():
    assert text(of(*TIMES, runs=10, setup="x=1")) == (
        "x + y\nsetup: x=1\n  Median: 11.50 us\n  IQR:    10.75 us (10.75 to 21.50)\n"
        "  4 measurements, 10 runs per measurement, 1 thread\n"
        "  WARNING: Interquartile range is 93.5% of the median measurement.\n"
        "           This suggests significant environmental influence."
    )
    assert text(of(2e-9, 3e-9)).endswith("This could indicate system fluctuation.")
    assert text(of(1.0, label="la", sub_label="sl", description="de", num_threads=4)) == (
        "la: sl\nde\n  1.00 s\n  1 measurement, 1 runs , 4 threads"
    )
    assert text(of(1e-3, stmt="a\nb", setup="c\nd")).startswith("stmt:\n  a\n  b\n\nsetup:\n  c\n  d\n\n  1.00 ms\n")


def test_names():
    spec = TaskSpec("x", "y", label="la", sub_label="sl", env="e")
    assert spec.title == "la: sl" and spec == TaskSpec("x", "y", label="la", sub_label="sl", env="e")
    measured = Measurement(1, [1.0], spec)
    assert (measured.title, measured.as_row_name, measured.env) == ("la: sl", "sl", "e")
    assert of(1.0).as_row_name == "x + y" and of(1.0).env == "Unspecified env"


def test_merging():
    merged = Measurement.merge([of(1.0, 2.0), of(3.0), of(4.0, runs=2), of(1.0, stmt="z")])
    assert [one.times for one in merged] == [[1.0, 2.0, 3.0, 4.0], [1.0]]


def test_units():
    assert [select_unit(t)[0] for t in (2e-9, 2e-5, 0.5, 100)] == ["ns", "us", "ms", "s"]
    assert select_unit(2e-5)[1] == 1e-6 and unit_to_english("us") == "microsecond"
    assert trim_sigfig(1234.567, 3) == 1230 and trim_sigfig(0.0123, 2) == pytest.approx(0.012)


def table(*more):
    return Compare(
        [
            of(*(t * n * s for s in (1, 1.01, 0.99, 1.1)), label="op", sub_label=row, description=column, num_threads=n)
            for row in ("a", "bbb")
            for column, t in (("one", 1e-5), ("two two", 2e-3))
            for n in (1, 2)
        ]
        + list(more)
    )


def test_table():
    assert (
        str(table())
        == """\
[------------ op ------------]
           |  one   |  two two
1 threads: -------------------
      a    |  10.1  |   2010.0
      bbb  |  10.1  |   2010.0
2 threads: -------------------
      a    |  20.1  |   4020.0
      bbb  |  20.1  |   4020.0

Times are in microseconds (us).
"""
    )


def test_table_of_figures_that_mean_something():
    trimmed = table()
    trimmed.trim_significant_figures()
    cells = [line.split("|")[1:] for line in str(trimmed).splitlines() if line.startswith("      ")]
    assert [[cell.strip() for cell in row] for row in cells[1:]] == [["10", "2000"]] * 2 + [["20", "4000"]] * 2


def test_colors():
    best, good = "\033[92m\033[1m", "\033[34m\033[1m"
    bad, worst, end = "\033[2m\033[91m", "\033[31m\033[1m", "\033[0m\033[0m"
    rows = Compare([of(1e-5 * t, sub_label=f"r{t}", description="d") for t in (1, 1.1, 1.5, 2, 5)])
    rows.colorize()
    lines = [line.partition("  |  ")[2] for line in str(rows).splitlines() if line.startswith("      r")]
    assert lines == [f"{best}10.0{end}", f"{good}11.0{end}", "15.0", f"{bad}20.0{end}", f"{worst}50.0{end}"]
    columns = table()
    columns.colorize(rowwise=True)
    assert str(columns).count(best) == 4 and str(columns).count(worst) == 4
    columns.colorize()
    assert str(columns).count(best) == 8


def test_warnings():
    found = table(of(1e-5, 5e-5, 9e-5, 2e-5, label="op", sub_label="z", description="one"))
    assert "!" not in str(found)
    found.highlight_warnings()
    lines = str(found).splitlines()
    assert [cell.strip() for cell in lines[5].split("|")] == ["z", "35.0 (! 121%)", ""]
    assert lines[-1] == "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."


def test_environments_and_labels():
    measured = [of(1e-5 * i, env=f"e{i}", description="d") for i in (1, 2)] + [of(1.0, label="other", description="d")]
    first, second = str(Compare(measured)).split("\n\n[")
    assert "  (e1)  x + y  |  10.0" in first and "  (e2)  x + y  |  20.0" in first
    assert " other " in second and "Times are in seconds (s)." in second
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`, got <class 'int'> instead."):
        Compare([1])


def test_timer():
    calls = []
    timer = Timer("f(1)", setup="calls.clear()", globals={"f": calls.append, "calls": calls}, label="la", num_threads=2)
    measured = timer.timeit(100)
    assert len(calls) == 100 and measured.number_per_run == 100 and len(measured.raw_times) == 1
    assert measured.task_spec == TaskSpec("f(1)", "calls.clear()", label="la", num_threads=2) and measured.median > 0


def test_timer_sets_threads():
    seen = []
    before = torch.get_num_threads()
    Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(1)
    assert set(seen) == {1} and torch.get_num_threads() == before


class Clock:
    """A clock that only `tick` moves on, by a second."""

    now = 0.0

    def __call__(self):
        return self.now

    def tick(self):
        self.now += 1.0


def test_ranges():
    clock, blocks = Clock(), []
    timer = Timer("tick()", timer=clock, globals={"tick": clock.tick})
    measured = timer.blocked_autorange(lambda *block: blocks.append(block), min_run_time=3.0)
    assert measured.number_per_run == 1 and measured.raw_times == [1.0, 1.0, 1.0]
    assert blocks == [(1, 1.0)] * 3
    measured = timer.adaptive_autorange(min_run_time=1.0, max_run_time=20.0)
    assert measured.raw_times == [1.0] * 4
    assert timer.adaptive_autorange(-1, min_run_time=1.0, max_run_time=6.0).raw_times == [1.0] * 6
    assert Timer("1 + 1").blocked_autorange(min_run_time=0.01).number_per_run >= 100


def test_statements():
    assert Timer("  for i in range(2):\n      pass\n").timeit(1).task_spec.stmt == "for i in range(2):\n    pass"
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)
    for kwargs, kind, message in [
        ({"stmt": 3}, ValueError, "Currently only a `str` stmt is supported."),
        ({"language": "foo"}, ValueError, "Invalid language `foo`."),
        ({"language": Language.CPP}, NotImplementedError, "only statements in Python can be timed"),
        ({"global_setup": "#include"}, ValueError, "global_setup is C\\+\\+ only"),
    ]:
        with pytest.raises(kind, match=message):
            Timer(**kwargs)
    for method in (Timer().repeat, Timer().autorange):
        with pytest.raises(NotImplementedError, match="See `Timer.blocked_autorange.`"):
            method()
    with pytest.raises(OSError, match="Failed to collect callgrind profile"):
        Timer().collect_callgrind()
