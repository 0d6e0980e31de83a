"""Graphs: work that is recorded once and launched as a whole, many times."""

from cupola.graph._builder import GraphBuilder
from cupola.graph._condition import GraphCondition
from cupola.graph._graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.graph._options import GraphCompleteOptions, GraphDebugPrintOptions

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphCondition", "GraphDebugPrintOptions"]


def __getattr__(name: str) -> object:
    """Import the options when they are first used: dataclasses are slow to import."""
    if name in __all__:
        from cupola.graph import _options

        globals()[name] = value = getattr(_options, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
