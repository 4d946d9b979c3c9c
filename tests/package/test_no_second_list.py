"""Facts on ops are stated in their rows: no source lists five or more ops by name, except for those named below."""

import ast
import re
import sys
from collections import Counter

import pytest
from checkout import CHECKOUT

from cygrad._core.graph.opdef import facts_of, registry
from cygrad._ops.lazy_names import FUNCTIONS

SOURCES = sorted(
    path
    for layer in ("_core", "_ops", "_kernels")
    for pattern in ("*.py", "*.pyx")
    for path in (CHECKOUT / "cygrad" / layer).rglob(pattern)
    if path.name != "lazy_names.py"  # generated from the rows
)
FEWEST = 5
DECLARED = re.compile(r"""\b(?:op|declare)\(\s*"(\w+)["."]""")
MODULE_NAMES = ("__all__", "composite", "forms", "functions", "methods")  # what a family publishes besides its rows
REGISTERED_BY = ("publish", "rule")  # functions that take the names of rows of the family

KERNELS = "names of kernels, which the module dispatches"
NUMPY = "names of NumPy's functions and CuPy's"

# {file: (number of lists, why)}. A list more or less fails the test.
EXCEPTIONS = {
    "_core/graph/tensor.pyx": (1, "operators, by their names in Python's protocols"),
    "_core/diagnostics/float8_errors.py": (4, "PyTorch's words for functions that refuse float8"),
    "_core/registry/float8.py": (2, "ops that refuse float8 in special cases only"),
    "_core/registry/torch_function.py": (2, "methods of Tensor, and operators, by their names in Python's protocols"),
    "_kernels/cpu/base/elementwise.pyx": (1, KERNELS),
    "_kernels/cpu/base/reduce.pyx": (1, KERNELS),
    "_kernels/cpu/base/ufunc.pyx": (2, NUMPY),
    "_kernels/cpu/base/numpy_fallback.py": (3, "the kernels that PyTorch's errors name where it refuses float8"),
    "_kernels/cpu/indexing/indexing.py": (1, KERNELS),
    "_kernels/cpu/indexing/scatter.py": (2, "kernels, and the reductions that scatter_reduce accepts"),
    "_kernels/gpu/base/ufunc.py": (1, NUMPY),
    "_kernels/sparse/errors.py": (1, "PyTorch's words for functions that refuse sparse layouts"),
    "_ops/foreach/table.py": (2, "the declaration of the `_foreach_` functions"),
    "_ops/numpy_api/shapes.py": (1, NUMPY),
    "_ops/reduction/segments.py": (1, "the reductions that segment_reduce accepts"),
    "_ops/sparse/arithmetic.py": (3, "the functions that leave zeros zero, and parts of the table `forms`"),
    "_ops/sparse/dispatch.py": (1, "PyTorch's words for functions that refuse sparse tensors"),
    "_ops/shape/view_copies.py": (2, "the declaration of the `_copy` forms"),
}


def names_of_ops():
    """The names of all rows, as the registry or their declarations spell them, and of functions without a row."""
    registry.import_families()
    found = {name.partition(".")[0] for name in registry} | {
        name for names in FUNCTIONS.values() for name in names.split()
    }
    for path in SOURCES:
        found.update(DECLARED.findall(path.read_text()))
    return found


OPS = names_of_ops()


def count(values):
    """How many of these strings are names of ops; "max.dim" and "svd:1" count as the op itself."""
    return len({word for value in values if (word := re.split(r"[.:]", value)[0]) in OPS})


def strings_of(node):
    """The strings of a literal: its elements, or the words of a string that is split."""
    if isinstance(node, ast.Dict):
        return [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return node.value.split()


def lists_in_python(text):
    """The line numbers of literals with too many names of ops in Python source."""
    tree = ast.parse(text)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            skipped.add(node.body[0].value)
        if isinstance(node, ast.Assign) and any(named(target) in MODULE_NAMES for target in node.targets):
            skipped.update(ast.walk(node))
        if isinstance(node, ast.Call) and named(node.func) in REGISTERED_BY:
            skipped.update(ast.walk(node))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node in skipped or not (is_text or isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)):
            continue
        words = strings_of(node)
        if count(words) >= FEWEST and (not is_text or len(words) < 2 * count(words)):  # otherwise it is prose
            yield node.lineno


