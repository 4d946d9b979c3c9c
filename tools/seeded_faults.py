"""Check that the tests find faults: put ten faults into the code, one after another, and run the tests on each.

    python tools/seeded_faults.py            # all of them; builds each, which takes a minute or more
    python tools/seeded_faults.py leak race

Each fault is of a kind that real changes introduce. It is seeded into a copy of the checkout, built there in place, and
the tests that `tox` and `tox -m matrix` run are run until the first one fails. The folders where that is likely come
first, so that few tests run where the fault is found; if it is not found there, all the others run. Prints the test
that found each fault, and exits with 1 if one was not found.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
LEFT_OUT = (".git", ".tox", ".venv", "dist", ".hypothesis")


class Fault(NamedTuple):
    file: str
    present: str
    seeded: str  # takes the place of `present`, which stands in the file once
    likely: tuple[str, ...]  # folders of tests to run first
    marks: str = "not slow and not exhaustive and not gpu"


FAULTS = {
    "sign of a rule": Fault(
        "cygrad/_ops/elementwise/trigonometry.py",
        "return neg(asin_rule(n, g))",
        "return asin_rule(n, g)",
        ("tests/ops",),
    ),
    "missing version bump": Fault(
        "cygrad/_ops/base/views.pyx", '    bump(x, op.name + "_")\n', "", ("tests/core", "tests/autograd")
    ),
    "wrong stride": Fault(
        "cygrad/_kernels/cpu/base/view_geometry.pyx",
        "stride = g.dims[dim] * g.strides[dim]",
        "stride = g.strides[dim]",
        ("tests/ops",),
    ),
    "lost hook": Fault(
        "cygrad/_core/engine/hooks.pyx",
        "    grads = list(grad) if grad is not None else [None] * node.n_outputs\n",
        "    return grad\n",
        ("tests/core", "tests/autograd"),
    ),
    "race": Fault(
        "cygrad/_kernels/include/platform/thread_pool.h",
        "__atomic_load_n(&crew.door, __ATOMIC_ACQUIRE); i++)",
        "i < 1; i++)",
        ("tests/kernels",),
    ),
    "leak": Fault(
        "cygrad/_core/engine/run.pyx",
        "            Py_INCREF(total)\n",
        "            Py_INCREF(total)\n            Py_INCREF(total)\n",
        ("tests/core", "tests/autograd"),
    ),
    "off by one": Fault(
        "cygrad/_kernels/include/nn/normalization.h",
        "for (; i < n; i++) ADD_TERMS(i, 0)",
        "for (; i < n - 1; i++) ADD_TERMS(i, 0)",
        ("tests/kernels", "tests/ops"),
    ),
    "kept memory": Fault(
        "cygrad/_core/graph/function.pyx",
        "        self.drop_saved()\n        self.to_save = None\n",
        "",
        ("tests/core", "tests/autograd"),
    ),
    "narrower range": Fault(
        "cygrad/_ops/elementwise/trigonometry.py",
        "return div(g, hypot(x, x.new_ones(())))",
        "return mul(g, rsqrt(add(mul(x, x), 1)))",
        ("tests/ops",),
    ),
    "GPU form": Fault(
        "cygrad/_kernels/gpu/indexing/axis_ops.py",
        "cupy().flip(cupy().cumsum(cupy().flip(wide, axis), axis), axis) if reverse",
        "cupy().cumsum(cupy().flip(wide, axis), axis) if reverse",
        ("tests/gpu",),
        "gpu",
    ),
}


def seed(fault, checkout):
    """Put a fault into a checkout."""
    path = checkout / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.present) != 1:
        raise ValueError(f"{fault.file} holds {fault.present!r} {text.count(fault.present)} times: mend FAULTS here")
    path.write_text(text.replace(fault.present, fault.seeded), encoding="utf-8")


def build(checkout):
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "-j", str(os.cpu_count() or 1)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)


def first_failure(fault, checkout):
    """Run the tests until one fails. Return its name, or None."""
    pytest = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-q", "-x", "--tb=no", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(checkout)}  # for processes that tests start
    everything = sorted(str(path.relative_to(checkout)) for path in (checkout / "tests").iterdir() if path.is_dir())
    for places in fault.likely, everything:
        command = [*pytest, "-m", fault.marks, *places]
        ran = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
        failed = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if failed:
            return failed[0]
        if ran.returncode not in (0, 5):  # 5: no test was selected
            return f"pytest ended with {ran.returncode}"
    return None


def main(names):
    """Seed the faults of these names, or all."""
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(CHECKOUT, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for name in names or FAULTS:
            fault = FAULTS[name]
            healthy = (checkout / fault.file).read_bytes()
            seed(fault, checkout)
            build(checkout)
            found = first_failure(fault, checkout)
            print(f"{name}: {found or 'NOT FOUND'}", flush=True)
            missed += [name] if found is None else []
            (checkout / fault.file).write_bytes(healthy)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
