"""How Sphinx builds the site: `tox -e docs`, or `python -m sphinx -W --keep-going docs build/docs`."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import cygrad  # noqa: E402

project = "cygrad"
author = "the cygrad developers"
copyright = author
version = release = cygrad.__version__

extensions = ["myst_nb", "sphinx_copybutton", "links", "mathml", "reference", "repository", "search_order"]
exclude_patterns = ["README.md", "**/README.md"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}

# Lessons are executed at each build, and an error in a cell that does not announce one ends it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_render_error_lexer = "text"

# Errors are shown without the frames of cygrad's own code: their text names the lines that matter.
KERNEL = tempfile.TemporaryDirectory(prefix="cygrad-docs-")
os.environ["IPYTHONDIR"] = KERNEL.name
profile = Path(KERNEL.name) / "profile_default"
profile.mkdir()
(profile / "ipython_config.py").write_text('c = get_config()\nc.InteractiveShell.xmode = "Minimal"\n')

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
# Examples are shown with their prompts; copying leaves the prompts and the output out.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

suppress_warnings = ["myst.xref_ambiguous"]

# Every reference has to lead somewhere. `links` checks the finished pages, `tox -e docs-links` the links to elsewhere.
nitpicky = True
linkcheck_timeout = 30
linkcheck_retries = 3

html_theme = "pydata_sphinx_theme"
html_title = "cygrad"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"  # a nabla
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"  # what is on a page begins with the name of the page
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": [], "gallery": []}  # pages without others below or beside them
html_context = {"default_mode": "auto"}
