"""`cygrad.as_torch()` and `python -m cygrad`: in new processes, since the switch stays on."""

import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

import cygrad
from cygrad.torch_version import TorchVersion

pytestmark = pytest.mark.interpreter

NEVER_AS_TORCH = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}


def run(*arguments, code=0, cwd=None, **options):
    """Run Python with these arguments; returns its output, or that for errors if it is to fail."""
    command = [sys.executable, "-W", "error", "-W", "ignore:PyTorch is installed", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=NEVER_AS_TORCH, cwd=cwd, **options)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def check(program):
    """Run statements after the switch."""
    run("-c", f"if True:\n    import cygrad; cygrad.as_torch()\n{program}")


def test_modules_are_the_same_objects():
    check("""
    import sys, torch, torch.nn.functional as F, torch.utils.data
    from torch.optim import lr_scheduler
    from torch.nn.modules.linear import Linear
    assert torch.nn is sys.modules["torch.nn"] is cygrad.nn and F is cygrad.nn.functional
    assert lr_scheduler is cygrad.optim.lr_scheduler and Linear is cygrad.nn.Linear
    assert sys.modules["torch.utils.data"] is cygrad.utils.data
    assert torch.nn.__spec__.name == torch.nn.__name__ == "cygrad.nn"  # as before the import
    assert torch is cygrad.as_torch() is torch.torch is sys.modules["torch"]
    assert torch.add is cygrad.add and torch.Tensor is cygrad.Tensor
    """)


def test_tensors_say_that_they_are_of_torch():
    """Libraries for several back ends tell them apart by the module of a tensor's class."""
    check("""
    import pickle, torch
    x = torch.arange(3.0, requires_grad=True)
    assert type(x).__module__ == "torch" and str(type(x)) == "<class 'torch.Tensor'>"
    assert b"torch" not in pickle.dumps(x)  # what is pickled here can be read where the switch is off
    assert torch.equal(pickle.loads(pickle.dumps(x)), x) and pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor
    compiled = torch.compile(lambda a: a.sin() * 2)
    assert all(torch.equal(compiled(x), x.sin() * 2) for _ in range(4))
    """)
    assert cygrad.Tensor.__module__ == "cygrad"


def test_every_module_has_an_alias():
    check("""
    import importlib, pathlib, pkgutil, sys
    from cygrad.as_torch.aliases import cygrad_name
    for info in pkgutil.walk_packages(cygrad.__path__, "torch."):
        if info.name.startswith(("torch._", "torch.as_torch", "torch.debug", "torch.viz")):
            continue
        if info.name == "torch.utils._sympy.functions" and importlib.util.find_spec("sympy") is None:
            continue  # it needs SymPy, as PyTorch's does
        module = importlib.import_module(info.name)
        assert module is sys.modules[cygrad_name(info.name)], info.name
    """)


def test_submodules_replace_no_function_of_their_name():
    check("""
    import sys, torch, torch.autograd.gradcheck, torch.nn.utils.weight_norm, torch.nn.utils.spectral_norm
    assert callable(torch.autograd.gradcheck) and callable(torch.nn.utils.weight_norm)
    assert type(torch.autograd) is type(torch.nn.utils) is type(sys)
    from torch.autograd.gradcheck import GradcheckError
    torch.autograd.gradcheck = 3  # what a program assigns later counts
    assert cygrad.autograd.gradcheck == 3
    """)


def test_what_a_program_assigns_reaches_both():
    check("""
    import torch
    torch.number = 3
    assert cygrad.number == 3
    original, torch.add = torch.add, max
    assert cygrad.add is max and torch.add is max
    del torch.number
    assert not hasattr(cygrad, "number") and not hasattr(torch, "number")
    """)


def test_ops_of_the_name_that_cygrad_uses_for_its_families():
    check("""
    import torch
    assert torch._ops.OpOverload is torch.ops.OpOverload is type(torch.ops.aten.add.Tensor)
    from torch._ops import HigherOrderOperator, OpOverloadPacket
    import torch._ops
    assert torch._ops.HigherOrderOperator is HigherOrderOperator and not hasattr(torch._ops, "base")
    assert cygrad._ops.base is not torch._ops and isinstance(torch.ops.aten, torch._ops._OpNamespace)
    """)


def test_versions():
    check("""
    import importlib.metadata, importlib.util, torch
    assert torch.__version__ == torch.version.__version__ == "2.13.0+cygrad" == importlib.metadata.version("torch")
    assert cygrad.__version__ == importlib.metadata.version("cygrad") != torch.__version__
    assert torch.__version__ >= "2.0" and torch.__version__ < (3,) and torch.torch_version.TorchVersion
    assert importlib.metadata.packages_distributions()["torch"] == ["torch"]
    assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.nn.functional")
    assert torch.version.cuda is None
    """)


