"""Installation and import costs of cygrad, and the contents of the package."""

import importlib
import importlib.metadata
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tomllib
import traceback
from pathlib import Path

import pytest
from checkout import CHECKOUT

import cygrad
from cygrad import _library

pytestmark = pytest.mark.interpreter

PACKAGE = Path(cygrad.__file__).resolve().parent

# Relative to `import numpy` in the same process, since the speed of a machine varies by a factor of two within minutes:
# 20 ms where NumPy takes 60 ms.
IMPORT_BUDGET = 1 / 3

# Each of these costs more than all of cygrad, or is optional.
NEVER_IMPORTED = {
    *("asyncio", "concurrent.futures", "email", "multiprocessing", "socket", "subprocess"),
    *("cupy", "matplotlib", "PIL", "scipy", "sklearn", "torch", "tqdm"),
}


def run(code, **environment):
    """The output of `code` in a fresh interpreter, outside the checkout."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment).stdout


def test_import_takes_little_time(tmp_path):
    # Measure thread time, not wall time, to exclude other programs.
    code = """if True:
        import time
        start = time.thread_time()
        import numpy
        between = time.thread_time()
        import cygrad
        print((time.thread_time() - between) / (between - start))
        """
    # The first run compiles the bytecode for the others, wherever cygrad is installed.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    run(code, **compiled)
    shares = [float(run(code, **compiled)) for _ in range(5)]
    while statistics.median(shares) > IMPORT_BUDGET and len(shares) < 20:  # other programs disturb the caches, too
        shares.append(float(run(code, **compiled)))
    if statistics.median(shares) > IMPORT_BUDGET:
        command = [sys.executable, "-X", "importtime", "-c", "import numpy, cygrad"]
        profile = subprocess.run(command, capture_output=True, text=True, env=os.environ | compiled).stderr
        ours = profile[profile.rindex("| numpy\n") :]
        pytest.fail(f"import cygrad takes {statistics.median(shares):.2f} of the time of NumPy's:\n{ours}")


def test_import_loads_no_heavy_module():
    code = "import numpy, sys\nbefore = set(sys.modules)\nimport cygrad\nprint(*sorted(set(sys.modules) - before))"
    loaded = set(run(code).split())
    assert "cygrad" in loaded
    assert not loaded & NEVER_IMPORTED


@pytest.mark.parametrize("use", ["cygrad.sort(x)", "x.sort()", "cygrad.Tensor.sort(x)", "cygrad.msort(x)"])
def test_families_are_imported_on_first_use(use):
    code = f"""if True:
        import cygrad, sys
        x = cygrad.tensor([2, 1])
        assert "cygrad._ops.reduction.sorting" not in sys.modules
        assert "sort" in dir(cygrad) and hasattr(cygrad.Tensor, "argsort") and not hasattr(x, "no_such_method")
        {use}
        assert type(vars(cygrad.Tensor)["sort"]).__name__ != "MethodOnFirstUse"
        """
    run(code)


@pytest.mark.parametrize(
    "use",
    [
        "v = y[0:2]; v.mul_(2)",  # the view's new history needs `as_strided`
        "v = y[0:2]; y.mul_(2)",
        "v = y[0:2]; v.mul_(2); cygrad.autograd.grad(y.sum(), x, create_graph=True)",
        "y.sum().register_hook(lambda grad: grad * 2); v = y.split(2)[0]; v.sum().backward()",
    ],
)
def test_what_the_core_needs_is_imported_on_first_use(use):
    code = f"""if True:
        import cygrad
        x = cygrad.ones(4, requires_grad=True)
        y = x * 1
        {use}
        assert v.grad_fn is not None and v.tolist() in ([2, 2], [1, 1])
        """
    run(code)


@pytest.mark.parametrize("use", ["remainder", "fmod"])
def test_gradients_need_no_family_that_is_not_imported_yet(use):
    code = f"""if True:
        import cygrad
        x, y = (cygrad.tensor([value], requires_grad=True) for value in (5.0, 2.0))
        cygrad.{use}(x, y).backward()
        assert x.grad == 1 and y.grad == -2
        """
    run(code)


@pytest.mark.parametrize("name", ["nn", "optim", "utils", "viz"])
def test_packages_are_imported_on_first_use(name):
    code = f"""if True:
        import sys
        import cygrad as torch
        assert {name!r} in dir(torch)
        assert "cygrad.{name}" not in sys.modules
        package = torch.{name}
        from cygrad import {name}
        import cygrad.{name} as alias
        assert package is {name} is alias is sys.modules["cygrad.{name}"]
    """
    run(code)


def test_every_listed_name_is_there():
    assert all(hasattr(cygrad, name) for name in dir(cygrad))


def test_unknown_name():
    with pytest.raises(
        AttributeError, match="^module 'cygrad' has no attribute 'rand_lik'\n  did you mean 'rand_like'"
    ) as info:
        cygrad.rand_lik  # noqa: B018  raises AttributeError
    assert (info.value.name, info.value.obj) == ("rand_lik", cygrad)
    with pytest.raises(AttributeError, match="no attribute 'blub'$"):  # like none
        cygrad.blub  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'rand_lik' from 'cygrad'"):
        from cygrad import rand_lik  # noqa: F401


def test_stub_is_fresh():
    command = [sys.executable, CHECKOUT / "tools" / "make_stubs.py", "--check"]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


def test_numpy_is_the_only_hard_dependency():
    requirements = importlib.metadata.requires("cygrad")
    hard = [requirement for requirement in requirements if "extra ==" not in requirement]
    assert hard == ["numpy>=2.0"]


def test_version_has_one_source():
    assert cygrad.__version__ == importlib.metadata.version("cygrad")


@pytest.mark.parametrize(
    "statement",
    [
        "cygrad.promote_types(cygrad.uint16, cygrad.int8)",  # in the core
        "cygrad.ones(2, 3).sum(5)",  # in an op
        "cygrad.nn.functional.nll_loss(cygrad.ones(1, 2), cygrad.tensor([5]))",  # in a kernel
    ],
)
def test_tracebacks_of_compiled_functions_show_the_line_that_raised(statement):
    with pytest.raises((RuntimeError, IndexError)) as info:
        eval(statement)
    frame, line = list(traceback.walk_tb(info.tb))[-1]
    source = CHECKOUT / frame.f_code.co_filename
    assert source.suffix == ".pyx"
    assert source.read_text(encoding="utf-8").splitlines()[line - 1].lstrip().startswith("raise ")


def test_library_holds_every_compiled_module():
    sources = {path.relative_to(CHECKOUT).with_suffix("").parts for path in CHECKOUT.glob("cygrad/**/*.pyx")}
    assert _library.names == {".".join(parts) for parts in sources} | {"cygrad._cython"}
    for name in _library.names:
        module = importlib.import_module(name)
        assert (module.__name__, module.__file__) == (name, _library._compiled.__file__)


def test_sources_that_are_not_compiled_say_so(tmp_path):
    (tmp_path / "cygrad").mkdir()
    for name in ("__init__.py", "_library.py"):
        (tmp_path / "cygrad" / name).write_bytes((PACKAGE / name).read_bytes())
    command = [sys.executable, "-S", "-c", "import cygrad"]  # -S: without site-packages
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "ModuleNotFoundError: No module named 'cygrad._compiled'\n  the cygrad in " in run.stderr
    assert run.stderr.endswith("otherwise compile this one: python setup.py build_ext --inplace\n")


def test_no_other_module_is_looked_for_in_the_library():
    for name in ("cygrad._core.nothing", "cygrad.nothing", "tensor", "cygrad._core._compiled"):
        assert _library.LibraryFinder.find_spec(name) is None
    assert importlib.util.find_spec("cygrad._core.nothing") is None
    with pytest.raises(ModuleNotFoundError, match="No module named 'cygrad._core.nothing'"):
        importlib.import_module("cygrad._core.nothing")


def test_type_information_is_installed():
    assert (PACKAGE / "py.typed").exists()
    stubs = {path.relative_to(CHECKOUT / "cygrad") for path in CHECKOUT.glob("cygrad/**/*.pyi")}
    assert stubs
    missing = {str(path) for path in stubs if not (PACKAGE / path).exists()}
    assert not missing


def test_readme_commands_are_those_of_ci():
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    (pip install .*)$|^(pip install .*)$", readme, re.MULTILINE)
    assert commands
    script = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
    tests = [line for pair in commands for line in pair if "tox" in line]
    assert len(tests) == 1
    assert tests[0] in script


def test_tox_covers_the_python_versions_we_claim():
    metadata = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = re.findall(r"Python :: 3\.(\d+)", "\n".join(metadata["classifiers"]))
    assert metadata["requires-python"] == f">=3.{claimed[0]}"
    tox = (CHECKOUT / "tox.ini").read_text(encoding="utf-8")
    tested = re.search(r"py\{([\dt,]+)\}", tox)[1].split(",")
    assert {f"3{minor}" for minor in claimed} <= set(tested)