def named(target):
    """The name of a variable that is assigned to, or changed."""
    target = target.value if isinstance(target, ast.Subscript) else target
    return target.id if isinstance(target, ast.Name) else None


# Brackets around strings, or keys and values, with commas between. Each text matches in one way alone: else the time to
# search would grow exponentially with the length of a list that does not match.
_ELEMENT = r'"[\w.:]+"(?:\s*:[^,\]})]+)?'
_BRACKETS = re.compile(rf"[(\[{{]\s*({_ELEMENT}(?:\s*,\s*{_ELEMENT})*)\s*,?\s*[)\]}}]")


def lists_in_cython(text):
    """The same for Cython source: brackets with too many names, or a string of them."""
    text = re.sub(r'"""(?:\\.|[^\\])*?"""', lambda match: "\n" * match[0].count("\n"), text)
    for match in _BRACKETS.finditer(text):
        if count(re.findall(r"\"([\w.:]+)\"", match[1])) >= FEWEST:
            yield text[: match.start()].count("\n") + 1
    for match in re.finditer(r'"([^"\n]*)"', text):
        words = match[1].split()
        if count(words) >= FEWEST and len(words) < 2 * count(words):
            yield text[: match.start()].count("\n") + 1


def lists_in(path):
    text = path.read_text()
    return list((lists_in_cython if path.suffix == ".pyx" else lists_in_python)(text))


def test_no_list_of_ops():
    """A file that fails lists ops in the given lines: state these facts in the rows of the ops instead."""
    found = {path.relative_to(CHECKOUT / "cygrad").as_posix(): lists_in(path) for path in SOURCES}
    allowed = {place: number for place, (number, _) in EXCEPTIONS.items()}
    assert {place: lines for place, lines in found.items() if len(lines) != allowed.get(place, 0)} == {}
    assert allowed.keys() <= found.keys()


@pytest.mark.parametrize("name", sorted(facts_of["direct"]))
def test_direct_rows_have_entry_points_that_only_apply_them(name):
    entry = registry[name].entry
    function, row = entry.__code__.co_names
    assert function == "apply1"
    assert entry.__globals__[row] is registry[name]


def test_batching_rules_are_those_of_ops():
    rules = re.compile(r"""@rule\(\s*"([^"]*)\"""")
    unknown, known = {}, 0
    for path in SOURCES:
        text = path.read_text()
        named = {name.partition(".")[0] for names in rules.findall(text) for name in names.split()}
        known += len(named)
        if others := named - OPS - set(re.findall(r"\bdef (\w+)\(", text)):  # some functions have no row
            unknown[path.relative_to(CHECKOUT / "cygrad").as_posix()] = others
    assert known > 150
    assert not unknown


def test_lists_are_found():
    text = "add mul sin cos exp"
    assert list(lists_in_python(f"x = {text.split()}")) == [1]
    assert list(lists_in_python(f"x = {text!r}.split()")) == [1]
    assert list(lists_in_python(f"x = {dict.fromkeys(text.split(), 1)}")) == [1]
    assert list(lists_in_cython(f'x = "{text}".split()')) == [1]
    assert list(lists_in_cython('x = ("add", "mul", "sin", "cos", "exp")')) == [1]
    assert not list(lists_in_python('x = ["add", "mul", "sin", "cos"]'))


def test_a_method_is_published_by_one_family():
    """Otherwise the family that happens to be imported last decides what the method does."""
    families = [module for module in list(sys.modules.values()) if "published_methods" in vars(module)]
    publishers = Counter(name for family in families for name in family.published_methods)
    assert len(publishers) > 400
    assert [name for name, number in publishers.items() if number > 1] == []


def test_a_function_is_in_one_family_of_those_imported_on_first_use():
    names = [name for names in FUNCTIONS.values() for name in names.split()]
    assert len(names) == len(set(names))
