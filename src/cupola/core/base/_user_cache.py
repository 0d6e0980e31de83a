"""Where files that can be made again are kept for this user."""

from __future__ import annotations

import os


def user_cache_directory(name: str) -> str:
    """The folder `name` in cupola's part of the user's cache (``$XDG_CACHE_HOME``, else ``~/.cache``)."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "cupola", name)
