"""Arrays between processes of one machine without a detour through the host's memory (CUDA's IPC).

The process that has an array copies it into memory of a pool that other processes may open, and *offers* it: it
describes the memory in a few bytes, and keeps it. The process that wants it *claims* it: it connects to the first one
by a Unix socket, gets the pool's file descriptor once, copies the elements to memory of its own, and says that it is
done. What is offered and not claimed is let go of after a while, and so is what was offered to a process that has
ended, because its connection ends then.
"""

from __future__ import annotations

import logging
import os
import pickle
import secrets
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import cupola.numpy as device_numpy
from cupola.core.array._array import Array
from cupola.core.base._errors import CUDAError
from cupola.core.device._device import Device
from cupola.core.memory._buffer import Buffer
from cupola.core.memory._device_memory import DeviceMemoryResource
from cupola.numpy import ndarray
from cupola.numpy._evaluate import current_stream, device

SMALLEST = 1 << 16  # bytes; what is smaller is faster through the host
UNCLAIMED = 120.0  # seconds that an offer waits to be claimed

_log = logging.getLogger("cupola")


def devices() -> list[str]:
    """The devices that this process sees: memory of another one cannot be opened."""
    return [dev.uuid for dev in Device.get_all_devices()]


def place() -> str:
    """What processes have in common that can hand arrays to each other: the running system, its network, the user."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.stat('/proc/self/ns/net').st_ino}:{os.getuid()}"


class _Offers:
    """What this process offers, and the thread that answers those who claim it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pools: dict[int, DeviceMemoryResource] = {}
        self.kept: dict[str, tuple[float, Buffer]] = {}
        self.name = f"cupola-{os.getpid()}-{secrets.token_hex(8)}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(f"\0{self.name}")
        self.socket.listen()
        threading.Thread(target=self._accept, name="cupola-dask-offers", daemon=True).start()

    def offer(self, x: ndarray) -> dict[str, Any]:
        """Put the elements into memory that others may open, and describe it."""
        dev, queue = device(), current_stream()
        with self.lock:
            pool = self.pools.get(dev.device_id)
            if pool is None:
                pool = self.pools[dev.device_id] = DeviceMemoryResource(dev, {"ipc_enabled": True})
        memory = pool.allocate(x.nbytes, stream=queue)
        Array.from_buffer(memory, x.shape, x.dtype).copy_from(x, stream=queue)
        queue.sync()
        token, now = secrets.token_hex(16), time.monotonic()
        with self.lock:
            for old in [one for one, (since, _) in self.kept.items() if now - since > UNCLAIMED]:
                del self.kept[old]
            self.kept[token] = now, memory
        return {
            "socket": self.name, "token": token, "device": dev.uuid, "ordinal": dev.device_id, "shape": x.shape,
            "dtype": x.dtype.str, "memory": pickle.dumps(memory.ipc_descriptor),
        }  # fmt: skip

    def _accept(self) -> None:
        while True:
            peer, _ = self.socket.accept()
            threading.Thread(target=self._answer, args=(peer,), name="cupola-dask-offer", daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, user, _ = struct.unpack("3i", credentials)
        claimed: set[str] = set()
        with peer:
            while user == os.getuid() and (message := peer.recv(64).decode()):
                kind, value = message[0], message[1:]
                if kind == "p":  # the pool of a device
                    socket.send_fds(peer, [b"p"], [int(self.pools[int(value)].allocation_handle)])
                elif kind == "c":  # is about to open it
                    claimed.add(value)
                    peer.send(b"c" if value in self.kept else b"-")
                else:
                    claimed.discard(value)
                    self._forget(value)
        for token in claimed:
            self._forget(token)

    def _forget(self, token: str) -> None:
        with self.lock:
            self.kept.pop(token, None)


class _Peer:
    """A connection to a process that offers arrays."""

    def __init__(self, name: str) -> None:
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(f"\0{name}")
        self.pools: dict[int, DeviceMemoryResource] = {}

    def ask(self, message: str) -> bytes:
        self.socket.send(message.encode())
        return self.socket.recv(64)

    def pool(self, ordinal: int, dev: Device) -> DeviceMemoryResource:
        found = self.pools.get(ordinal)
        if found is None:
            self.socket.send(f"p{ordinal}".encode())
            _, descriptors, _, _ = socket.recv_fds(self.socket, 64, 1)
            if not descriptors:
                raise ConnectionError("the worker that offered an array has ended")
            try:
                found = self.pools[ordinal] = DeviceMemoryResource.from_allocation_handle(dev, descriptors[0])
            finally:
                os.close(descriptors[0])
        return found


_lock = threading.Lock()
_offers: _Offers | None = None
_unable = False
_peers: dict[str, _Peer] = {}
claims = 0  # how many arrays this process has got so


def offer(x: ndarray) -> dict[str, Any] | None:
    """Offer an array to another process of this machine; None if its memory cannot be shared."""
    global _offers, _unable
    if _unable or x.nbytes < SMALLEST:
        return None
    try:
        with _lock:
            if _offers is None:
                _offers = _Offers()
        return _offers.offer(x)
    except CUDAError as error:
        if error.name != "CUDA_ERROR_NOT_SUPPORTED":
            raise
        _unable = True
        _log.warning("device memory cannot be shared between processes here, so arrays go through the host (%s)", error)
        return None


def claim(offered: dict[str, Any]) -> Any:
    """An array of one's own with the elements that another process offers.

    Raises
    ------
    ConnectionError
        When that process has ended, or no longer offers it.
    """
    device()
    dev = next(one for one in Device.get_all_devices() if one.uuid == offered["device"])
    name, token = offered["socket"], offered["token"]
    with _lock:
        peer = _peers.get(name)
        if peer is None:
            peer = _peers[name] = _Peer(name)
    queue = current_stream()
    with peer.lock:
        try:
            if peer.ask(f"c{token}") != b"c":
                raise ConnectionError("the worker that offered an array no longer has it")
            pool = peer.pool(offered["ordinal"], dev)
        except OSError:
            with _lock:
                _peers.pop(name, None)
            raise
        memory = Buffer.from_ipc_descriptor(pool, pickle.loads(offered["memory"]), stream=queue)
        try:
            made = device_numpy.empty(offered["shape"], offered["dtype"])
            made.copy_from(Array.from_buffer(memory, offered["shape"], offered["dtype"]), stream=queue)
            queue.sync()
        finally:
            memory.close(queue)
            queue.sync()
            peer.socket.send(f"d{token}".encode())
        global claims
        claims += 1
    return made
