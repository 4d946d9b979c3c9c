"""Writes the pages of the reference before Sphinx reads the sources: a page for each public module and family of ops.

Names, signatures and docstrings come from the installed package. PyTorch's names come from
`tools/pytorch_names.json`, the dtypes that an op takes from `tools/op_dtypes.json`, and what the tests verify for it
from the table in `docs/ops.md`. The pages are in reStructuredText, where a docstring can be quoted without any of its
characters being taken for markup.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cygrad

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("reference") / "api"

# Pages in the order of the contents; every other module follows under the last heading.
CONTENTS = {
    "Tensors and their functions": "cygrad cygrad.Tensor OPS cygrad.linalg cygrad.fft cygrad.special "
    "cygrad.signal.windows cygrad.masked cygrad.sparse cygrad.random cygrad.quasirandom",
    "Differentiation": "cygrad.autograd cygrad.autograd.function cygrad.autograd.graph cygrad.autograd.functional "
    "cygrad.autograd.forward_ad cygrad.func cygrad.library cygrad.errors cygrad.viz",
    "Training": "cygrad.nn cygrad.nn.functional cygrad.nn.init cygrad.nn.utils cygrad.nn.attention cygrad.optim "
    "cygrad.optim.lr_scheduler cygrad.optim.swa_utils cygrad.distributions cygrad.amp cygrad.utils.data "
    "cygrad.utils.checkpoint cygrad.serialization",
    "Devices and speed": "cygrad.cuda cygrad.cpu cygrad.accelerator cygrad.backends cygrad.profiler "
    "cygrad.utils.benchmark cygrad.compiler",
    "Everything else": "",
}
# What a mark in a column of docs/ops.md says in a sentence; a column that is not here says nothing.
VERIFIED = {
    "gradient": "gradient",
    "any order": "gradients of any order",
    "forward mode": "forward mode",
    "vmap": "`vmap`",
    "GPU": "GPU",
    "complex": "complex inputs",
    "in place": "in-place form",
    "out=": "`out=`",
}

# --- What there is -----------------------------------------------------------------------------------------


def public_modules() -> Iterator[Any]:
    """Yield the package and every module below it whose name has no underscore."""
    yield cygrad
    for info in pkgutil.walk_packages(cygrad.__path__, "cygrad."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def public_names(module: Any) -> list[str]:
    """Return the names of a module's own functions and classes, in alphabetical order."""
    names = getattr(module, "__all__", None)  # an empty one says that all its names are internal
    names = [name for name in dir(module) if name[0] != "_"] if names is None else names
    found = []
    for name in sorted(set(names), key=lambda name: (name.lower(), name)):
        value = getattr(module, name)
        ours = (getattr(value, "__module__", None) or "").startswith("cygrad")
        if ours and callable(value) and not inspect.ismodule(value):
            found.append(name)
    return found


def sentence_of(cells: dict[str, str]) -> str:
    """Return what the cells of a row of docs/ops.md say of the op."""
    marks = [words for column, words in VERIFIED.items() if cells[column] == "✓"]
    if cells["any order"] == "✓":
        marks.remove("gradient")
    said = [f"Verified: {', '.join(marks)}." if marks else ""]
    said.append({"loop": "`vmap` loops over the samples.", "–": "`vmap` refuses."}.get(cells["vmap"], ""))
    said.append("Has no derivative." if cells["gradient"] == "–" else "")
    said.append("The result is a view." if cells["view"] == "✓" else "")
    return " ".join(filter(None, said))