def test_the_package_beside_it():
    check("""
    import functorch, torch, warnings
    from functorch.experimental import control_flow
    assert functorch.__version__ == torch.__version__ and control_flow.cond is torch.cond
    warnings.simplefilter("ignore", FutureWarning)
    func, params = functorch.make_functional(torch.nn.Linear(2, 1))
    slopes = functorch.grad(lambda params, x: func(params, x).sum())(params, torch.ones(3, 2))
    assert torch.equal(slopes[0], torch.full((1, 2), 3.0)) and slopes[1] == 3
    """)


def test_what_is_lacking():
    check("""
    import importlib.util, torch
    for name in ("_inductor.lowering", "no_such_module", "nn.no_such_module", "_kernels"):
        assert importlib.util.find_spec(f"torch.{name.partition('.')[0]}") is None or "." in name
        try:
            __import__(f"torch.{name}")
        except ModuleNotFoundError as error:
            assert error.name in (f"torch.{name}", f"torch.{name.partition('.')[0]}"), error.name
            assert str(error).startswith(f"No module named 'torch."), error
            assert ("no compiler back ends" in str(error)) == ("inductor" in name), error
        else:
            raise AssertionError(name)
    assert importlib.util.find_spec("torch.nn.no_such_module") is None
    try:
        torch.quantize_per_tensor
    except AttributeError as error:
        assert str(error).startswith("module 'torch' has no attribute 'quantize_per_tensor'\\n  "), error
        assert "no quantized tensors" in str(error)
    else:
        raise AssertionError
    for name, instead in {
        "distributed.nn.api": "send",
        "export.unflatten": "ExportedProgram",
        "fx.passes.nothing": "Interpreter",
        "classes": "Python",
        "package": "torch.save",
        "nn.qat": "float16",
    }.items():
        try:
            __import__(f"torch.{name}")
        except ModuleNotFoundError as error:
            assert instead in str(error).split("\\n")[1], error
        else:
            raise AssertionError(name)
    assert not hasattr(torch, "no_such_name") and not hasattr(torch, "_kernels") and "_kernels" not in dir(torch)
    """)


def test_star():
    check("""
    from torch import *
    assert add is cygrad.add and nn is cygrad.nn and linspace is cygrad.linspace
    """)


def test_pickles_name_modules_that_exist():
    check("""
    import pickle, torch
    layer = pickle.loads(pickle.dumps(torch.nn.Linear(2, 1)))
    assert type(layer) is torch.nn.Linear
    assert pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.") is torch.nn.Linear  # as PyTorch writes it
    """)


SPAWNS = """
import multiprocessing, subprocess, sys
import torch

def version(_):
    return torch.__version__

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(version, [0]) == ["2.13.0+cygrad"], method
    program = "from importlib.metadata import version; assert version('torch') == '2.13.0+cygrad'"
    subprocess.run([sys.executable, "-c", program], check=True)
    subprocess.run([sys.executable, "-c", "import torch.nn, cygrad; assert torch.nn is cygrad.nn"], check=True)
    subprocess.run([sys.executable, "-c", "import torch.nn as nn; nn.Linear(1, 1)"], check=True)
    data = torch.utils.data.DataLoader([torch.ones(1)] * 3, num_workers=1, multiprocessing_context="spawn")
    assert sum(batch.item() for batch in data) == 3
    print("done")
"""


def test_subprocesses_inherit_the_switch(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SPAWNS, encoding="utf-8")
    assert run("-m", "cygrad", script) == "done\n"
    script.write_text(f"import cygrad; cygrad.as_torch()\n{SPAWNS}", encoding="utf-8")
    assert run(script) == "done\n"


