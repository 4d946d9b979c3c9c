"""Search, themes and menus work, with the keyboard alone."""

import re

NARROW = 360


def results(tab):
    tab.wait_for_selector("#search-results li a")
    return [(each.get_attribute("href"), each.inner_text()) for each in tab.query_selector_all("#search-results li a")]


def test_the_search_box_finds_a_method(visit):
    tab = visit.open("index.html")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("retain_grad")
    tab.keyboard.press("Enter")
    found = results(tab)
    assert "cygrad.Tensor.retain_grad" in found[0][0]
    assert visit.wrong == []


def test_the_search_box_finds_words_of_a_lesson(visit):
    tab = visit.open("search.html?q=checkerboard+nonsense+xyzzy")
    tab.wait_for_selector("#search-results h2")
    assert results_are_none(tab)
    tab = visit.open("search.html?q=saved_tensors_hooks")
    assert any(href.startswith("learn/") for href, _ in results(tab))


def results_are_none(tab):
    tab.wait_for_function("() => /did not match|no results/i.test(document.querySelector('#search-results').innerText)")
    return not tab.query_selector_all("#search-results li a")


def focused(tab):
    """The text or label of what has the focus, and whether an outline or a ring shows that."""
    return tab.evaluate("""() => {
        const e = document.activeElement, s = getComputedStyle(e);
        if (e === document.body) return ["", false];
        const rings = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none";
        return [(e.innerText || e.ariaLabel || e.title || "").trim(), rings];
    }""")


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit):
    tab = visit.open("learn/index.html")
    reached = []
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.append(focused(tab))
    words = [word for word, _ in reached]
    assert words[0] == "Skip to main content"
    assert "Reference" in words
    assert [word for word, rings in reached if word and not rings] == []
    tab.evaluate("() => document.activeElement.blur()")
    tab.goto(f"{visit.address}/learn/index.html")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    assert tab.url.endswith("#main-content")


def test_escape_closes_the_search_box(visit):
    tab = visit.open("index.html")
    tab.keyboard.press("Control+k")
    assert tab.evaluate("() => document.activeElement.type") == "search"
    tab.keyboard.press("Escape")
    assert tab.evaluate("() => document.activeElement.type") != "search"


def test_the_theme_can_be_switched_and_is_kept(visit):
    theme = "() => document.documentElement.dataset.theme"
    tab = visit.open("index.html")
    assert tab.evaluate(theme) == "light"  # what the system asks for
    tab.locator("button.theme-switch-button:visible").press("Enter")
    tab.locator("button[data-mode=dark]:visible").press("Enter")
    assert tab.evaluate(theme) == "dark"
    tab.goto(f"{visit.address}/learn/tensors.html")
    assert tab.evaluate(theme) == "dark"
    tab.evaluate("() => localStorage.clear()")  # other tests begin as they would alone


def test_the_menu_of_a_narrow_window_opens_and_leads_on(visit):
    tab = visit.open("learn/tensors.html", NARROW)
    tab.locator("button.primary-toggle").press("Enter")
    link = tab.get_by_role("dialog").get_by_role("link", name=re.compile("Reference")).first
    link.wait_for(state="visible")
    link.press("Enter")
    tab.wait_for_url("**/reference/index.html")
    assert visit.wrong == []
