"""The process that has an array, and those who connect with it: no cluster of Ray is needed (test_transport.py)."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading

import numpy
import pytest

pytest.importorskip("ray", reason="needs Ray")

import ray

import cupola.numpy as np
from tests import limits


@pytest.fixture
def transport():
    from cupola.ray import _transport

    return _transport


@pytest.fixture
def server(transport, monkeypatch, device):
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")
    made = transport._Server()
    made.arrays["t" * 32] = np.arange(10.0)
    return made


def fetched(transport, server):
    return transport._fetch(server.address, "t" * 32, (10,), "f8").to_numpy().tolist() == list(range(10))


@pytest.mark.parametrize("message", [b"", b"x", b"u" * 32, b"\xff" * 32, b"u" * 100])
def test_who_has_no_token_gets_nothing(transport, server, message):
    with socket.create_connection(server.address, timeout=limits.seconds()) as stranger:
        stranger.send(message)
        with contextlib.suppress(ConnectionResetError):  # not all that it has said was read
            with contextlib.suppress(OSError):  # it has been sent away already
                stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == b""
    assert fetched(transport, server)


@pytest.mark.parametrize("what", ["accept", "thread"])
def test_it_goes_on_where_files_or_threads_are_short(transport, server, monkeypatch, what):
    owner, name = (socket.socket, "accept") if what == "accept" else (threading.Thread, "start")
    error = OSError(errno.EMFILE, "too many open files") if what == "accept" else RuntimeError("can't start new thread")
    failures, usual = iter([error]), getattr(owner, name)

    def fails_at_first(*arguments, **options):
        for failure in failures:
            raise failure
        return usual(*arguments, **options)

    monkeypatch.setattr(owner, name, fails_at_first)
    socket.create_connection(server.address).close()
    if what == "thread":
        limits.until(lambda: next(failures, None) is None)
    assert fetched(transport, server)
    assert fetched(transport, server)


def test_silent_strangers_have_their_time(transport, server, monkeypatch):
    """They take all turns, and lose them."""
    monkeypatch.setattr(transport, "TOKEN_PATIENCE", 2.0)
    strangers = [socket.create_connection(server.address) for _ in range(transport.MOST_PEERS + 10)]
    assert fetched(transport, server)
    for stranger in strangers:
        stranger.close()


def test_an_array_that_cannot_be_read(transport, server, monkeypatch, caplog):
    monkeypatch.setattr(transport._own, "make_current", lambda: (_ for _ in ()).throw(transport.CUDAError("no device")))
    with pytest.raises(ConnectionError):
        transport._fetch(server.address, "t" * 32, (10,), numpy.dtype("f8").str)
    limits.until(lambda: "could not be sent to another actor: no device" in caplog.text)
