"""Excerpts of searches where the site is opened from its files.

Sphinx's search reads the pages that it has found to show excerpts of them. Browsers forbid that to pages that were
opened from a file. This Sphinx extension writes the texts of all pages into one script, which such a search loads
instead (``_static/search-from-file.js``).
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any


def text_of(page: str) -> str:
    """Text and sections of a page, as HTML that Sphinx's search understands."""
    found = re.search(r'<article role="main"[^>]*>(.*?)</article>', page, re.S)
    if not found:
        return ""
    body = re.sub(r'<a class="headerlink".*?</a>|<script.*?</script>|<style.*?</style>', "", found[1], flags=re.S)
    # A name of the API is a place, too.
    body = re.sub(r'<dt[^>]*? id="([^"]*)"[^>]*>', r'<section id="\1"></section>', body)
    body = re.sub(r"<(?!/?section)[^>]*>", " ", body)
    body = re.sub(r"<section[^>]*?( id=\"[^\"]*\")?[^>]*>", r"<section\1>", body)
    return '<div role="main">' + " ".join(body.split()) + "</div>"


def write(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    pages = {path.relative_to(folder).as_posix(): text_of(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    pages = {name: text for name, text in pages.items() if html.unescape(text)}
    (folder / "_static" / "search-texts.js").write_text(f"window.siteTexts = {json.dumps(pages)};\n")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write)
    app.add_js_file("search-from-file.js")
    return {"parallel_read_safe": True}
