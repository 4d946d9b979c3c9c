"""Files of the profiler: Chrome traces, stacks, nvprof files, and traces written by a schedule."""

import gzip
import json

import pytest

import cygrad as torch
from cygrad.autograd import profiler
from cygrad.autograd.profiler import profile, record_function
from helpers import fails, leaf

sqlite3 = pytest.importorskip("sqlite3")  # a CPython built without SQLite's headers lacks it


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


PHASES = {
    "X": {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"},
    "s": {"ph", "cat", "name", "pid", "tid", "ts", "id"},
    "f": {"ph", "cat", "name", "pid", "tid", "ts", "id", "bp"},
    "M": {"ph", "name", "pid", "tid", "ts", "args"},
}


def read_trace(path):
    """Read a trace file, which must be strict JSON: Python alone would also accept NaN."""
    opened = gzip.open if str(path).endswith("gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def check_trace(trace):
    """Check the trace against the Trace Event Format; return the slices, and the two slices joined by each arrow."""
    assert set(trace) >= {"traceEvents", "displayTimeUnit"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    for event in trace["traceEvents"]:
        assert set(event) == PHASES[event["ph"]]
        for key in ("pid", "tid", "id"):
            assert type(event.get(key, 1)) is int
            assert 0 <= event.get(key, 1) < 2**32  # the range of viewers
        for key in ("ts", "dur"):
            assert type(event.get(key, 1)) in (int, float)
        assert event["ts"] >= 0
        assert event.get("dur", 1) > 0
        assert event.get("bp", "e") == "e"
        assert all(type(event.get(key, "")) is str for key in ("name", "cat"))
    return [event for event in trace["traceEvents"] if event["ph"] == "X"], arrows_of(trace["traceEvents"])


def nanoseconds(microseconds):
    return round(1e3 * microseconds)


def arrows_of(events):
    """Process events as a viewer does: by time, with a stack of open slices per thread, to which arrows attach."""
    stacks, tails, arrows = {}, {}, []
    for event in sorted((e for e in events if e["ph"] != "M"), key=lambda e: nanoseconds(e["ts"])):
        stack, start = stacks.setdefault((event["pid"], event["tid"]), []), nanoseconds(event["ts"])
        while stack and stack[-1][0] <= start:
            stack.pop()
        if event["ph"] == "X":
            end = nanoseconds(event["ts"] + event["dur"])
            assert not stack or end <= stack[-1][0], "of two slices one holds the other, or they are apart"
            stack.append((end, event))
        elif event["ph"] == "s":
            assert event["id"] not in tails
            tails[event["id"]] = stack[-1][1]
        else:
            arrows.append((tails.pop(event["id"]), stack[-1][1]))
    assert not tails, "arrows without an end"
    return arrows


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(tmp_path, name):
    x = leaf(1.0, 2.0)
    with profile(record_shapes=True) as prof:
        with record_function('a "quoted" name, ü'):
            y = Cube.apply(x.sin()).sum()
        y.backward()
    prof.export_chrome_trace(tmp_path / name)
    slices, arrows = check_trace(read_trace(tmp_path / name))
    assert [s["name"] for s in slices] == [event.name for event in prof.function_events]
    assert slices[0]["cat"] == "user_annotation"
    assert [(s["name"], f["name"]) for s, f in arrows] == [
        ("aten::sum", "SumBackward0"),
        ("Cube", "CubeBackward"),
        ("aten::sin", "SinBackward0"),
    ]


def test_arrows_of_a_step_join_what_belongs_together(tmp_path):
    """This includes a repeated pass, a custom function, and a pass that is itself recorded."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with profile() as prof:
        for _ in range(3):
            loss = Cube.apply(model(torch.randn(5, 4)).exp()).mean()
            (g,) = torch.autograd.grad(loss, model[0].weight, create_graph=True)
            g.square().sum().backward(retain_graph=True)
            loss.backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    slices, arrows = check_trace(read_trace(tmp_path / "trace.json"))
    joined = {(s["args"]["External id"], f["args"]["External id"]) for s, f in arrows}
    assert joined == {(e.forward.id, e.id) for e in prof.function_events if e.forward is not None}
    assert len(joined) == len(arrows) > 50
    ends = [(e.time_range.start, e.time_range.end) for e in prof.function_events]
    for slice_, (start, end) in zip(slices, ends, strict=True):
        assert slice_["ts"] == pytest.approx(start, abs=0.001)
        assert slice_["ts"] + slice_["dur"] == pytest.approx(end, abs=0.002)


def test_stacks_for_flame_graphs(tmp_path):
    x = torch.ones(300, 300)
    with profile(with_stack=True) as prof:
        for _ in range(5):
            x @ x
    prof.export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        frames, weight = line.rsplit(" ", 1)
        assert "test_stacks_for_flame_graphs" in frames.split(";")[-1]
        assert int(weight) > 0
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks", "bytes")


def test_nvprof(tmp_path):
    path = tmp_path / "nvprof.sql"
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringTable VALUES (1, 'outer'), (2, 'mul'), (3, 'kernel of mul');
        CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (_id_ INTEGER PRIMARY KEY, timestamp INT, flags INT, id INT,
            objectKind INT, objectId BLOB, name INT, domain INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_MARKER (timestamp, flags, id, name) VALUES
            (1000, 2, 1, 1), (2000, 2, 2, 2), (5000, 4, 2, 0), (9000, 4, 1, 0);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT,
            processId INT, threadId INT, correlationId INT, returnValue INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (cbid, start, end, correlationId) VALUES
            (211, 2500, 2600, 7), (13, 6000, 6100, 8);
        CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER PRIMARY KEY, start INT, end INT,
            correlationId INT, name INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start, end, correlationId, name) VALUES (7000, 10000, 7, 3);
    """)
    database.commit()
    database.close()
    outer, mul = profiler.load_nvprof(path)
    assert (outer.name, outer.time_range.start, outer.cpu_time_total) == ("outer", 1.0, 8.0)
    assert (mul.name, mul.cpu_parent, mul.cpu_time_total) == ("mul", outer, 3.0)
    assert outer.self_cpu_time_total == 5.0
    for event in (outer, mul):
        assert [(kernel.name, kernel.duration) for kernel in event.kernels] == [("kernel of mul", 3.0)]
    assert mul.cuda_time == 3.0
    assert [event.name for event in profiler.parse_nvprof_trace(path)] == ["outer", "mul"]
    with pytest.raises(sqlite3.OperationalError, match="no such table: StringTable"):
        profiler.load_nvprof(tmp_path / "missing.sql")
    (tmp_path / "empty.sql").touch()
    with pytest.raises(sqlite3.OperationalError, match="no such table: StringTable"):
        profiler.load_nvprof(tmp_path / "empty.sql")
    with fails(TypeError, "expected str, bytes or os.PathLike object, not NoneType"):
        profiler.load_nvprof(None)
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER (timestamp, flags, id, name) VALUES (3, 2, 2, 2), (4, 4, 2, 0)"
        )
    database.close()
    with fails(RuntimeError, "duplicate key: (2,)"):
        profiler.load_nvprof(path)


def test_nvtx_needs_cuda():
    with profiler.emit_nvtx(enabled=False):
        pass
    with fails(AssertionError, "Torch not compiled with CUDA enabled"), profiler.emit_nvtx():
        pass


def test_itt_needs_the_library_of_intel():
    with profiler.emit_itt(enabled=False) as nothing:
        assert nothing is None
    with fails(RuntimeError, "ITT functions not installed. Are you sure you have a ITT build?"), profiler.emit_itt():
        pass


# ------------------------------------------------------------------ with a schedule


def test_rounds_of_a_schedule(tmp_path):
    x, rounds = torch.ones(1), []
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(
        schedule=schedule, on_trace_ready=lambda p: rounds.append((p.step_num, [e.name for e in p.events()]))
    ) as prof:
        for _ in range(10):
            x.sin()
            prof.step()
    expected = [["ProfilerStep#2", "aten::sin", "ProfilerStep#3", "aten::sin"]]
    expected += [["ProfilerStep#6", "aten::sin", "ProfilerStep#7", "aten::sin"]]
    assert rounds == [(4, expected[0]), (8, expected[1])]


def test_traces_for_tensorboard(tmp_path):
    for zipped in (False, True):
        ready = torch.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), "me", use_gzip=zipped)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=ready) as prof:
            prof.add_metadata_json("lr", "0.5")
            torch.ones(1).sin()
    found = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert [name.split(".", 2)[2] for name in found] == ["pt.trace.json", "pt.trace.json.gz"]
    trace = json.loads((tmp_path / "runs" / found[0]).read_text(encoding="utf-8"))
    check_trace(trace)
    assert trace["lr"] == 0.5