def verified() -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Read docs/ops.md: a sentence on what is verified for each op, and the (family, its description) of each."""
    sentences: dict[str, str] = {}
    families: dict[str, tuple[str, str]] = {}
    text = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        family, _, body = section.partition("\n")
        about = body.strip().partition("\n\n")[0]
        columns: list[str] = []
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| op |"):
                columns = cells
            elif line.startswith("| `"):
                sentence = sentence_of(dict(zip(columns, cells, strict=True)))
                for name in re.findall(r"`([^`]+)`", cells[0]):
                    sentences[f"cygrad.{name}"] = sentence
                    families[name] = (family, about)
    return sentences, families


class NamesOfPyTorch:
    """Which names PyTorch has, as `tools/pytorch_names.json` stores them."""

    def __init__(self) -> None:
        stored = json.loads((ROOT / "tools" / "pytorch_names.json").read_text(encoding="utf-8"))
        self.theirs: dict[str, set[str]] = {}
        for part in ("names", "functions", "others"):
            for owner, names in stored[part].items():
                self.theirs.setdefault(owner, set()).update(names)
        self.whole = {*stored["names"], *stored["functions"]}  # what is not stored of these, PyTorch does not have

    def sentence(self, path: str, name: str) -> str:
        """Return what is known about a name in a module or class of cygrad."""
        owner = path.replace("cygrad", "torch", 1)
        if name in self.theirs.get(owner, ()):
            return f"PyTorch's name: `{owner}.{name}`."
        if owner == "torch" and name in self.theirs["torch.Tensor"]:  # a method that is a function here as well
            return f"PyTorch's name: `torch.Tensor.{name}`."
        return "Only in cygrad." if owner in self.whole else ""


# --- Text --------------------------------------------------------------------------------------------------


# Words between one or two asterisks, where these are no signs of multiplication or powers; see `prose`.
EMPHASIS = re.compile(r"(?<!\S)((?:\\\*){1,2})[A-Za-z][\w ]*?(?<! )\1(?=[\s.,:;)]|$)")


def prose(text: str) -> str:
    """Return a line of a docstring as reStructuredText.

    Words in backticks are code, words between asterisks are emphasized, and everything else stays as it is.
    """
    parts = re.split(r"``?([^`\n]+)``?", text)
    out = []
    for i, part in enumerate(parts):
        if i % 2 and part.strip() == part:
            out.append(f"\\ ``{part}``\\ ")
        else:
            escaped = re.sub(r"([\\*_|`])", r"\\\1", part)
            out.append(EMPHASIS.sub(lambda found: found[0].replace("\\*", "*"), escaped))
    return re.sub(r"^\\ |\\ $", "", "".join(out)) or "\\ "


def indented(text: str, by: int = 3) -> str:
    return "\n".join(" " * by + line if line else "" for line in text.splitlines())


def block(lines: list[str]) -> str:
    """Return one paragraph, list, example or table of a docstring as reStructuredText."""
    if lines[0].startswith(">>>"):
        return ".. code-block:: pycon\n\n" + indented("\n".join(lines))
    if lines[0].startswith("- "):
        return "\n".join(f"- {prose(line[2:])}" if line[:2] == "- " else f"  {prose(line.strip())}" for line in lines)
    if any(line[0] in " |>" for line in lines):
        is_table = any(line.lstrip().startswith("|") for line in lines)
        options = "" if is_table else "   :class: equations\n"
        return f".. code-block:: text\n{options}\n" + indented(textwrap.dedent("\n".join(lines)))
    # One paragraph a block, whose words may be in backticks across the ends of its lines.
    return prose(" ".join(lines))


def body(value: Any) -> str:
    """Return an object's docstring as reStructuredText."""
    doc = value.__doc__ if isinstance(getattr(value, "__doc__", None), str) else ""
    groups = re.split(r"\n\s*\n", inspect.cleandoc(doc).strip())
    return "\n\n".join(block(group.splitlines()) for group in groups if group.strip())


