"""Found by processes that a program under ``cupola run`` spawns; see cupola/_aliases.py."""

from cupola._aliases import spawned

spawned(__name__)
