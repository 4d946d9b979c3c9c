"""Every page loads whole, fits narrow and wide windows, and can be read by everyone, in the light and in the dark."""

from pathlib import Path

import pytest

NARROW, WIDE = 360, 1280
# What sticks out of the window to the right, unless it lies in a part that is made to scroll by itself.
SCROLLING = "pre, .highlight, .pst-scrollable-table-container, .formula, .output, dialog"
STICKING_OUT = """scrolling => {
    const width = document.documentElement.clientWidth;
    return [...document.querySelectorAll("body *")]
        .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > width + 1)
        .filter(e => !e.parentElement.closest(scrolling))
        .slice(0, 5).map(e => e.outerHTML.slice(0, 120));
}"""
MISSING = "() => [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
# Contrast depends on the theme; everything else does not.
CONTRAST = {"runOnly": ["color-contrast", "link-in-text-block"]}
# axe takes minutes for thousands of entries, which all look alike: it sees the first ones of each list and table.
LONGEST = 12
SHORTEN = """longest => {
    const repeated = "article section > section, dl.py, section > dl, tbody > tr, article li, nav li, pre > span";
    for (const parent of new Set([...document.querySelectorAll(repeated)].map(e => e.parentElement)))
        [...parent.children].filter(e => e.matches(repeated)).slice(longest).forEach(e => e.remove());
}"""
GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def axe():
    """The text of axe-core."""
    package = pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python (tox -e docs-browser)")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(tab, axe, options=None):
    """What axe finds that is serious or critical, each with the places."""
    if tab.evaluate("() => typeof axe") == "undefined":
        tab.evaluate(SHORTEN, LONGEST)
        tab.evaluate(axe)
    # Loaded by axe itself, style sheets would be looked for in the wrong folder.
    how = {"resultTypes": ["violations"], "preload": False, **(options or {})}
    found = tab.evaluate("options => axe.run(document, options).then(result => result.violations)", how)
    return [
        f"{each['id']}: {each['help']}: {[node['html'][:150] for node in each['nodes'][:3]]}"
        for each in found
        if each["impact"] in GRAVE
    ]


def test_page(page, visit, axe):
    tab = visit.open(page, NARROW)
    assert tab.evaluate(STICKING_OUT, SCROLLING) == []
    tab.set_viewport_size({"width": WIDE, "height": 800})
    assert tab.evaluate(STICKING_OUT, SCROLLING) == []
    assert tab.title()
    assert tab.evaluate(MISSING) == []
    assert violations(tab, axe) == []
    visit.set_theme("dark")
    assert violations(tab, axe, CONTRAST) == []
    assert visit.wrong == []


def test_faults_are_found(visit, axe):
    """The checks above find what is wrong with a page that has it all."""
    tab = visit.open("index.html", NARROW)
    tab.evaluate("""() => {
        const add = html => document.querySelector("article").insertAdjacentHTML("beforeend", html);
        add('<div style="width: 900px">wide</div>');
        add('<p style="color: #ccc; background: white">pale</p>');
        add('<img src="nowhere.png">');
        console.error("a mistake");
    }""")
    tab.wait_for_load_state("networkidle")
    assert tab.evaluate(STICKING_OUT, SCROLLING)[0].startswith("<div style")
    assert [each.partition(":")[0] for each in violations(tab, axe)] == ["color-contrast", "image-alt"]
    assert tab.evaluate(MISSING) == [f"{visit.address}/nowhere.png"]
    assert "a mistake" in visit.wrong
    assert f"{visit.address}/nowhere.png: 404" in visit.wrong
