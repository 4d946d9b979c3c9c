"""The site's lessons run, its contents name every page, and its reference finds all that it is made from.

`tox -e docs` builds the site, with warnings as errors; these tests need no Sphinx.
"""

import os
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest
from checkout import CHECKOUT, imported

import cygrad
from cygrad import nn

DOCS = CHECKOUT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.name != "README.md")
LESSONS = [page for page in PAGES if "```{code-cell}" in page.read_text(encoding="utf-8")]
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUNNER = CHECKOUT / "tests" / "support" / "run_page.py"


def place(page):
    return page.relative_to(DOCS).as_posix()


def extension(name):
    """Import a module of docs/_ext."""
    return imported(f"docs/_ext/{name}.py")


@pytest.mark.parametrize("page", LESSONS, ids=place)
def test_cells_run(page, tmp_path):
    if "sklearn" in page.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn")
        pytest.importorskip("matplotlib")
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(Path(cygrad.__file__).parent.parent)}
    command = [sys.executable, str(RUNNER), str(page)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_the_runner_notices_a_cell_that_fails_and_one_that_does_not(tmp_path):
    page = tmp_path / "page.md"
    for code, passes in [
        ("x = 1", True),
        ("1 / 0", False),
        (":tags: [raises-exception]\n1 / 0", True),
        (":tags: [raises-exception]\nx = 1", False),
    ]:
        page.write_text(f"```{{code-cell}} python\n{code}\n```\n")
        done = subprocess.run([sys.executable, str(RUNNER), str(page)], capture_output=True)
        assert (done.returncode == 0) is passes, code


def test_every_page_is_in_the_contents():
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for tree in TREE.findall(page.read_text(encoding="utf-8")):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed.update(Path(os.path.normpath(page.parent / f"{name}.md")) for name in names)
    assert set(PAGES) <= listed
    generated = DOCS / "reference" / "api"
    assert not [page for page in listed if page.parent != generated and not page.exists()]


def test_pages_that_are_files_elsewhere_exist():
    repository = extension("repository")
    for page, path in repository.PAGES.items():
        assert (DOCS / f"{page}.md").exists()
        assert (CHECKOUT / path).exists()


def test_links_to_files_outside_lead_to_pages_or_become_words():
    repository = extension("repository")
    page = DOCS / "project" / "contributing.md"
    text = "[a](docs/ops.md#x) [b](CHANGELOG.md) [c](setup.py) [d](https://a.org) [e](#f)"
    text += " ![g](docs/architecture.svg) [h](examples/digits.py)"
    address = repository.source_address()
    source = f"[c]({address}setup.py)" if address else "c"
    wanted = f"[a](../ops.md#x) [b](changelog.md) {source} [d](https://a.org) [e](#f)"
    wanted += " ![g](../architecture.svg) [h](../../examples/digits.py)"
    assert repository.mend(text, CHECKOUT, page) == wanted


def test_links_that_lead_nowhere_are_found(tmp_path):
    links = extension("links")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.html").write_text(
        '<p id="x"></p><a href="../index.html"></a><a href="#x"></a><img src="c.png">'
    )
    page = '<a href="a/b.html#x"></a><a href="a/b.html#y"></a><a href="https://a.org/n"></a><a href="a/"></a>'
    (tmp_path / "index.html").write_text(page)
    assert links.broken(tmp_path) == {"a/b.html": ["c.png"], "index.html": ["a/", "a/b.html#y"]}


def test_the_gallery_shows_every_example():
    tool = imported("tools/make_gallery.py")
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run python tools/make_gallery.py --page"
    for name in tool.NAMES:
        assert (tool.KEPT / f"{name}.txt").exists(), f"run python tools/make_gallery.py {name}"
        assert tool.pictures(name), f"{name}.py draws nothing that the gallery shows"
    assert {path.stem for path in tool.pictures("digits")} == {"digits", "digits_network"}


