"""Found by processes that a program with the stand-in starts; see cupola/standins/__init__.py."""

from cupola.standins import spawned

spawned(__name__)
