"""Version, changelog and citation name the same release, and late fragments find their place."""

import re

import pytest
from checkout import CHECKOUT, imported

import cygrad

CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    return imported("tools/fold_changelog.py")


def test_the_newest_release_is_named_alike_everywhere():
    version, date = re.search(r"^## (\S+) - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.MULTILINE).groups()
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {date}\n" in citation
    if not re.search("dev|rc", cygrad.__version__):
        assert cygrad.__version__ == version


def test_fragments_have_a_type(tool):
    for path in tool.FRAGMENTS.glob("+*.md"):
        assert path.name.split(".")[-2] in tool.types(), path.name


SECTION = """\
## 0.2.0 - 2027-01-01

Words.

### Added

#### Ops

- One.

### Fixed

- Two.
"""
WITH_THREE = """\
## 0.2.0 - 2027-01-01

Words.

### Added

#### Ops

- One.

#### Also

- A new op, with words on
  two lines.

### Changed

- Old words.

### Fixed

- Two.
- Three.
"""


def test_late_fragments_go_to_the_end_of_their_part(tool, monkeypatch):
    monkeypatch.setattr(tool, "WIDTH", 26)
    fragments = {
        "+op.added.md": "A new op, with words on\ntwo lines.\n",
        "+old.changed.md": "Old words.\n",
        "+three.fixed.md": "Three.\n",
    }
    assert tool.folded(SECTION, fragments) == WITH_THREE
    more = tool.folded(WITH_THREE, {"+z.added.md": "Last."})
    assert more == WITH_THREE.replace("  two lines.\n", "  two lines.\n- Last.\n")
    assert tool.folded(WITH_THREE, {}) == WITH_THREE
    with pytest.raises(SystemExit, match="a type is one of added, changed"):
        tool.folded(SECTION, {"+a.new.md": "x"})


def test_folding_moves_the_files_and_keeps_older_sections(tool, tmp_path, monkeypatch):
    older = "## 0.1.0 - 2026-11-28\n\n### Added\n\n- Old.\n"
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{SECTION}\n{older}")
    (tmp_path / "+three.fixed.md").write_text("Three.\n")
    (tmp_path / "README.md").write_text("stays")
    monkeypatch.setattr(tool, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(tool, "FRAGMENTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["fold_changelog.py"])
    tool.main()
    folded = SECTION.replace("- Two.\n", "- Two.\n- Three.\n")
    assert (tmp_path / "CHANGELOG.md").read_text() == f"# Changelog\n\n{folded}\n{older}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CHANGELOG.md", "README.md"]