def test_bad_schedules():
    with fails(AssertionError, "Invalid profiler schedule arguments. Got wait=-1 (need >= 0), ..."):
        torch.profiler.schedule(wait=-1, warmup=1, active=1)
    with fails(AssertionError, "Step must be non-negative. Got -1."):
        torch.profiler.schedule(wait=1, warmup=1, active=1)(-1)
    with pytest.warns(UserWarning, match="Profiler won't be using warmup"):
        torch.profiler.schedule(wait=1, warmup=0, active=1)
    with fails(AssertionError, "No valid profiler activities found"):
        torch.profiler.profile(activities=[])
    with fails(AssertionError, "Profiler must be initialized before accessing events"):
        torch.profiler.profile().events()


def test_profilers_that_have_not_finished(tmp_path):
    prof = profile()
    for text in (str(prof), repr(prof)):
        assert text == "<unfinished torch.autograd.profile>"
    with prof:
        torch.ones(1).sin()
        assert str(prof) == "<unfinished torch.autograd.profile>"
        with fails(RuntimeError, "Profiler didn't finish running"):
            prof.export_chrome_trace(tmp_path / "trace.json")
    assert "CPU time" in str(prof)
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert str(profile(enabled=False)) == ""


def test_stacks_that_were_not_kept(tmp_path):
    for kind in (profile, torch.profiler.profile):
        with kind() as prof:
            torch.ones(1).sin()
        with fails(AssertionError, "export_stacks() requires with_stack=True"):
            prof.export_stacks(str(tmp_path / "stacks"))
    assert not (tmp_path / "stacks").exists()


@pytest.mark.parametrize(
    "purpose, call",
    [
        ("accessing events", lambda prof: prof.events()),
        ("getting key averages", lambda prof: prof.key_averages()),
        ("exporting chrome trace", lambda prof: prof.export_chrome_trace("trace.json")),
        ("exporting stacks", lambda prof: prof.export_stacks("stacks")),
        ("stopping trace", lambda prof: prof.stop()),
    ],
)
def test_profiler_that_was_not_begun(purpose, call):
    with fails(AssertionError, f"Profiler must be initialized before {purpose}"):
        call(torch.profiler.profile())
