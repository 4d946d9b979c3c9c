"""Every example in a docstring or a page runs and prints the documented output.

pytest's own collector misses compiled functions, so this module walks the public names itself.
"""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest
from checkout import CHECKOUT

import cygrad

FLAGS = doctest.ELLIPSIS


# --- Docstrings --------------------------------------------------------------------------------


def public_modules():
    """Yield cygrad and every module below it whose name has no underscore."""
    yield cygrad
    for info in pkgutil.walk_packages(cygrad.__path__, "cygrad."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def public_names(module):
    """A module's public names: `__all__`, or else all names defined by us without an underscore."""
    names = getattr(module, "__all__", None)
    names = [n for n in dir(module) if n[0] != "_"] if names is None else names
    for name in names:
        value = getattr(module, name)
        if not inspect.ismodule(value) and (getattr(value, "__module__", None) or "").startswith("cygrad"):
            yield name, value


def members(kind):
    """A class's own methods and properties."""
    for name, value in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if callable(value) or inspect.isdatadescriptor(value):
            yield name, value


def documented():
    """Yield `(name, object)` once for each public object, under its first public name."""
    seen = set()

    def first_time(value):
        # Equal ids mean the same object only because every object below stays alive.
        is_new = id(value) not in seen
        seen.add(id(value))
        return is_new

    for module in public_modules():
        yield module.__name__, module
        for name, value in public_names(module):
            if not first_time(value):
                continue
            path = f"{module.__name__}.{name}"
            if isinstance(value, type):
                yield path, value
                for inner, member in members(value):
                    if first_time(member):
                        yield f"{path}.{inner}", member
            elif callable(value):
                yield path, value


OBJECTS = dict(documented())


def own_doc(value):
    """The object's own docstring. An instance may inherit its class's docstring, but not that of a base class."""
    if inspect.ismemberdescriptor(value):
        slots = value.__objclass__.__slots__
        doc = slots[value.__name__] if isinstance(slots, dict) else None
    else:
        doc = getattr(value, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


WITH_EXAMPLES = {name: value for name, value in OBJECTS.items() if ">>>" in own_doc(value)}
# Examples whose first line says so need a GPU; the stand-in for CuPy serves where there is none.
ON_A_GPU = {name for name, value in WITH_EXAMPLES.items() if "# on a machine with a GPU" in own_doc(value)}


def run_examples(text, name, filename):
    """Run the examples of one text in a namespace of their own."""
    if "onnx.export(" in text:
        pytest.importorskip("onnxruntime", reason="needs cygrad[onnx]")
    test = doctest.DocTestParser().get_doctest(text, {"__name__": name}, name, filename, 0)
    report = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not results.failed, "".join(report)
    assert results.attempted


def test_walk_finds_compiled_functions_and_methods():
    assert "cygrad.autograd.grad" in OBJECTS
    assert "cygrad.Tensor.backward" in OBJECTS
    compiled = [v for v in OBJECTS.values() if type(v).__name__ == "cython_function_or_method"]
    assert len(compiled) > 50


@pytest.mark.parametrize("name", [name for name in WITH_EXAMPLES if name not in ON_A_GPU])
def test_examples(name):
    value = WITH_EXAMPLES[name]
    run_examples(own_doc(value), name, f"<docstring of {name}>")


@pytest.mark.parametrize("name", sorted(ON_A_GPU))
def test_examples_on_a_gpu(name, cupy):
    run_examples(own_doc(WITH_EXAMPLES[name]), name, f"<docstring of {name}>")


def test_public_objects_say_what_they_are():
    without_docstring = [name for name, value in OBJECTS.items() if not own_doc(value)]
    assert not without_docstring


# --- Pages -------------------------------------------------------------------------------------

PAGES = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)  # code, and what it prints
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def page_examples(page):
    """All `>>>` blocks of a page as one text, because later ones may depend on earlier ones."""
    blocks = FENCE.findall(page.read_text(encoding="utf-8"))
    return "\n\n".join(block for block in blocks if ">>>" in block)


def place(page):
    return page.relative_to(CHECKOUT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if page_examples(page)], ids=place)
def test_examples_on_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(page_examples(page), place(page), place(page))


def test_links_on_pages_lead_somewhere():
    links = [
        (page, target) for page in PAGES for target in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    ]
    missing = [f"{place(page)}: {target}" for page, target in links if not (page.parent / target).exists()]
    assert links
    assert not missing