def test_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\nprint(__name__, sys.argv, sys.path[0], torch.__version__)\nimport beside", encoding="utf-8"
    )
    (tmp_path / "beside.py").write_text("", encoding="utf-8")
    expected = f"__main__ {[str(script), '-x', 'y']} {tmp_path} 2.13.0+cygrad\n"
    assert run("-m", "cygrad", script, "-x", "y") == expected
    package = tmp_path / "package"
    package.mkdir()
    (package / "__main__.py").write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    expected = f"__main__ {[str(package / '__main__.py'), '-x']} {tmp_path} 2.13.0+cygrad\n"
    # The checkout is on the path by its name, which the folder of the program need not be.
    assert run("-m", "cygrad", "-m", "package", "-x", cwd=tmp_path) == expected
    assert run("-m", "cygrad", "-c", "import sys, torch; print(sys.argv)", "x") == "['-c', 'x']\n"
    assert run("-m", "cygrad", "-", "x", input="import sys, torch; print(sys.argv)") == "['-', 'x']\n"
    assert run("-m", "cygrad", input="import torch; print(torch.ones(1))") == "tensor([1.])\n"
    assert run("-m", "cygrad", "--help").startswith("usage: python -m cygrad [script")
    assert run("-m", "cygrad", "--version") == f"cygrad {cygrad.__version__} (torch 2.13.0+cygrad)\n"
    assert run("-m", "cygrad", "-c", code=1).startswith("python -m cygrad: argument expected for -c\nusage:")
    assert run("-m", "cygrad", "-x", code=1).startswith("python -m cygrad: unknown option -x\nusage:")
    assert run("-m", "cygrad", "no.py", code=2).startswith("python -m cygrad: can't open file 'no.py'")


def test_errors_of_scripts_are_those_of_plain_python(tmp_path):
    script = tmp_path / "script.py"
    body = "\n\ndef multiply(a, b):\n    return a @ b\n\nmultiply(torch.ones(2), torch.ones(3))\n"
    script.write_text(f"import torch{body}", encoding="utf-8")
    by_switch = run("-m", "cygrad", script, code=1)
    script.write_text(f"import cygrad as torch{body}", encoding="utf-8")
    assert run(script, code=1) == by_switch
    script.write_text("raise SystemExit(3)", encoding="utf-8")
    run("-m", "cygrad", script, code=3)


def test_prompt():
    program = "import cygrad.__main__, sys; sys.stdin = open(0); cygrad.__main__.prompt()"
    assert "tensor([1.])" in run("-c", program, input="import torch\ntorch.ones(1)\n")


def test_pytest_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text("import torch.nn\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(
        "import torch, cygrad\ndef test_it():\n    assert torch.nn is cygrad.nn\n", encoding="utf-8"
    )
    command = ("-m", "pytest", "-p", "cygrad.as_torch", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", tmp_path)
    assert "1 passed" in run(*command, cwd=tmp_path)


def test_pytorch_is_already_imported(tmp_path):
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    program = "import torch, cygrad; cygrad.as_torch()"
    text = run("-c", program, code=1, cwd=tmp_path)
    assert "RuntimeError: PyTorch is already imported, from" in text and "python -m cygrad" in text


def test_pytorch_is_installed(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "torch.py").write_text("raise SystemExit('wrong')", encoding="utf-8")
    program = f"""if True:
        import subprocess, sys, warnings
        sys.path.append({str(site)!r})
        import cygrad
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cygrad.as_torch()
            cygrad.as_torch()
        import torch
        assert torch.Tensor is cygrad.Tensor
        print(*(warning.message for warning in caught), *(warning.filename for warning in caught))
        subprocess.run([sys.executable, "-W", "error", "-c", "import torch.nn"], check=True)
        """
    (message,) = run("-c", program).splitlines()
    installed = PathFinder.find_spec("torch")
    where = site if installed is None else Path(installed.origin).parent
    assert message == f"PyTorch is installed ({where}); `import torch` means cygrad in this program <string>"


@pytest.mark.parametrize(
    "smaller, larger",
    [
        ("1.9", "1.10"),
        ("2.0.dev1", "2.0a1"),
        ("2.0a1", "2.0b1"),
        ("2.0rc1", "2.0"),
        ("2.0", "2.0.post1"),
        ("2.0.post1.dev2", "2.0.post1"),
        ("2.13.0", "2.13.0+cygrad"),
        ("2.13.0+cpu", "2.13.1"),
        ("2.13.0+abc", "2.13.0+5"),
    ],
)
def test_order_of_versions(smaller, larger):
    a, b = TorchVersion(smaller), TorchVersion(larger)
    assert a < b and a <= b and a != b and b > a and b >= a and not a > b and not a >= b and not b < a and not b <= a
    assert a < larger and larger > a and b != smaller


def test_equal_versions():
    version = TorchVersion("2.1.0")
    assert version == "2.1" == version == (2, 1) and version <= [2, 1, 0] and version >= "2.1.0.0" and version < (2, 2)
    assert version != "2.1.0+cpu" and version != "nightly" and version < "nightly"  # as texts
    assert hash(version) == hash("2.1.0") and f"{version}" == "2.1.0" and isinstance(version, str)
