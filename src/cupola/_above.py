"""The way up: what a room needs of a room above it, asked for by name.

Imports go downward only. Where a method gives back an object of a room above its own, as `Device.create_graph_builder`
does, or needs what is built on its class, it says ``above("GraphBuilder")``. Only the top, ``cupola`` itself, knows
where that is: its table hands its look-up down before any room is imported.
"""

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_look_up: "Callable[[str], Any] | None" = None
_found: "dict[str, Any]" = {}


def above(name: str) -> "Any":
    """What has that name in the table of ``cupola``; imported when it is first asked for."""
    found = _found.get(name)
    if found is None:
        assert _look_up is not None, "cupola is imported before its rooms"
        found = _found[name] = _look_up(name)
    return found


def hand_down(look_up: "Callable[[str], Any]") -> None:
    """Take the look-up of the top."""
    global _look_up
    _look_up = look_up
