"""The gallery and the notebooks: sphinx-gallery runs programs of ``examples/`` while the site is built.

This is a Sphinx extension. It makes of each example a program as sphinx-gallery wants it, whose first line is a
heading, and shows the PNG files that programs save. Notebooks (``examples/notebooks``) are such programs already.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

try:
    import whole_programs
except ModuleNotFoundError:  # imported from the root of the repository, as tests do
    from docs import whole_programs

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
STAGED = DOCS / "_gallery"

# Folders of the gallery: a title, what is in it, and the programs in their order.
SECTIONS = {
    "typical": (
        "Typical programs",
        "Programs that everybody knows, each on a page, with what it prints and its picture.",
        """vector_add saxpy reduction histogram matmul sort image_filter stencil mandelbrot game_of_life heat_equation
        nbody k_means attention""",
    ),
    "more": (
        "More of the device",
        "Textures, streams, graphs, tensor cores, clusters, several devices.",
        """fluid rotate_image prefix_sum streams graph_replay conditional_graph device_graphs adaptive compile_cache
        separate_compilation tensor_cores cluster_histogram hopper_matmul several_devices tenants""",
    ),
    "processes": (
        "Programs in processes of their own",
        "These choose their device, start processes, or take long. They are shown as they are: run them from a clone.",
        "tour numpy_programs debugger ipc checkpoint mpi_heat nccl_allreduce dask_statistics ray_pipeline",
    ),
}
NOTEBOOK = r"\d\w*"  # their names begin with their number

HEADER = """{title}
{line}

{about}
"""

GALLERY = """Gallery
=======

Programs to start from. Each ran on the CPU device when this page was made, and runs on a GPU as it is. Each compares
its result with NumPy's, so it fails if it is wrong. What you download runs as it is: nothing else goes beside it.
"""

NOTEBOOKS = """Notebooks
=========

