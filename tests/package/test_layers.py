"""Imports only point down the layers: checks the rules of docs/architecture.md on the sources.

    5  nn  optim  utils  viz  distributions ...     the public names of the layer below
    4  cygrad  cygrad.autograd  cygrad.linalg ...   everything public that is not layer 5
    3  cygrad._ops
    2  cygrad._core
    1  cygrad._kernels

A module imports from its own layer and from those below. There are two exceptions: the Tensor, whose number slots call
ops (imported in its `.pyx`, never in its `.pxd`), and the functions of modules in `cygrad.func`.
"""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for pattern in ("*.py", "*.pyx", "*.pxd") for path in (CHECKOUT / "cygrad").rglob(pattern))

PRIVATE_LAYERS = {"_compiled": 1, "_library": 1, "_kernels": 1, "_core": 2, "_ops": 3}
PUBLIC_LAYER = 4
TOP_LAYER = 5
TOP_PACKAGES = {"nn", "optim", "serialization", "utils", "viz", "distributions"}

UPWARD = {("cygrad/_core/graph/tensor.pyx", "cygrad._ops"), ("cygrad/func/modules.py", "cygrad.nn.utils.stateless")}
# The private names that layer 5 may use: compiled optimizer steps, the op functions that are public only in
# nn.functional, the repr of a tensor, DLPack devices, gamma distributed numbers, hook handles, whether a profiler is
# active, the running backward pass (for checkpoints), and the user's source lines (for checkpoints, pictures and the
# graph growth warning).
INWARD = {
    ("cygrad/distributions/_implicit.py", "cygrad._ops.random.sampling"),
    ("cygrad/nn/functional.py", "cygrad._ops"),
    ("cygrad/nn/parameter.py", "cygrad._core.tensor.show"),
    ("cygrad/optim/adam.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/adam.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/formula.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/formula.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/optimizer.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/optim/sgd.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/sgd.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/utils/_selective.py", "cygrad._core.graph.internals"),
    ("cygrad/utils/_selective.py", "cygrad._core.registry.autocast"),
    ("cygrad/utils/_selective.py", "cygrad._core.graph.saved_tensor_hooks"),
    ("cygrad/utils/_surroundings.py", "cygrad._core.registry.autocast"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.runtime.interrupt_safe"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.engine.backward"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.errors.sites"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/utils/debugging.py", "cygrad._core.runtime.interrupt_safe"),
    ("cygrad/utils/debugging.py", "cygrad._core.diagnostics.graph_growth"),
    ("cygrad/utils/debugging.py", "cygrad._core.errors.sites"),
    ("cygrad/utils/dlpack.py", "cygrad._ops.creation.dlpack"),
    ("cygrad/utils/hooks.py", "cygrad._core.graph.hook_handles"),
    ("cygrad/viz/_collect.py", "cygrad._core.errors.sites"),
}
CUPY_IS_IMPORTED_IN = ("cygrad/_kernels/", "cygrad/_core/types/device.", "cygrad/cuda")
LONGEST_FILE = 650

STRINGS = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'', re.DOTALL)
COMMENT = re.compile(r"#.*")
IMPORT = re.compile(
    r"""^[ \t]*
        (?: from[ ]+(?P<origin>[\w.]+)[ ]+(?P<how>c?import)[ ]+
            (?: \((?P<list>[^)]*)\) | (?P<names>.+) )
          | (?P<plain>c?import)[ ]+(?P<modules>.+) )$""",
    re.MULTILINE | re.VERBOSE,
)
LATER = re.compile(r"""= later\("([\w.]+)"\)""")


# --- Reading -----------------------------------------------------------------------------------


def place(path):
    """A file's path relative to the checkout, as in the tables below."""
    return path.relative_to(CHECKOUT).as_posix()


def module_name(path):
    """`cygrad/_core/graph/node.pyx` is `cygrad._core.graph.node`; an `__init__` is its package."""
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in SOURCES}


