"""Run the GPU tests and the GPU benchmark in parts, and report the results so far in docs/gpu-report.md.

    python tools/gpu_report.py                  run parts that have no result yet, for at most nine minutes
    python tools/gpu_report.py --again NAME...  run these parts again (`--list` prints their names)

A checkout that is not compiled is built first. The most informative parts run first: the comparison with the CPU, then
the benchmark, then the tests, several at a time. Each part runs in its own process, so a crash or timeout loses only
its own result. Results are stored in build/gpu-report.json, and the next call continues from there. Without a GPU,
nothing is written.
"""

import argparse
import datetime
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
SHARDS = 12  # into which the largest test files are split
GENERIC = (
    "ops/test_generic",
    "core/transforms/test_forward_mode",
    "ops/test_half",
    "core/transforms/test_vmap",
    "ops/shape/test_views",
    "ops/indexing/test_indexing",
    "ops/test_hostile",
)
SHARED_OUT = "ops/test_generic", "core/transforms/test_forward_mode", "core/transforms/test_vmap"
_SHARD = "CYGRAD_SHARD"
_START = 60  # seconds for a program to start
_KEPT = 10  # seconds before the end in which nothing new is started


def pytest_collection_modifyitems(config, items):
    """Keep the shard of the tests named by an environment variable; this file doubles as a pytest plugin."""
    if _SHARD in os.environ:
        index, count = map(int, os.environ[_SHARD].split("/"))
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % count != index])
        items[:] = items[index::count]


def parts():
    """Return {name: (kind, its arguments)}, the most informative first."""
    from benchmarks.gpu import MAKERS

    checks = import_module("gpu_first_look").CHECKS  # this folder is only on the path of scripts
    found: dict[str, tuple[str, Any]] = {"versions": ("versions", None)}
    found |= {f"first look: {check}": ("rows", (("tools/gpu_first_look.py",), check)) for check in checks}
    found |= {f"benchmark: {row}": ("rows", (("-m", "benchmarks.gpu"), row)) for row in MAKERS}
    first = {"test_launches", "test_row_sums", "test_attention", "test_training", "test_ops"}
    files = sorted((CHECKOUT / "tests" / "gpu").rglob("test_*.py"), key=lambda path: (path.stem not in first, path))
    for path in files:
        found[path.relative_to(CHECKOUT).with_suffix("").as_posix()] = "tests", ([str(path)], None)
    for name in GENERIC:
        given = [str(CHECKOUT / "tests" / f"{name}.py"), "--device", "cuda"]
        count = SHARDS if name in SHARED_OUT else 1
        for i in range(count):
            which = f" {i + 1}/{count}" if count > 1 else ""
            found[f"tests/{name}{which}"] = "tests", (given, f"{i}/{count}")
    return found


def environment(**more):
    """Return the environment of child processes."""
    path = str(CHECKOUT), str(CHECKOUT / "tools"), os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **more}


