"""Sphinx: the pages of this folder, and the API from the docstrings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import api_pages
import gallery

project = "cupola"
author = copyright = "the cupola developers"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "stub_signatures",
    "gallery",
    "search_texts",
    "sphinx.ext.linkcode",
    "api_pages",
]
html_theme = "furo"
html_title = "cupola"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#30308c", "color-brand-content": "#30308c"},
    "dark_css_variables": {"color-brand-primary": "#b9c8ff", "color-brand-content": "#8fb4ff"},
}
sphinx_gallery_conf = gallery.settings()
exclude_patterns = ["_build", "_gallery"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# Every method, function and attribute that a text refers to must exist; types are prose as often as names.
nitpicky = True
# Classes of the bindings, which have no page of their own.
_NVML_ERRORS = ("py:exc", r"(cupola\.)?(system\.)?(GpuIsLost|InvalidArgument|NotFound|NotSupported|Nvml|Timeout)Error")
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", ".*"), ("py:exc", r"cupola\.bindings\..*"), _NVML_ERRORS]
linkcode_resolve = api_pages.link
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