def signature(value: Any, bound: bool = False) -> str:
    """Return a callable's parameters without annotations; `(...)` if they cannot be known."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    if bound and parameters and parameters[0].name in ("self", "input", "cls"):
        parameters = parameters[1:]
    if parameters and parameters[-1].kind is parameters[-1].POSITIONAL_ONLY:
        parameters = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind is p.POSITIONAL_ONLY else p for p in parameters]
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    return re.sub(r"<[^<>]*(?:<[^<>]*>)*[^<>]*>", "...", text).replace("\n", " ")


# --- Pages -------------------------------------------------------------------------------------------------


def form_of(method: Any) -> Any:
    """Return the function that does what a method does, if there is one, else the method."""
    return getattr(method, "function_form", method)


def functions_named_like(layer: type) -> Iterator[str]:
    """Yield the names that the function which a layer calls may have."""
    if hasattr(layer, "_function"):
        yield layer._function
    yield from re.findall(r"`F\.(\w+)`", layer.__doc__ or "")[:1]
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=Cell)", "_", layer.__name__.removeprefix("Lazy")).lower()
    yield from (words, re.sub(r"_?\d+d$", "", words), layer.__name__.lower())
    if words.startswith("rnn"):
        yield words.replace("rnn", "rnn_tanh")
    if re.search(r"_pad\dd$", words):
        yield "pad"


class Reference:
    """All pages, by their names."""

    def __init__(self) -> None:
        self.verified, self.families = verified()
        self.pytorch = NamesOfPyTorch()
        self.names: list[str] = []
        self.dtypes = json.loads((ROOT / "tools" / "op_dtypes.json").read_text(encoding="utf-8"))
        self.home: dict[int, tuple[str, Any]] = {}  # the first public name of each object, and the object, kept alive
        self.pages: dict[str, str] = {}
        self.ops: list[str] = []

    def facts(self, module: str, name: str, value: Any) -> str:
        """Return what is known of a name besides its docstring."""
        words = [
            self.pytorch.sentence(module, name),
            self.dtypes.get(f"{module}.{name}".removeprefix("cygrad."), ""),
            self.verified.get(f"{module}.{name}", "") or self.in_place_form_of(module, name),
            self.function_of(value),
        ]
        line = " ".join(filter(None, words))
        return f".. rst-class:: verified\n\n{prose(line)}" if line else ""

    def in_place_form_of(self, module: str, name: str) -> str:
        """Return which op a name is the in-place form of, if that form is verified."""
        said = self.verified.get(f"{module}.{name.removesuffix('_')}", "")
        return f"Verified as the in-place form of `{name[:-1]}`." if name.endswith("_") and "in-place" in said else ""

    def function_of(self, layer: Any) -> str:
        """Return which function a layer of `nn` calls, and what is verified for that."""
        if not isinstance(layer, type) or not issubclass(layer, cygrad.nn.Module):
            return ""
        for name in functions_named_like(layer):
            for path in (f"nn.functional.{name}", name):
                said = self.verified.get(f"cygrad.{path}", "")
                if said.startswith("Verified: "):
                    path = f"nn.functional.{name}" if hasattr(cygrad.nn.functional, name) else name
                    return f"Calls `{path}`. What is verified for it: {said.removeprefix('Verified: ')}"
        return ""

    def entry(self, module: str, name: str, value: Any, kind: str) -> str:
        self.names.append(f"{module}.{name}")
        parts = [f".. py:{kind}:: {module}.{name}{signature(value, kind == 'method')}"]
        parts += [indented(part) for part in (body(value), self.facts(module, name, value)) if part]
        if kind == "class":
            for inner, member in self.members(value, f"{module}.{name}"):
                parts.append(indented(member if isinstance(member, str) else inner))
        return "\n\n".join(parts)

    def members(self, owner: type, path: str) -> Iterator[tuple[str, str]]:
        """Yield the own methods and properties of a class, each with its entry."""
        for name, value in sorted(vars(owner).items()):
            if name.startswith("_"):
                continue
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if callable(plain) and not isinstance(plain, type):
                if id(form_of(plain)) in self.home:
                    continue
                self.home[id(plain)] = (f"{path}.{name}", plain)
                yield name, self.entry(path, name, plain, "method")
            elif inspect.isdatadescriptor(value) and isinstance(getattr(value, "__doc__", None), str):
                yield name, f".. py:attribute:: {path}.{name}\n\n{indented(body(value))}"

    def page(self, title: str, intro: str, entries: list[str], aliases: list[tuple[str, str]]) -> str:
        parts = [f"{title}\n{'=' * (len(title) + 2)}", intro, *entries]
        if aliases:
            lines = [f"- ``{name}``: :py:obj:`{target}`" for name, target in aliases if name != target]
            parts += ["Also by these names\n-------------------", "\n".join(lines)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def add_module(self, module: Any) -> None:
        entries, aliases = [], []
        by_family: dict[tuple[str, str], list[str]] = {}
        place = module.__name__
        for name in public_names(module):
            value = getattr(module, name)
            if id(value) in self.home:
                aliases.append((f"{place}.{name}", self.home[id(value)][0]))
                continue
            self.home[id(value)] = (f"{place}.{name}", value)
            if value is cygrad.Tensor:
                continue
            text = self.entry(place, name, value, "class" if isinstance(value, type) else "function")
            if module is cygrad and name in self.families:
                by_family.setdefault(self.families[name], []).append(text)
            else:
                entries.append(text)
        for (family, about), texts in sorted(by_family.items()):
            self.ops.append(f"ops.{family.replace(' ', '_')}")
            self.pages[self.ops[-1]] = self.page(
                f"Ops: {family.replace('_', ' ')}", prose(" ".join(about.split())), texts, []
            )
        listed = any(place in names.split() for names in CONTENTS.values())
        if entries or aliases and listed:  # a module that only gives things another name needs no page
            self.pages[place] = self.page(place, body(module), entries, aliases)

    def add_tensor(self) -> None:
        functions, entries = [], []
        for name in list(vars(cygrad.Tensor)):
            getattr(cygrad.Tensor, name, None)  # methods that are imported on first access
        for name, value in sorted(vars(cygrad.Tensor).items()):
            if id(form_of(value)) in self.home and not name.startswith("_") and callable(value):
                functions.append((f"cygrad.Tensor.{name}", self.home[id(form_of(value))][0]))
        entries = [text for _, text in self.members(cygrad.Tensor, "cygrad.Tensor")]
        head = f".. py:class:: cygrad.Tensor{signature(cygrad.Tensor)}\n\n{indented(body(cygrad.Tensor))}"
        self.pages["cygrad.Tensor"] = self.page("cygrad.Tensor", head, entries, functions)

    def build(self) -> dict[str, str]:
        for module in public_modules():
            self.add_module(module)
            if module is cygrad:
                self.add_tensor()
        self.pages["index"] = self.contents()
        return self.pages

    def contents(self) -> str:
        """Return the page that lists all others."""
        rest = set(self.pages)
        parts = ["All pages\n========="]
        for heading, names in CONTENTS.items():
            listed = [each for name in names.split() for each in (self.ops if name == "OPS" else [name])]
            listed = [name for name in listed if name in rest] if names else sorted(rest)
            rest -= set(listed)
            tree = f".. toctree::\n   :caption: {heading}\n   :maxdepth: 1\n\n" + indented("\n".join(listed))
            parts += [f"{heading}\n{'-' * len(heading)}", tree]
        return "\n\n".join(parts) + "\n"


def write(app: Any) -> None:
    """Write pages that changed, and remove those of modules that are gone."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{name}.rst": text for name, text in Reference().build().items()}
    for path in folder.glob("*.rst"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
