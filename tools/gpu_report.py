"""Run the tests of GPU code and the GPU benchmark, and write docs/gpu-report.md."""

import datetime
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
REPORT = CHECKOUT / "docs" / "gpu-report.md"


GENERIC = [f"tests/ops/test_{name}.py" for name in ("generic", "forward_mode", "half", "batching")]


def tests(*what):
    """(passed, failed, skipped) of these tests."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        command = [sys.executable, "-m", "pytest", *what, "-q", f"--junitxml={results}"]
        subprocess.run(command, cwd=CHECKOUT, check=False)
        (suite,) = ElementTree.parse(results).getroot().iter("testsuite")
    total, failed, errors, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped"))
    return total - failed - errors - skipped, failed + errors, skipped


def versions():
    """What the figures were measured with, as lines of Markdown."""
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
        return lines
    return [*lines, f"- PyTorch {torch.__version__}"]


def main():
    sys.path.insert(0, str(CHECKOUT))
    import cygrad

    if not cygrad.cuda.is_available():
        raise SystemExit("there is no GPU: the report is left as it is")
    found = {
        "tests/cuda": tests("tests/cuda"),
        "the generic tests of ops, `--device cuda`": tests(*GENERIC, "--device", "cuda"),
    }
    from benchmarks.gpu import as_table, measured, peers

    lines = [
        "# GPU report",
        "",
        f"Written by `tools/gpu_report.py` on {datetime.date.today()}.",
        "",
        *versions(),
        *(f"- {what}: {p} passed, {f} failed, {s} skipped" for what, (p, f, s) in found.items()),
        "",
        as_table(measured(peers())),
    ]
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