def imported(path):
    """Yield `(module, is_cimport)` for everything a file imports, at any nesting level."""
    code = COMMENT.sub("", STRINGS.sub('""', path.read_text(encoding="utf-8")))
    code = code.replace("\\\n", " ")
    for match in IMPORT.finditer(code):
        if match["origin"]:
            origin = _absolute(match["origin"], path)
            is_cimport = match["how"] == "cimport"
            for name in _names(match["list"] or match["names"]):
                inner = f"{origin}.{name}"
                yield (inner if inner in MODULES else origin), is_cimport
        elif match["plain"]:
            for name in _names(match["modules"]):
                yield name, match["plain"] == "cimport"
    for match in LATER.finditer(path.read_text(encoding="utf-8")):
        yield match[1], False


def _names(text):
    """The first word of each item: `a, b as c` gives `a`, `b`."""
    return [item.split()[0] for item in text.split(",") if item.strip()]


def _absolute(origin, path):
    dots = len(origin) - len(origin.lstrip("."))
    if not dots:
        return origin
    package = path.relative_to(CHECKOUT).parent.parts
    base = package[: len(package) - dots + 1]
    return ".".join((*base, *filter(None, origin[dots:].split("."))))


def layer(module):
    """The layer of one of our modules, `None` for third-party modules."""
    first, _, rest = module.partition(".")
    if first != "cygrad":
        return None
    second = rest.partition(".")[0]
    if second in TOP_PACKAGES:
        return TOP_LAYER
    return PRIVATE_LAYERS.get(second, PUBLIC_LAYER)


def is_private(module):
    return any(part.startswith("_") for part in module.split("."))


# --- The rules ---------------------------------------------------------------------------------


def test_there_is_something_to_read():
    layers = {layer(module) for module in MODULES}
    assert layers == {1, 2, 3, 4, 5}
    tensor = CHECKOUT / "cygrad" / "_core" / "graph" / "tensor.pxd"
    assert ("cygrad._core.graph.node", True) in set(imported(tensor))


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_imports_point_down(path):
    own = layer(module_name(path))
    for module, _ in imported(path):
        if layer(module) is None or any(place(path) == who and module.startswith(what) for who, what in UPWARD):
            continue
        assert layer(module) <= own, f"{place(path)} (layer {own}) imports {module}"


@pytest.mark.parametrize("path", [path for path in SOURCES if layer(module_name(path)) == TOP_LAYER], ids=place)
def test_top_layer_uses_public_names_alone(path):
    top_package = ".".join(module_name(path).split(".")[:2])
    for module, _ in imported(path):
        if layer(module) is not None and not module.startswith(top_package):
            allowed = any(place(path) == who and f"{module}.".startswith(f"{what}.") for who, what in INWARD)
            assert allowed or not is_private(module), f"{place(path)} reaches into {module}"


def test_pxd_files_form_no_circle():
    # Cython compiles circular .pxd imports only if their order happens to work.
    graph = {
        module_name(path): {module for module, is_cimport in imported(path) if is_cimport and layer(module)}
        for path in SOURCES
        if path.suffix == ".pxd"
    }
    done = set()

    def visit(module, trail):
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for other in graph.get(module, ()):
                visit(other, [*trail, module])
            done.add(module)

    for module in graph:
        visit(module, [])


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_cupy_is_imported_in_few_places(path):
    if place(path).startswith(CUPY_IS_IMPORTED_IN):
        return
    modules = {module.partition(".")[0] for module, _ in imported(path)}
    assert "cupy" not in modules
    assert not re.search(r"""(import_module|__import__)\(["']cupy""", path.read_text("utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_files_are_short(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_FILE, f"{place(path)} has {lines} lines: split it by concept"


def test_each_module_is_compiled_once():
    # One extension per .pyx: no `include`, and no .py with the same name.
    for path in SOURCES:
        code = STRINGS.sub('""', path.read_text(encoding="utf-8"))
        assert not re.search(r"^\s*include\s+[\"']", code, re.MULTILINE), place(path)
        if path.suffix == ".pyx":
            assert not path.with_suffix(".py").exists(), place(path)


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_cython_sees_what_is_cimported(path):
    """Cython recompiles a file when a `.pxd` it uses changes, but misses `from package cimport module`."""
    for match in IMPORT.finditer(COMMENT.sub("", STRINGS.sub('""', path.read_text(encoding="utf-8")))):
        if match["origin"] and match["how"] == "cimport":
            names = _names(match["list"] or match["names"])
            modules = [name for name in names if f"{match['origin']}.{name}" in MODULES]
            assert not modules, f"write `cimport {match['origin']}.{modules[0]} as {modules[0]}`"