def test_what_differs_from_run_to_run_is_left_out(tmp_path, monkeypatch):
    tool = imported("tools/make_gallery.py")
    monkeypatch.setattr(tool, "KEPT", tmp_path / "kept")
    (tmp_path / "drawn").mkdir()
    (tmp_path / "drawn" / "my-sweep.png").write_bytes(b"picture")
    tool.keep("sweep", tmp_path / "drawn", "trained 8 epochs in 3.1 s\nround 1, 2.5 s: good\nall in 4.0 s\nwrote /x\n")
    assert (tmp_path / "kept" / "sweep.txt").read_text() == "trained 8 epochs\nround 1: good\n"
    assert (tmp_path / "kept" / "my_sweep.png").read_bytes() == b"picture"


def test_reference_quotes_docstrings_and_what_is_verified():
    reference = extension("reference")
    pages = reference.Reference()
    pages.add_module(cygrad)
    pages.add_tensor()
    add = pages.pages["ops.arithmetic"]
    assert ".. py:function:: cygrad.add(input, other, *, alpha=1, out=None)" in add
    assert (
        "PyTorch's name: \\ ``torch.add``\\ . Takes tensors of every common dtype. Verified: gradients of any order, "
        "forward mode, \\ ``vmap``\\ , GPU" in add
    )
    assert "Verified as the in-place form of \\ ``logical_or``\\ ." in pages.pages["cygrad"]
    assert ".. py:method:: cygrad.Tensor.retain_grad()" in pages.pages["cygrad.Tensor"]
    assert "``cygrad.Tensor.exp``: :py:obj:`cygrad.exp`" in pages.pages["cygrad.Tensor"]


def test_reference_says_which_function_a_layer_calls_and_what_is_verified_for_that():
    pages = extension("reference").Reference()
    layers = [value for value in vars(nn).values() if isinstance(value, type) and issubclass(value, nn.Module)]
    said = {layer.__name__: pages.function_of(layer) for layer in layers}
    assert said["ReLU"].startswith("Calls `nn.functional.relu`. What is verified for it: gradients of any order, ")
    assert "Calls `nn.functional.conv2d`. " in said["LazyConv2d"]
    assert "Calls `lstm_cell`. " in said["LSTMCell"]
    assert said["Sequential"] == ""
    assert sum(map(bool, said.values())) > 120
    for name in filter(None, (line.partition("`")[2].partition("`")[0] for line in said.values())):
        assert callable(attrgetter(name)(cygrad))


def test_reference_says_what_pytorch_calls_a_name():
    names = extension("reference").NamesOfPyTorch()
    assert names.sentence("cygrad.distributed", "all_reduce") == "PyTorch's name: `torch.distributed.all_reduce`."
    assert names.sentence("cygrad", "logical_or_") == "PyTorch's name: `torch.Tensor.logical_or_`."
    assert names.sentence("cygrad", "why_no_grad") == "Only in cygrad."
    assert names.sentence("cygrad.distributed", "no_such_name") == ""  # these are not listed as a whole


def test_docstrings_become_text_without_markup():
    reference = extension("reference")
    assert reference.prose("a*b of `x_` and g_") == "a\\*b of \\ ``x_``\\  and g\\_"
    assert reference.prose("*not* (N, *, C * r**2), **never**") == "*not* (N, \\*, C \\* r\\*\\*2), **never**"
    assert reference.block([">>> 1", "1"]).startswith(".. code-block:: pycon")
    equations = reference.block(["    m = b * m", "    w -= lr * m"])
    assert equations == ".. code-block:: text\n   :class: equations\n\n   m = b * m\n   w -= lr * m"
    assert ":class:" not in reference.block(["| a | b |", "|---|---|"])
    assert reference.block(["- one", "  more", "- two"]) == "- one\n  more\n- two"
    assert reference.signature(lambda input, dim=pytest: 0) == "(input, dim=...)"
