#!/usr/bin/env python3
"""Look at the built site as a reader does: in a browser, on a desk and on a phone, light and dark.

usage: python tools/site_look.py [docs/_build/html] [--pictures FOLDER] [--all]

It needs Chromium (`apt-get install chromium`) and serves the folder to it at a port of this computer. It fails when a
page scrolls sideways, when a link leads to a page, a picture or a heading that is not there, and when a search
has no excerpts, from the server or from the files. With ``--pictures`` it saves how some pages look. Without ``--all``
it measures one page of each kind.
"""

from __future__ import annotations

import argparse
import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

WIDTHS = {"desk": 1280, "phone": 390}
LOOKED_AT = (
    "index.html", "start.html", "guides/profiling.html", "guides/index.html", "gallery/index.html",
    "gallery/typical/k_means.html", "notebooks/4_graphs.html", "troubleshooting.html", "comparison.html",
    "api/programs.html", "api/generated/cupola.Stream.html", "performance.html", "find-the-bug.html", "bindings.html",
)  # fmt: skip

MEASURE = """<!doctype html><body style="margin:0"><pre id="out">not done</pre><script>
const pages = PAGES, widths = WIDTHS, found = [];
async function look() {
  for (const [name, width] of Object.entries(widths)) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width:${width}px;height:900px;border:0`;
    document.body.append(frame);
    for (const page of pages) {
      await new Promise(done => { frame.onload = done; frame.src = "/" + page; });
      const root = frame.contentDocument.documentElement;
      if (root.scrollWidth > width) {
        const wide = [...frame.contentDocument.querySelectorAll("article *, main *")]
          .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 90));
        found.push([page, name, root.scrollWidth, wide]);
      }
    }
    frame.remove();
  }
  document.getElementById("out").textContent = JSON.stringify(found);
  document.title = "done";
}
look();
</script>"""

SHOW = """<!doctype html><body style="margin:0"><script>
localStorage.setItem("theme", "THEME");
const frame = document.createElement("iframe");
frame.style.cssText = "width:WIDTHpx;height:HEIGHTpx;border:0;display:block";
frame.src = "/PAGE";
document.body.append(frame);
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and the pages above that look at it."""

    extra: dict[str, str] = {}

    def do_GET(self) -> None:
        if self.path.startswith("/look/"):
            body = self.extra[self.path].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


def chromium(*arguments: str) -> str:
    program = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if program is None:
        raise SystemExit("Chromium is missing: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        whole = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
        ]
        done = subprocess.run([*whole, *arguments], capture_output=True, text=True, timeout=300)
    return done.stdout


def measure(pages: list[str], address: str) -> list[str]:
    """Pages that are wider than the window."""
    text = MEASURE.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    Handler.extra["/look/measure"] = text
    dom = chromium("--virtual-time-budget=600000", "--dump-dom", f"{address}/look/measure")
    found = re.search(r'<pre id="out">(.*?)</pre>', dom, re.S)
    if not found or found[1] == "not done":
        raise SystemExit("the browser did not come to its end")
    rows = json.loads(html.unescape(found[1]))
    return [f"{page} scrolls sideways on a {name}: {width} pixels. {wide}" for page, name, width, wide in rows]


def dead_links(site: Path) -> list[str]:
    """Links within the site that lead nowhere."""
    texts = {path: path.read_text(errors="replace") for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'\s(?:id|name)="([^"]*)"', text)) for path, text in texts.items()}
    wrong = []
    for path, text in texts.items():
        for link in set(re.findall(r'\s(?:href|src)="([^"]*)"', text)):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc or link.startswith("#") and len(link) == 1:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: there is no {link}")
            elif parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]:
                wrong.append(f"{path.relative_to(site)}: {link} has no such place")
    return sorted(wrong)


def searches(site: Path, address: str) -> list[str]:
    """Searches whose results have no excerpts."""
    wrong = []
    for where in (address, site.as_uri()):
        for words in ("printf", "tutorial", "race"):
            dom = chromium("--virtual-time-budget=20000", "--dump-dom", f"{where}/search.html?q={words}")
            results = re.search(r'<ul[^>]* class="search">(.*?)</ul>', dom, re.S)
            excerpts = re.findall(r'<p class="context">(.*?)</p>', results[1] if results else "", re.S)
            if not any(words in re.sub("<.*?>", "", text).lower() for text in excerpts):
                wrong.append(f"search for {words} at {where.partition(':')[0]}: no result with an excerpt")
    return wrong


def picture(page: str, name: str, theme: str, folder: Path, address: str) -> None:
    width, height = WIDTHS[name], 900 if name == "desk" else 1400
    text = SHOW.replace("THEME", theme).replace("PAGE", page).replace("WIDTH", str(width))
    Handler.extra["/look/show"] = text.replace("HEIGHT", str(height))
    file = folder / f"{page.replace('/', '_').removesuffix('.html')}-{name}-{theme}.png"
    window = f"--window-size={max(width, 500)},{height}"
    chromium(f"--screenshot={file}", window, "--virtual-time-budget=4000", f"{address}/look/show")


def main() -> int:
    parser = argparse.ArgumentParser(description="Look at the built site in a browser.")
    parser.add_argument("site", nargs="?", type=Path, default=Path("docs/_build/html"))
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of some pages")
    parser.add_argument("--links", action="store_true", help="look at the links only, which needs no browser")
    parser.add_argument("--all", action="store_true", help="measure all pages")
    options = parser.parse_args()
    site = options.site.resolve()
    if not (site / "index.html").is_file():
        raise SystemExit(f"there is no site in {site}: make docs")
    wrong = dead_links(site)
    if not options.links:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        every = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
        wrong += measure(every if options.all else [page for page in LOOKED_AT if page in every], address)
        wrong += searches(site, address)
        if options.pictures:
            options.pictures.mkdir(parents=True, exist_ok=True)
            for page in LOOKED_AT:
                for name in WIDTHS:
                    for theme in ("light", "dark"):
                        picture(page, name, theme, options.pictures, address)
        server.shutdown()
    print("\n".join(wrong) or f"{site}: nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
