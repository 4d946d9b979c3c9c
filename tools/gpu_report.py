"""Run the tests of GPU code and the GPU benchmark in parts, and write docs/gpu-report.md of what has been run so far.

    python tools/gpu_report.py                  all parts that have no result yet, for at most nine minutes
    python tools/gpu_report.py --again NAME...  these parts once more (`--list` has their names)

Each part is a process of its own: one that crashes or takes too long loses its own result and no other. Results are
kept in build/gpu-report.json, so that the next call goes on. Without a GPU nothing is written.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
SHARDS = 12  # of the largest files of tests, by the names of the tests
GENERIC = ("generic", "forward_mode", "half", "batching", "views", "indexing")
SHARED_OUT = "generic", "forward_mode", "batching"
_SHARD = "CYGRAD_SHARD"


def pytest_collection_modifyitems(config, items):
    """This file is a plugin of pytest, too: of the tests, take the part that a variable names."""
    if _SHARD in os.environ:
        index, count = map(int, os.environ[_SHARD].split("/"))
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % count != index])
        items[:] = items[index::count]


def parts():
    """{name: (kind, what it is given)}, the most telling first."""
    from benchmarks.gpu import MAKERS

    found: dict[str, tuple[str, Any]] = {"versions": ("versions", None)}
    first = ["test_launches", "test_rows", "test_attention", "test_training", "test_ops"]
    files = {path.stem: path for path in sorted((CHECKOUT / "tests" / "cuda").glob("test_*.py"))}
    for name in [*first, *(set_aside for set_aside in files if set_aside not in first)]:
        found[f"tests/cuda/{name}"] = "tests", ([str(files[name])], None)
    found |= {f"benchmark: {row}": ("benchmark", row) for row in MAKERS}
    for name in GENERIC:
        given = [str(CHECKOUT / "tests" / "ops" / f"test_{name}.py"), "--device", "cuda"]
        count = SHARDS if name in SHARED_OUT else 1
        for i in range(count):
            which = f" {i + 1}/{count}" if count > 1 else ""
            found[f"tests/ops/test_{name}{which}"] = "tests", (given, f"{i}/{count}")
    return found


def ended(command, seconds, **more):
    """(what went wrong or None, the last lines of output) of a process."""
    path = str(CHECKOUT), str(CHECKOUT / "tools"), os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **more}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            code = subprocess.run(
                command, cwd=CHECKOUT, env=environment, stdout=output, stderr=subprocess.STDOUT, timeout=seconds,
                check=False,
            ).returncode  # fmt: skip
            problem = None if code == 0 else f"ended with code {code}"
        except subprocess.TimeoutExpired:
            problem = f"had not ended after {seconds:.0f} seconds"
        output.seek(0)
        return problem, output.read()[-3000:]


def tests(given, seconds):
    """The result of a part of the tests."""
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
    """The result that a program prints last, as JSON."""
    problem, output = ended([sys.executable, "-c", code], seconds)
    if problem is not None:
        return {"problem": problem, "output": output}
    return json.loads(output.strip().splitlines()[-1])


def benchmark(row, seconds):
    """The result of a row of the benchmark."""
    return from_process(f"import json, benchmarks.gpu as b; print(json.dumps(b.row({row!r})))", seconds)


def versions(_, seconds):
    """What the figures are measured with, as lines of Markdown."""
    return from_process("import gpu_report; gpu_report.print_versions()", seconds)


def print_versions():
    """Print them as JSON; in a process of their own, for to look at a GPU may fail as well."""
    import numpy

    import cygrad
    from cygrad._kernels.gpu.library import cupy

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
    """The page, of the results there are."""
    from benchmarks.gpu import as_table

    done = {name: results[name] for name in names if name in results}
    counted = {name: r for name, r in done.items() if "passed" in r}
    passed, failed, skipped = (sum(r[key] for r in counted.values()) for key in ("passed", "failed", "skipped"))
    lines = ["# GPU report", "", f"Written by `tools/gpu_report.py` on {datetime.date.today()}.", ""]
    lines += done.get("versions", {}).get("lines", [])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts; all that have no result if none is named")
    parser.add_argument("--again", action="store_true", help="run them although there is a result")
    parser.add_argument("--list", action="store_true", help="print the names of all parts and end")
    parser.add_argument("--seconds", type=float, default=540, help="how long this call may take")
    parser.add_argument("--each", type=float, default=300, help="how long a part may take")
    parser.add_argument(
        "--state", type=Path, default=CHECKOUT / "build" / "gpu-report.json", help="where results are kept"
    )
    parser.add_argument("--report", type=Path, default=CHECKOUT / "docs" / "gpu-report.md", help="the page")
    given = parser.parse_args()
    sys.path.insert(0, str(CHECKOUT))
    known = parts()
    if given.list:
        print("\n".join(known))
        return
    if unknown := set(given.names) - set(known):
        parser.error(f"no parts are called {sorted(unknown)}")
    problem, output = ended(
        [sys.executable, "-c", "import cygrad; raise SystemExit(not cygrad.cuda.is_available())"], given.seconds
    )
    if problem is not None:
        raise SystemExit(f"there is no GPU: the report is left as it is\n{output}".rstrip())
    results = json.loads(given.state.read_text()) if given.state.exists() else {}
    end = time.monotonic() + given.seconds
    run = {"tests": tests, "benchmark": benchmark, "versions": versions}
    for name in given.names or known:
        left = end - time.monotonic()
        if left < 20:
            print("no time is left: call this once more", flush=True)
            break
        if name in results and not given.again:
            continue
        kind, what = known[name]
        start = time.monotonic()
        results[name] = found = run[kind](what, min(left - 10, given.each))
        given.state.parent.mkdir(parents=True, exist_ok=True)
        given.state.write_text(json.dumps(results, indent=1))
        given.report.write_text(report(known, results), encoding="utf-8")
        said = {key: value for key, value in found.items() if key not in ("bad", "output")}
        print(f"{name}: {said} in {time.monotonic() - start:.0f} s", flush=True)
        for text in [*list(found.get("bad", {}).items())[:5], found.get("output", "")[-600:]]:
            if text:
                print("   ", text, flush=True)


if __name__ == "__main__":
    main()
