"""A tensor transport for Ray: results of actors' methods stay on the device until another actor wants them.

On one machine the receiver opens the sender's memory (`_same_host`). Between machines it connects to the sender, which
sends the elements in pieces. Ray says who wants what, and when nobody does any more.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy
import ray
from ray.experimental.rdt.tensor_transport_manager import (
    CommunicatorMetadata,
    TensorTransportManager,
    TensorTransportMetadata,
)

import cupola.numpy as device_numpy
from cupola import CUDAError, _same_host
from cupola.numpy import ndarray
from cupola.ray import _own

NAME = "cupola"
PIECE = 16 << 20  # bytes
PATIENCE = 60.0  # seconds without a byte
TOKEN_PATIENCE = 10.0  # seconds until the token has come
MOST_PEERS = 64  # who get an array at the same time, each by a thread; others wait their turn
_TOKEN = 32  # characters
_log = logging.getLogger("cupola")


class _Server:
    """Sends arrays of this process to those who know their tokens."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.arrays: dict[str, ndarray] = {}
        self.turns = threading.Semaphore(MOST_PEERS)
        self.socket = socket.create_server((str(ray.util.get_node_ip_address()), 0))  # type: ignore[no-untyped-call]
        threading.Thread(target=self._accept, name="cupola-transport", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        found: tuple[str, int] = self.socket.getsockname()
        return found

    def _accept(self) -> None:
        while True:
            self.turns.acquire()
            peer = None
            try:
                peer, _ = self.socket.accept()
                threading.Thread(target=self._answer, args=(peer,), name="cupola-sender", daemon=True).start()
            except (OSError, RuntimeError):  # too many files or threads: the program may end some
                self.turns.release()
                if peer is not None:
                    peer.close()
                time.sleep(0.01)

    def _answer(self, peer: socket.socket) -> None:
        try:
            with peer:
                self._send(peer)
        except OSError:  # who has ended, or says nothing, gets nothing
            pass
        except CUDAError as error:
            _log.warning("an array could not be sent to another actor: %s", error)
        finally:
            self.turns.release()

    def _send(self, peer: socket.socket) -> None:
        end = time.monotonic() + TOKEN_PATIENCE
        token = bytearray()
        while len(token) < _TOKEN:
            peer.settimeout(max(end - time.monotonic(), 0.001))
            more = peer.recv(_TOKEN - len(token))
            if not more:
                return
            token += more
        peer.settimeout(PATIENCE)
        with self.lock:
            x = self.arrays.get(token.decode("ascii", "replace"))
        if x is None:
            return
        _own.make_current()
        flat, count = x.reshape(-1), max(1, PIECE // x.itemsize)
        for begin in range(0, x.size, count):
            peer.sendall(numpy.ascontiguousarray(flat[begin : begin + count].to_numpy()).view(numpy.uint8).data)


_lock = threading.Lock()
_server: _Server | None = None


def _known_server() -> _Server:
    global _server
    with _lock:
        if _server is None:
            _server = _Server()
        return _server


def _fetch(address: tuple[str, int], token: str, shape: tuple[int, ...], dtype: str) -> ndarray:
    """An array of a process on another machine."""
    made: ndarray = device_numpy.empty(shape, dtype)
    flat, count = made.reshape(-1), max(1, PIECE // made.itemsize)
    with socket.create_connection(address, timeout=PATIENCE) as peer:
        peer.sendall(token.encode())
        for begin in range(0, made.size, count):
            host = numpy.empty(min(count, made.size - begin), dtype)
            left = host.view(numpy.uint8).data
            while left:
                got = peer.recv_into(left)
                if not got:
                    raise ConnectionError("the actor that has the array has ended, or no longer has it")
                left = left[got:]
            flat[begin : begin + len(host)] = device_numpy.asarray(host)
    return made


@dataclass
class _Metadata(TensorTransportMetadata):
    place: str = ""
    address: tuple[str, int] = ("", 0)
    tokens: list[str] = field(default_factory=list)
    offers: list[dict[str, Any] | None] = field(default_factory=list)


class Transport(TensorTransportManager):
    """What Ray calls; it is known to Ray as "cupola" after `register_transport`."""

    def tensor_transport_backend(self) -> str:
        return NAME.upper()

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True  # each end notices by itself that the other one is gone

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> _Metadata:
        server = _known_server()
        tokens = [secrets.token_hex(_TOKEN // 2) for _ in rdt_object]
        offers = [_same_host.offer(x, readers=_same_host.ANY, in_place=True) if x.size else None for x in rdt_object]
        with server.lock:
            server.arrays.update(zip(tokens, rdt_object, strict=True))
        meta: list[Any] = [(x.shape, numpy.dtype(x.dtype.str)) for x in rdt_object]
        return _Metadata(meta, "cuda", _same_host.place(), server.address, tokens, offers)

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: str | None = None) -> Any:
        return CommunicatorMetadata()

    def recv_multiple_tensors(
        self,
        obj_id: str,
        tensor_transport_metadata: Any,
        communicator_metadata: Any,
        target_buffers: list[Any] | None = None,
    ) -> list[Any]:
        if target_buffers:
            raise ValueError("the transport makes arrays of its own: do not give it buffers")
        _own.make_current()  # Ray calls from a thread of its own
        known, here = tensor_transport_metadata, _same_host.place()
        found = []
        for (shape, dtype), token, offered in zip(known.tensor_meta, known.tokens, known.offers, strict=True):
            if offered is not None and known.place == here:
                found.append(_same_host.claim(offered, copy=False))
            else:
                found.append(_fetch(known.address, token, shape, dtype.str))
        return found

    def send_multiple_tensors(self, tensors: Any, tensor_transport_metadata: Any, communicator_metadata: Any) -> None:
        raise NotImplementedError("who wants an array gets it: Ray does not ask for it to be sent")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: list[Any]) -> None:
        server = _known_server()
        for token, offered in zip(tensor_transport_meta.tokens, tensor_transport_meta.offers, strict=True):
            with server.lock:
                server.arrays.pop(token, None)
            if offered is not None:
                _same_host.withdraw(offered)

    def abort_transport(self, obj_id: str, communicator_metadata: Any) -> None:
        """Nothing is to be done: a transfer whose other end is gone fails."""
