"""The page of a timeline in a browser without a network: what is there, and that it can be moved, zoomed and searched.

It needs Chromium, which CI does not have.
"""

from __future__ import annotations

import pytest

from cupola.profile._page import page
from cupola.profile._record import Record
from tests.profile import browser

PROGRAM = browser.find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here")

STREAMS = 60
NAMES = "rows.map(row => row.name)"
VIEW = "[from, from + scale]"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A browser with many streams, of which each has a kernel, beside a thread that launches them."""
    records = [Record("range", "a step </script><b>", 0, 1_000_000, place=7)]
    for number in range(STREAMS):
        begin = 10_000 * number
        records.append(Record("call", "cuLaunchKernel", begin, begin + 2000, place=7, call=number + 1))
        records.append(
            Record("kernel", f"wave{number}", begin + 3000, begin + 9000, device=0, place=number, grid=(4, 1, 1))
        )
    records.append(Record("mark", "the end", 990_000, 990_000, place=7))
    folder = tmp_path_factory.mktemp("viewer")
    file = folder / "timeline.html"
    file.write_text(page(records), encoding="utf-8")
    assert PROGRAM is not None
    with browser.Browser(PROGRAM, folder / "profile", file) as opened:
        yield opened


@pytest.fixture
def viewer(shown):
    shown.value("document.getElementById('all').click(); scrollTo(0, 0)")
    yield shown
    assert shown.said == []  # neither errors nor warnings
    assert [address.partition(":")[0] for address in shown.asked] == ["file"]


def place_of(viewer, name: str) -> tuple[float, float]:
    """Where the middle of the first bar of a name is in the window."""
    x, y = viewer.value(
        f"(() => {{ const bar = data.bars.find(bar => data.names[bar[2]] === {name!r}), row = rows[bar[0]];"
        " return [x(bar[3] + bar[4] / 2), canvas.getBoundingClientRect().top + row.y + bar.level * HEIGHT + 6] })()"
    )
    return x, y


def search(viewer, text: str) -> None:
    viewer.value("search.value = ''; search.focus()")
    viewer.do("Input.insertText", text=text)


def press_enter(viewer, **more) -> None:
    for kind in ("keyDown", "keyUp"):
        viewer.do("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, **more)


def test_tracks_and_bars_are_there(viewer):
    assert viewer.value(NAMES) == ["thread 7", *(f"device 0, stream {n + 1}" for n in range(STREAMS))]
    assert viewer.value("document.getElementById('what').textContent") == "122 records, 1.000 ms"
    x, y = place_of(viewer, "a step </script><b>")
    pixel = (
        f"pen.getImageData({x} * devicePixelRatio, ({y} - canvas.getBoundingClientRect().top) * devicePixelRatio, 1, 1)"
    )
    assert viewer.value(f"[...{pixel}.data]") == [0x7C, 0x5C, 0xBF, 255]  # the color of ranges
    assert viewer.value("document.documentElement.scrollWidth <= innerWidth")
    assert viewer.picture().startswith(b"\x89PNG")


def test_the_wheel_zooms_where_the_pointer_is(viewer):
    x, y = map(round, place_of(viewer, "wave1"))
    before = viewer.value(VIEW)
    at = viewer.value(f"time({x})")
    viewer.mouse("mouseWheel", x, y, deltaX=0, deltaY=-1000)
    after = viewer.value(VIEW)
    assert after[1] - after[0] < (before[1] - before[0]) / 5
    assert viewer.value(f"time({x})") == pytest.approx(at, abs=1)


def test_a_click_zooms_to_a_bar_and_a_button_shows_all(viewer):
    x, y = place_of(viewer, "wave1")
    for kind in ("mousePressed", "mouseReleased"):
        viewer.mouse(kind, x, y, button="left", clickCount=1)
    assert viewer.value(VIEW) == pytest.approx([13_000 - 1200, 19_000 + 1200])
    viewer.value("document.getElementById('all').click()")
    assert viewer.value(VIEW) == pytest.approx([-10_000, 1_010_000])


def test_a_bar_says_what_it_is(viewer):
    x, y = place_of(viewer, "wave1")
    viewer.mouse("mouseMoved", x, y)
    said = viewer.value("told.style.display + told.textContent")
    assert said.startswith("blockkernel wave1\n6.00 µs, from 13.00 µs on")
    assert "grid: 4 x 1 x 1" in said


def test_dragging_moves_in_both_directions(viewer):
    """The wheel zooms, so streams below the window are reached by dragging."""
    before = viewer.value(VIEW)
    viewer.mouse("mousePressed", 700, 600, button="left", clickCount=1)
    for step in (100, 200):
        viewer.mouse("mouseMoved", 700 - step, 600 - step, button="left", buttons=1)
    viewer.mouse("mouseReleased", 500, 400, button="left", clickCount=1)
    assert viewer.value("scrollY") == 200
    after = viewer.value(VIEW)
    assert after[0] > before[0] and after[1] - after[0] == pytest.approx(before[1] - before[0])


def test_a_name_is_found_wherever_it_is(viewer):
    search(viewer, "WAVE5")
    count = "document.getElementById('found').textContent"
    assert viewer.value(count) == "11"  # 5, and 50 to 59
    press_enter(viewer)
    assert viewer.value(count) == "1 of 11"
    assert viewer.value(VIEW) == pytest.approx([53_000 - 1200, 59_000 + 1200])
    press_enter(viewer, modifiers=8)  # Shift
    assert viewer.value(count) == "11 of 11"
    _, y = place_of(viewer, "wave59")
    assert 0 < y < viewer.value("innerHeight")  # it was far below
    search(viewer, "nothing")
    assert viewer.value(count) == "none"
    search(viewer, "the end")
    press_enter(viewer)
    assert viewer.value(f"{VIEW}[0] < 990000 && 990000 < {VIEW}[1]")  # a mark has no length
    search(viewer, "")
    viewer.value("search.value = ''; search.dispatchEvent(new Event('input'))")
    assert viewer.value(count) == ""