Five notebooks, to be read in this order. Each ran when this page was made. At the end of each page there is the
notebook for Jupyter, and the same as a Python program. They draw with matplotlib (``pip install matplotlib``).
"""


def staged(name: str) -> str:
    """An example as sphinx-gallery wants it: the first sentence of its text becomes a heading."""
    source = (EXAMPLES / f"{name}.py").read_text()
    found = re.match(r'"""(.*?)"""', source, re.S)
    assert found, name
    text = re.sub(r" `\w+\.py \[FILE\.png\]`", "", found[1])
    text = re.sub(r"(?<!`)`(?!`)", "``", text)
    first, _, rest = text.strip().partition("\n")
    title, separator, about = first.partition(": ")
    if not separator:
        title, about = first.rstrip("."), ""
    if "(" in title and ")" not in title or len(title) > 60:
        title, about = name.replace("_", " ").capitalize(), first
    title = title.rstrip(".")
    about = about[:1].upper() + about[1:] if about[1:2].isalpha() else about
    commands = re.sub(r"(?m)^(python|CUPOLA_DEVICE|CUPOLA_CPU|mpiexec|cupola) ?.*$", "", rest).strip()
    program = whole_programs.whole(source, EXAMPLES)[found.end() :]
    body = f'"""\n{title}\n{"=" * len(title)}\n\n{about}\n\n{commands}\n"""' + program
    return re.sub(r'\n{3,}"""', '\n"""', body, count=1)


def stage() -> None:
    """Write the programs and the headings of the gallery, if they differ from what is there."""
    wanted = {STAGED / "programs" / "GALLERY_HEADER.rst": GALLERY}
    for folder, (title, about, names) in SECTIONS.items():
        place = STAGED / "programs" / folder
        wanted[place / "GALLERY_HEADER.rst"] = HEADER.format(title=title, line="-" * len(title), about=about)
        wanted.update({place / f"{name}.py": staged(name) for name in names.split()})
    wanted[STAGED / "notebooks" / "GALLERY_HEADER.rst"] = NOTEBOOKS
    for path in sorted((EXAMPLES / "notebooks").glob("*.py")):
        wanted[STAGED / "notebooks" / path.name] = path.read_text()
    for path in STAGED.rglob("*.*"):
        if path not in wanted and path.suffix in {".py", ".rst"}:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


class Pictures:
    """Takes the PNG files that a program has saved beside itself."""

    def __repr__(self) -> str:  # a part of the configuration, which must not change from run to run
        return "Pictures"

    def __call__(self, block: Any, variables: dict[str, Any], configuration: dict[str, Any]) -> str:
        from sphinx_gallery.scrapers import figure_rst

        folder, paths = Path(variables["src_file"]).parent, variables["image_path_iterator"]
        taken = []
        for picture in sorted(folder.glob("*.png")):
            taken.append(next(paths))
            shutil.move(picture, taken[-1])
        return figure_rst(taken, configuration["src_dir"])


def reset(configuration: dict[str, Any], name: str) -> None:
    """Each program gets a device without traces of the one before, such as a fault."""
    from cupola import Device
    from cupola.bindings import driver

    gc.collect()  # what is left of it is destroyed while it still can be
    for number in range(len(Device.get_all_devices())):
        driver.cuDevicePrimaryCtxReset(number)
    driver.cuCtxSetCurrent(0)
    for helper in whole_programs.MODULES:
        sys.modules.pop(helper, None)


def in_order(folder: str) -> Any:
    """A sorting key for the programs of a folder: the order in SECTIONS, and names for notebooks."""
    names = SECTIONS[Path(folder).name][2].split() if Path(folder).name in SECTIONS else []
    return lambda file: (names.index(Path(file).stem) if Path(file).stem in names else 0, file)


class Order:
    """The same for sphinx-gallery, which makes one for each folder."""

    def __init__(self, folder: str) -> None:
        self.key = in_order(folder)

    def __call__(self, file: str) -> Any:
        return self.key(file)


def executed() -> list[str]:
    """The programs that run while the site is built: none where the tests run them anyway (CUPOLA_GALLERY=shown)."""
    if os.environ.get("CUPOLA_GALLERY") == "shown":
        return []
    return [name for folder, (_, _, names) in SECTIONS.items() if folder != "processes" for name in names.split()]


def settings() -> dict[str, Any]:
    return {
        "examples_dirs": [str(STAGED / "programs"), str(STAGED / "notebooks")],
        "gallery_dirs": ["gallery", "notebooks"],
        "filename_pattern": rf"/({'|'.join([NOTEBOOK, *executed()])})\.py$",
        "subsection_order": "gallery.folder_order",
        "within_subsection_order": "gallery.Order",
        "image_scrapers": ("gallery.pictures", "matplotlib"),
        "reset_modules": ("gallery.reset", "matplotlib"),
        "capture_repr": ("_repr_html_",),
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_signature": False,
        "default_thumb_file": str(DOCS / "images" / "program.png"),
        "write_computation_times": False,
        "remove_config_comments": True,
        "inspect_global_variables": False,
        "copyfile_regex": "",
    }


def folder_order(folder: str) -> int:
    names = list(SECTIONS)
    return names.index(Path(folder).name) if Path(folder).name in names else 0


pictures = Pictures()


def without_sphinx_gallery() -> None:
    """Pages that only show the sources, for those who build the pages without the extra ``docs``."""
    for folder in ("programs", "notebooks"):
        target = DOCS / {"programs": "gallery"}.get(folder, folder)
        target.mkdir(exist_ok=True)
        names = []
        for path in sorted((STAGED / folder).rglob("*.py")):
            title = re.findall(r"^(?!\"\"\")\S.*$", path.read_text(), re.M)[0]
            page = target / path.relative_to(STAGED / folder).with_suffix(".rst")
            page.parent.mkdir(exist_ok=True)
            source = os.path.relpath(path, page.parent)
            page.write_text(f":orphan:\n\n{title}\n{'=' * len(title)}\n\n.. literalinclude:: {source}\n")
            names.append(page.relative_to(target).with_suffix("").as_posix())
        heading = folder.capitalize()
        text = [heading, "=" * len(heading), "", "Built without sphinx-gallery.", "", ".. toctree::", ""]
        (target / "index.rst").write_text("\n".join([*text, *(f"   {name}" for name in names)]) + "\n")


def setup(app: Any) -> dict[str, bool]:
    os.environ.setdefault("CUPOLA_DEVICE", "cpu")
    os.environ.setdefault("CUPOLA_CPU_DEVICES", "2")
    sys.path.insert(0, str(EXAMPLES))
    stage()
    if importlib.util.find_spec("sphinx_gallery") and importlib.util.find_spec("matplotlib"):
        app.setup_extension("sphinx_gallery.gen_gallery")
    elif os.environ.get("CI"):
        raise ModuleNotFoundError("the gallery needs sphinx-gallery and matplotlib: make docs installs them")
    else:
        print(
            "the gallery shows sources only, because sphinx-gallery or matplotlib is missing: make docs installs them"
        )
        without_sphinx_gallery()
    return {"parallel_read_safe": True}
