"""The built site, served to a headless Chromium: `tox -e docs`, then `tox -e docs-browser`."""

import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "build" / "docs"
ALL = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))  # none where there is no site
PAGES = [page for page in ALL if not page.startswith("_static/")]  # where the theme keeps a template
# Debian, Fedora and Google give it these names.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE = 1280


def pytest_generate_tests(metafunc):
    if "page" in metafunc.fixturenames:
        without = pytest.param("", marks=pytest.mark.skip(reason="there is no site in build/docs: run tox -e docs"))
        metafunc.parametrize("page", PAGES or [without])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing: the browser reports what is missing."""


@pytest.fixture(scope="session")
def address():
    """The address under which the site is served."""
    if not PAGES:
        pytest.skip("there is no site in build/docs: run tox -e docs")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browser():
    """Chromium, as the system has it: Playwright's own copy would be a download of 150 MB."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright (tox -e docs-browser)")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium on PATH (apt-get install chromium), and CHROMIUM does not name one")
    with sync_api.sync_playwright() as playwright:
        # Its sandbox needs rights that containers and root do not have; the pages are our own.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


class Visit:
    """A tab of the browser that keeps what goes wrong in it."""

    def __init__(self, tab, address):
        self.tab, self.address, self.wrong = tab, address, []
        tab.on("console", lambda message: self.note(message.type == "error", message.text))
        tab.on("pageerror", lambda error: self.note(True, str(error)))
        tab.on("requestfailed", lambda request: self.note(True, f"{request.url}: {request.failure}"))
        tab.on("response", lambda response: self.note(response.status >= 400, f"{response.url}: {response.status}"))
        tab.on("request", lambda request: self.note(not request.url.startswith((address, "data:")), request.url))

    def note(self, is_wrong, what):
        if is_wrong:
            self.wrong.append(what)

    def open(self, page, width=WIDE):
        self.tab.set_viewport_size({"width": width, "height": 800})
        self.tab.goto(f"{self.address}/{page}", wait_until="load")
        return self.tab

    def set_theme(self, theme):
        self.tab.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)


@pytest.fixture(scope="module")
def context(browser):
    with browser.new_context(reduced_motion="reduce", color_scheme="light") as made:
        yield made


@pytest.fixture
def visit(context, address):
    tab = context.new_page()
    yield Visit(tab, address)
    tab.close()
