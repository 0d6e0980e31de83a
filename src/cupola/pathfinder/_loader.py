"""The operating system's loader, whichever it is.

``open_file`` loads the library of a path, ``try_open`` one that the system finds by its name (or only asks whether it
is loaded), ``refusal`` why one that it finds cannot be loaded, ``path_of`` the file behind a handle.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from ._loader_windows import open_file, path_of, refusal, try_open
else:
    from ._loader_linux import open_file, path_of, refusal, try_open

__all__ = ["open_file", "path_of", "refusal", "try_open"]
