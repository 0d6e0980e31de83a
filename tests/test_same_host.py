"""Arrays between processes of a machine: offers that nobody claims, and machines where memory cannot be shared.

The rest is tested where it is used, in tests/dask and tests/ray.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import threading

import pytest

pytest.importorskip("numpy", reason="arrays need NumPy")

import cupola.numpy as np
from cupola import CUDAError, Device, _same_host
from tests import limits

pytestmark = pytest.mark.usefixtures("device")  # a context, which other tests may have taken away


def test_what_nobody_claims_is_let_go_of(monkeypatch):
    """Without another offer behind it."""
    monkeypatch.setattr(_same_host, "UNCLAIMED", 0.04)
    offers = _same_host._Offers()
    offers.offer(np.arange(10.0), 1, False)
    limits.until(lambda: not offers.kept)


@pytest.mark.parametrize(("name", "shared"), [("CUDA_ERROR_NOT_SUPPORTED", False), ("CUDA_ERROR_OUT_OF_MEMORY", True)])
def test_machines_where_memory_cannot_be_shared(monkeypatch, caplog, name, shared):
    """One warning, and arrays go through the host from then on; any other error is one."""

    def refuse(*arguments):
        raise CUDAError("refused", name=name)

    monkeypatch.setattr(_same_host, "_unable", False)
    monkeypatch.setattr(_same_host._Offers, "pool", refuse)
    for call in (lambda: _same_host.pool(Device(0)), lambda: _same_host.offer(np.arange(3.0))):
        if shared:
            with pytest.raises(CUDAError, match="refused"):
                call()
        else:
            with caplog.at_level(logging.WARNING, "cupola"):
                assert call() is None
    assert caplog.text.count("cannot be shared between processes") == (not shared)


# --- those who ask -----------------------------------------------------------------------------------------


@pytest.fixture
def offers():
    return _same_host._Offers()


def connect(offers):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(limits.seconds())
    connection.connect(f"\0{offers.name}")
    return connection


@pytest.mark.parametrize(
    "message", [b"p", b"pno uuid", b"p" + b"0" * 32, b"\xff\xfe", b"d", b"dtoken", b"x", b"p" + b"9" * 200]
)
def test_what_is_no_request_ends_the_connection(offers, message):
    offered = offers.offer(np.arange(10.0), 2, False)
    with connect(offers) as connection:
        connection.send(f"c{offered['token']}".encode())
        assert connection.recv(64) == b"c" and offers.kept[offered["token"]].readers == 1
        connection.send(message)
        assert connection.recv(64) == b""
    limits.until(lambda: not offers.kept[offered["token"]].readers, "what it had claimed is let go of")
    with connect(offers) as connection:  # others are answered
        connection.send(b"cunknown")
        assert connection.recv(64) == b"-"
    limits.until(lambda: not offers.peers)


@pytest.mark.parametrize("what", ["accept", "thread", "descriptor"])
def test_offers_go_on_where_files_or_threads_are_short(offers, monkeypatch, what):
    offered = offers.offer(np.arange(10.0), 2, False)
    failures = iter([OSError(errno.EMFILE, "too many open files"), OSError(errno.ENFILE, "too many open files")])
    owner, name = {
        "accept": (socket.socket, "accept"), "thread": (threading.Thread, "start"), "descriptor": (socket, "send_fds"),
    }[what]  # fmt: skip
    if what == "thread":
        failures = iter([RuntimeError("can't start new thread")])
    usual = getattr(owner, name)

    def fails_at_first(*arguments, **options):
        for error in failures:
            raise error
        return usual(*arguments, **options)

    monkeypatch.setattr(owner, name, fails_at_first)
    answered = 0
    for _ in range(4):
        with connect(offers) as connection, contextlib.suppress(ConnectionError):  # closed without an answer
            connection.send(f"p{offered['pool']}".encode())
            _, descriptors, _, _ = socket.recv_fds(connection, 64, 1)
            for descriptor in descriptors:
                os.close(descriptor)
            answered += len(descriptors)
    assert answered == {"accept": 4, "thread": 3, "descriptor": 2}[what]
    limits.until(lambda: not offers.peers)


def test_there_is_a_limit_to_those_who_are_answered(offers, monkeypatch):
    monkeypatch.setattr(_same_host, "MOST_PEERS", 2)
    with connect(offers) as first, connect(offers), connect(offers) as third:
        assert third.recv(64) == b""
        first.send(b"cunknown")
        assert first.recv(64) == b"-"
    limits.until(lambda: not offers.peers)
    with connect(offers) as later:
        later.send(b"cunknown")
        assert later.recv(64) == b"-"


def test_who_claims_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(_same_host, "PATIENCE", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        name = f"cupola-silent-{os.getpid()}"
        silent.bind(f"\0{name}")
        silent.listen()
        offered = {"socket": name, "token": "1", "device": Device(0).uuid, "pool": "2"}
        with pytest.raises(TimeoutError):
            _same_host.claim(offered)
        assert name not in _same_host._peers


def test_a_claim_that_fails_is_let_go_of(offers, monkeypatch):
    offered = offers.offer(np.arange(10.0), 2, False)
    peer = _same_host._Peer(offers.name)

    def fail(*arguments):
        raise CUDAError("refused", name="CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(peer, "pool", fail)
    with pytest.raises(CUDAError, match="refused"):
        peer.open(offered, Device(0), Device(0).default_stream)
    limits.until(lambda: not offers.kept[offered["token"]].readers)