def ended(command, seconds, **more):
    """Run a process and return (problem or None, the end of its output)."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            how: dict[str, Any] = {"cwd": CHECKOUT, "env": environment(**more), "timeout": seconds}
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False, **how).returncode
            problem = None if code == 0 else f"ended with code {code}"
        except subprocess.TimeoutExpired:
            problem = f"had not ended after {seconds:.0f} seconds"
        output.seek(0)
        return problem, output.read()[-3000:]


def tests(given, seconds):
    """Run a part of the tests and return its result."""
    what, shard = given
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "gpu_report",
            "-q",
            "--tb=short",
            f"--junitxml={results}",
            *what,
        ]
        problem, output = ended(command, seconds, **({_SHARD: shard} if shard else {}))
        if not results.exists():
            return {"problem": problem, "output": output}
        (suite,) = ElementTree.parse(results).getroot().iter("testsuite")
    total, failed, errors, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped"))
    bad = {
        f"{case.get('classname')}::{case.get('name')}": (wrong.get("message") or "")[:300]
        for case in suite.iter("testcase")
        for wrong in [*case.iter("failure"), *case.iter("error")]
    }
    found = {"passed": total - failed - errors - skipped, "failed": failed + errors, "skipped": skipped, "bad": bad}
    if problem is not None and not (failed or errors):  # pytest itself failed
        found |= {"problem": problem, "output": output}
    return found


def from_process(code, seconds):
    """Run a program and return the result that it prints last, as JSON."""
    problem, output = ended([sys.executable, "-c", code], seconds)
    if problem is not None:
        return {"problem": problem, "output": output}
    return json.loads(output.strip().splitlines()[-1])


def rows(command, names, end, each, keep):
    """Run a program that prints rows, again and again until each of `names` has a result or `end` is reached.

    Calls `keep(name, result)` for each. If a row crashes the program or takes longer than `each` seconds, the program
    is restarted with the remaining rows.
    """
    left = list(names)
    while left and time.monotonic() < end:
        with tempfile.TemporaryFile("w+", errors="replace") as output, tempfile.TemporaryFile("w+") as printed:
            process = subprocess.Popen(
                [sys.executable, *command, *left], cwd=CHECKOUT, env=environment(), stdout=printed, stderr=output
            )
            begun, since, place, problem = None, time.monotonic(), 0, None
            while problem is None:
                code = process.poll()  # before its output is read
                printed.seek(place)
                for line in printed:
                    if not line.endswith("\n"):
                        break
                    place += len(line.encode())
                    try:
                        found = json.loads(line)
                    except ValueError:  # of a library
                        continue
                    begun, since = found.get("begin"), time.monotonic()
                    if found.get("row") in left:
                        name = found.pop("row")
                        left.remove(name)
                        keep(name, found)
                now = time.monotonic()
                if code is not None:
                    problem = f"ended with code {code}"
                elif now > end or now - since > each + (_START if begun is None else 0):
                    process.kill()
                    process.wait()
                    problem = f"had not ended after {now - since:.0f} seconds"
                else:
                    time.sleep(0.05)
            output.seek(0)
            said = output.read()[-3000:]
        if time.monotonic() >= end:
            return
        for name in [name for name in left if name == begun] or left[:]:  # if no row began, all would fail so
            left.remove(name)
            keep(name, {"problem": problem, "output": said})


def versions(_, seconds):
    """Return hardware and versions as Markdown lines."""
    return from_process("import gpu_report; gpu_report.print_versions()", seconds)


def print_versions():
    """Print the versions as JSON; runs in its own process, because even querying a GPU may fail."""
    import numpy

    import cygrad
    from cygrad._kernels.device.cupy_library import cupy

    runtime = cupy().cuda.runtime
    device = runtime.getDeviceProperties(0)["name"]
    lines = [
        f"- device: {device.decode() if isinstance(device, bytes) else device}",
        f"- driver {runtime.driverGetVersion()}, CUDA runtime {runtime.runtimeGetVersion()}",
        f"- cygrad {cygrad.__version__}, CuPy {cupy().__version__}, NumPy {numpy.__version__}, "
        f"Python {sys.version.split()[0]}",
    ]
    try:
        import torch
    except ImportError:
        lines.append("- PyTorch is not installed")
    else:
        lines.append(f"- PyTorch {torch.__version__}")
    print(json.dumps({"lines": lines}))


def report(names, results):
    """Format the results so far as the page."""
    from benchmarks.gpu import as_table

    done = {name: results[name] for name in names if name in results}
    counted = {name: r for name, r in done.items() if "passed" in r}
    passed, failed, skipped = (sum(r[key] for r in counted.values()) for key in ("passed", "failed", "skipped"))
    looks = [r for name, r in done.items() if name.startswith("first look")]
    lines = ["# GPU report", "", f"Written by `tools/gpu_report.py` on {datetime.date.today()}.", ""]
    lines += done.get("versions", {}).get("lines", [])
    lines += [f"- {sum('problem' not in r for r in looks)} of {len(looks)} computations as on the CPU"] if looks else []
    lines += [f"- {len(counted)} parts of the tests: {passed} passed, {failed} failed, {skipped} skipped"]
    lines += [f"- {name}: {r['problem']}" for name, r in done.items() if "problem" in r]
    missing = [name for name in names if name not in done]
    lines += [f"- not run: {', '.join(missing)}"] if missing else []
    table = {name.partition(": ")[2]: r["times"] for name, r in done.items() if "times" in r}
    shares = {name.partition(": ")[2]: r.get("share") for name, r in done.items() if "times" in r}
    if table:
        lines += ["", as_table(table, shares)]
    bad = [
        f"- `{test}`: {text.splitlines()[0] if text else ''}"
        for r in counted.values()
        for test, text in r["bad"].items()
    ]
    if bad:
        lines += ["", "## Tests that failed", "", *bad[:200]]
    return "\n".join(lines) + "\n"


class Results:
    """The results so far, stored in a file; each new one updates the page."""

    def __init__(self, known, state, page):
        self.known, self.state, self.page = known, state, page
        self.found = json.loads(state.read_text()) if state.exists() else {}
        self._lock = threading.Lock()

    def keep(self, name, found, seconds=None):
        """Add a result."""
        with self._lock:
            self.found[name] = found
            self.state.parent.mkdir(parents=True, exist_ok=True)
            whole = self.state.with_suffix(".new")  # atomic, so that being killed loses nothing
            whole.write_text(json.dumps(self.found, indent=1))
            whole.replace(self.state)
            self.page.write_text(report(self.known, self.found), encoding="utf-8")
            said = {key: value for key, value in found.items() if key not in ("bad", "output")}
            print(f"{name}: {said}" + (f" in {seconds:.0f} s" if seconds is not None else ""), flush=True)
            for text in [*list(found.get("bad", {}).items())[:5], found.get("output", "")[-600:]]:
                if text:
                    print("   ", text, flush=True)


def run(known, names, results, seconds, each, jobs):
    """Run parts in order, and the tests, which come last, several at a time."""
    end = time.monotonic() + seconds
    alone = [(name, *known[name]) for name in names if known[name][0] != "tests"]
    for (kind, program), group in itertools.groupby(alone, lambda part: (part[1], part[1] == "rows" and part[2][0])):
        given = {(name if kind == "versions" else what[1]): name for name, _, what in group}
        if kind == "versions":
            for name in given:
                results.keep(name, versions(None, each))
        else:
            keep = {row: (lambda _, found, name=name: results.keep(name, found)) for row, name in given.items()}
            rows(program, list(given), end - _KEPT, each, lambda row, found, keep=keep: keep[row](row, found))

    def test(name):
        left = end - time.monotonic()
        if left >= 2 * _KEPT:
            start = time.monotonic()
            found = tests(known[name][1], min(left - _KEPT, each))
            if min(left - _KEPT, each) == each or "ended after" not in found.get(
                "problem", ""
            ):  # otherwise time ran out
                results.keep(name, found, time.monotonic() - start)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(test, [name for name in names if known[name][0] == "tests"]))
    if any(name not in results.found for name in names):
        print("no time is left: call this once more", flush=True)


def build(seconds):
    """Compile the checkout, on all processors, unless that has been done."""
    if ended([sys.executable, "-c", "import cygrad"], seconds)[0] is not None:
        start = time.monotonic()
        problem, output = ended([sys.executable, "setup.py", "build_ext", "--inplace"], seconds)
        if problem is not None:
            raise SystemExit(f"the build {problem}\n{output}".rstrip())
        print(f"built in {time.monotonic() - start:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts to run (default: all without a result)")
    parser.add_argument("--again", action="store_true", help="run parts even if they have a result")
    parser.add_argument("--list", action="store_true", help="print the names of all parts and exit")
    parser.add_argument("--seconds", type=float, default=540, help="time limit of this call")
    parser.add_argument("--each", type=float, default=300, help="time limit of a part")
    parser.add_argument(
        "--jobs", type=int, default=min(8, (os.cpu_count() or 2) // 2), help="test files to run at a time"
    )
    parser.add_argument(
        "--state", type=Path, default=CHECKOUT / "build" / "gpu-report.json", help="where results are stored"
    )
    parser.add_argument("--report", type=Path, default=CHECKOUT / "docs" / "gpu-report.md", help="the page to write")
    given = parser.parse_args()
    sys.path[:0] = str(CHECKOUT), str(CHECKOUT / "tools")
    known = parts()
    if given.list:
        print("\n".join(known))
        return
    if unknown := set(given.names) - set(known):
        parser.error(f"no parts are called {sorted(unknown)}")
    build(given.seconds)
    problem, output = ended(
        [sys.executable, "-c", "import cygrad; raise SystemExit(not cygrad.cuda.is_available())"], given.seconds
    )
    if problem is not None:
        raise SystemExit(f"there is no GPU: the report is left as it is\n{output}".rstrip())
    results = Results(known, given.state, given.report)
    names = [name for name in given.names or known if given.again or name not in results.found]
    run(known, names, results, given.seconds, given.each, max(given.jobs, 1))


if __name__ == "__main__":
    main()
