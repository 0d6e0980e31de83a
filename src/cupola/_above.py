"""The way up: a lower folder asks for what it needs from a higher one by name.

Imports go downward only. If a method returns an object of a class in a higher folder, as `Device.create_graph_builder`
does, or needs something that is built on its own class, it calls ``above("GraphBuilder")``. Only the top, ``cupola``
itself, knows where that is: it passes its look-up down before any of these folders is imported.
"""

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_look_up: "Callable[[str], Any] | None" = None
_found: "dict[str, Any]" = {}


def above(name: str) -> "Any":
    """The object with that name in the table of ``cupola``, imported at the first use."""
    found = _found.get(name)
    if found is None:
        assert _look_up is not None, "cupola is imported before its rooms"
        found = _found[name] = _look_up(name)
    return found


def hand_down(look_up: "Callable[[str], Any]") -> None:
    """Set the look-up, which ``cupola`` passes down."""
    global _look_up
    _look_up = look_up
