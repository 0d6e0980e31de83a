"""Arrays between processes of one machine without a detour through the host's memory (CUDA's IPC).

The process that has an array *offers* it: it describes the memory in a few bytes, and keeps it. Memory of a pool that
other processes may not open is copied to one that they may. The process that wants the array *claims* it: it connects
to the first one by a Unix socket, gets the pool's file descriptor once, opens the memory, uses it or copies it, and
says when it is done. An offer is for a number of claims, and is let go of behind them, or after a while without one.
Who ends without a word closes its connection.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue as queue_module
import secrets
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy

import cupola.numpy as device_numpy
from cupola.core.array._array import Array
from cupola.core.base._errors import CUDAError
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream
from cupola.core.memory._buffer import Buffer
from cupola.core.memory._device_memory import DeviceMemoryResource
from cupola.numpy import ndarray
from cupola.numpy._evaluate import current_stream, device
from cupola.numpy._lazy import adopt

UNCLAIMED = 120.0  # seconds that an offer waits to be claimed
PATIENCE = 60.0  # seconds that one who claims waits for an answer
MOST_PEERS = 1024  # processes that are answered at the same time, with a thread each
ANY = 1 << 62  # for any number of claims, until it is withdrawn

_log = logging.getLogger("cupola")
_T = TypeVar("_T")


def devices() -> list[str]:
    """The devices that this process sees: memory of another one cannot be opened."""
    return [dev.uuid for dev in Device.get_all_devices()]


@cache
def place() -> str:
    """What processes have in common that can hand arrays to each other: the running system, its network, the user."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.stat('/proc/self/ns/net').st_ino}:{os.getuid()}"


@dataclass
class _Kept:
    """What is offered."""

    memory: Buffer
    until: float  # when it is let go of, if nobody has claimed it
    left: int  # claims that it is for
    readers: int = 0  # which have claimed it, and are not done


class _Offers:
    """What this process offers, and the threads that answer those who claim it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pools: dict[int, DeviceMemoryResource] = {}
        self.shared: dict[str, DeviceMemoryResource] = {}  # by their uuids as digits
        self.kept: dict[str, _Kept] = {}
        self.peers = 0  # that are answered
        self.name = f"cupola-{os.getpid()}-{secrets.token_hex(8)}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(f"\0{self.name}")
        self.socket.listen()
        threading.Thread(target=self._accept, name="cupola-offers", daemon=True).start()

    def pool(self, dev: Device) -> DeviceMemoryResource:
        """The pool of a device that other processes may open."""
        with self.lock:
            found = self.pools.get(dev.device_id)
            if found is None:
                found = self.pools[dev.device_id] = DeviceMemoryResource(dev, {"ipc_enabled": True})
            return found

    def offer(self, x: ndarray, readers: int, in_place: bool) -> dict[str, Any]:
        """Keep the elements in memory that others may open, and describe it."""
        dev, queue = device(), current_stream()
        # Asking for the memory lends it, so that nothing that reads it later is fused; a copy does not.
        memory = x.buffer if in_place and x.is_contiguous else None
        resource = memory.memory_resource if memory is not None else None
        if memory is not None and isinstance(resource, DeviceMemoryResource) and resource.is_ipc_enabled:
            place = x.handle - int(memory.handle)
        else:
            resource, place = self.pool(dev), 0
            memory = resource.allocate(x.nbytes, stream=queue)
            Array.from_buffer(memory, x.shape, x.dtype).copy_from(x, stream=queue)
        queue.sync()
        token, now = secrets.token_hex(16), time.monotonic()
        assert resource.uuid is not None
        with self.lock:
            self.kept[token] = _Kept(memory, now + UNCLAIMED if readers != ANY else float("inf"), readers)
            self.shared[resource.uuid.hex] = resource
        return {
            "socket": self.name, "token": token, "device": Device(resource.device_id).uuid, "pool": resource.uuid.hex,
            "shape": x.shape, "dtype": x.dtype.str, "memory": pickle.dumps(memory.ipc_descriptor), "offset": place,
        }  # fmt: skip

    def _accept(self) -> None:
        self.socket.settimeout(UNCLAIMED / 4)
        while True:
            try:
                peer, _ = self.socket.accept()
            except TimeoutError:
                self._drop_unclaimed()
            except OSError:  # such as too many files: the program may close some
                time.sleep(0.01)
            else:
                self._begin(peer)

    def _begin(self, peer: socket.socket) -> None:
        """Answer a process of this user in a thread, if there are not too many; the others see the end."""
        with self.lock:
            begun = _user_of(peer) == os.getuid() and self.peers < MOST_PEERS
            self.peers += begun
        if begun:
            try:
                threading.Thread(target=self._answer, args=(peer,), name="cupola-offer", daemon=True).start()
                return
            except RuntimeError:  # the system has no room for another thread
                with self.lock:
                    self.peers -= 1
        peer.close()

    def _drop_unclaimed(self) -> None:
        now = time.monotonic()
        with self.lock:
            old = [token for token, kept in self.kept.items() if kept.until < now and not kept.readers]
            dropped = [self.kept.pop(token) for token in old]
        dropped.clear()  # outside the lock: freeing memory calls the driver

    def _answer(self, peer: socket.socket) -> None:
        claimed: list[str] = []
        try:
            with peer, suppress(OSError, CUDAError):  # who has ended needs no answer, who gets none sees the end
                while message := _received(peer):
                    if not self._obey(peer, message[0], message[1:], claimed):
                        return  # no request of ours
        finally:
            for token in claimed:
                self._done(token)
            with self.lock:
                self.peers -= 1

    def _obey(self, peer: socket.socket, kind: str, value: str, claimed: list[str]) -> bool:
        """Carry out a request; False when it is none."""
        if kind == "p":  # the pool
            with self.lock:
                pool = self.shared.get(value)
            if pool is None:
                return False
            socket.send_fds(peer, [b"p"], [int(pool.allocation_handle)])
        elif kind == "c":  # is about to open it
            with self.lock:
                kept = self.kept.get(value)
                kept = kept if kept is not None and kept.left else None
                if kept is not None:
                    kept.readers += 1
                    kept.left -= 1
                    claimed.append(value)
            peer.send(b"-" if kept is None else b"c")
        elif kind == "d" and value in claimed:
            claimed.remove(value)
            self._done(value)
        else:
            return False
        return True

    def withdraw(self, token: str) -> None:
        with self.lock:
            kept = self.kept.get(token)
            if kept is not None:
                kept.left = 0
                if not kept.readers:
                    del self.kept[token]

    def _done(self, token: str) -> None:
        with self.lock:
            kept = self.kept.get(token)
            if kept is not None:
                kept.readers -= 1
                if not kept.readers and not kept.left:
                    del self.kept[token]


def _user_of(peer: socket.socket) -> int:
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(user)


def _received(peer: socket.socket) -> str:
    """The next message; nothing when the other process has ended."""
    try:
        return peer.recv(64).decode("ascii", "replace")
    except ConnectionError:
        return ""


class _Peer:
    """A connection to a process that offers arrays."""

    def __init__(self, name: str) -> None:
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect(f"\0{name}")
        except BaseException:
            self.socket.close()
            raise
        self.pools: dict[str, DeviceMemoryResource] = {}

    def ask(self, message: str) -> bytes:
        self.socket.send(message.encode())
        return self.socket.recv(64)

    def pool(self, name: str, dev: Device) -> DeviceMemoryResource:
        found = self.pools.get(name)
        if found is None:
            self.socket.send(f"p{name}".encode())
            _, descriptors, _, _ = socket.recv_fds(self.socket, 64, 1)
            if not descriptors:
                raise ConnectionError("the process that offered an array has ended")
            try:
                found = self.pools[name] = DeviceMemoryResource.from_allocation_handle(dev, descriptors[0])
            finally:
                os.close(descriptors[0])
        return found

    def open(self, offered: dict[str, Any], dev: Device, queue: Stream) -> Buffer:
        """The memory of an offer."""
        with self.lock:
            if self.ask(f"c{offered['token']}") != b"c":
                raise ConnectionError("the process that offered an array no longer has it")
            try:
                pool = self.pool(offered["pool"], dev)
                return Buffer.from_ipc_descriptor(pool, pickle.loads(offered["memory"]), stream=queue)
            except BaseException:
                self.release(offered)
                raise

    def release(self, offered: dict[str, Any]) -> None:
        """Say that the claim is over."""
        with suppress(
            OSError
        ):  # the other process has ended, or does not answer: then it sees the end of the connection
            self.socket.send(f"d{offered['token']}".encode())

    def done(self, offered: dict[str, Any], memory: Buffer, queue: Stream) -> None:
        """Let go of the memory of an offer, when the device has."""
        try:
            memory.close(queue)
            queue.sync()
        finally:
            self.release(offered)


class _Ending:
    """A thread that lets go of memory that is no longer used: that waits for the device, so no destructor does it."""

    def __init__(self) -> None:
        self.work: queue_module.SimpleQueue[tuple[_Peer, dict[str, Any], Buffer]] = queue_module.SimpleQueue()
        threading.Thread(target=self._run, name="cupola-claims", daemon=True).start()

    def _run(self) -> None:
        while True:
            peer, offered, memory = self.work.get()
            try:
                device()
                peer.done(offered, memory, Device().default_stream)
            except CUDAError as error:  # the thread is for others, too
                _log.warning("memory of another process was not released: %s", error)
            finally:
                del peer, offered, memory


_lock = threading.Lock()
_offers: _Offers | None = None
_ending: _Ending | None = None
_unable = False
_peers: dict[str, _Peer] = {}
claims = 0  # how many arrays this process has got so


def _known_offers() -> _Offers:
    global _offers
    with _lock:
        if _offers is None:
            _offers = _Offers()
        return _offers


def _if_possible(make: Callable[[_Offers], _T]) -> _T | None:
    """What `make` makes; None, from now on, where device memory cannot be shared between processes."""
    global _unable
    if _unable:
        return None
    try:
        return make(_known_offers())
    except CUDAError as error:
        if error.name != "CUDA_ERROR_NOT_SUPPORTED":
            raise
        _unable = True
        _log.warning("device memory cannot be shared between processes here, so arrays go through the host (%s)", error)
        return None


def pool(dev: Device) -> DeviceMemoryResource | None:
    """The pool whose memory is offered without a copy; None if no memory can be shared."""
    return _if_possible(lambda offers: offers.pool(dev))


def offer(x: ndarray, *, readers: int = 1, in_place: bool = False) -> dict[str, Any] | None:
    """Offer an array to other processes of this machine; None if its memory cannot be shared.

    Parameters
    ----------
    x : ndarray
        The array.
    readers : int
        How many may claim it; `ANY`: as many as like, until `withdraw`.
    in_place : bool
        Whether the memory itself is offered, if it is of a pool that can be shared, and not a copy.
    """
    return _if_possible(lambda offers: offers.offer(x, readers, in_place))


def withdraw(offered: dict[str, Any]) -> None:
    """Offer an array no longer; who has claimed it keeps it."""
    _known_offers().withdraw(offered["token"])


def claim(offered: dict[str, Any], *, copy: bool = True) -> Any:
    """An array with the elements that another process offers.

    Parameters
    ----------
    offered : dict
        What `offer` has said.
    copy : bool
        Whether the array has memory of its own, as it always has if the other one is on another device. If not, it is
        the other process's memory, which stays while the array or a view of it does.

    Raises
    ------
    ConnectionError
        When that process has ended, or no longer offers it.
    LookupError
        When this process does not see the device.
    """
    global claims, _ending
    device()
    dev = next((one for one in Device.get_all_devices() if one.uuid == offered["device"]), None)
    if dev is None:
        raise LookupError(
            f"the array is on the device {offered['device']}, which this process does not see: "
            "let CUDA_VISIBLE_DEVICES name the devices of both, this process's first"
        )
    name = offered["socket"]
    with _lock:
        peer = _peers.get(name)
        if peer is None:
            peer = _peers[name] = _Peer(name)
        if _ending is None:
            _ending = _Ending()
    queue = current_stream()
    try:
        memory = peer.open(offered, dev, queue)
    except OSError:
        with _lock:
            _peers.pop(name, None)
        raise
    claims += 1
    if not copy and dev.device_id == Device().device_id:
        return _in_place(offered, memory, peer, _ending, queue)
    try:
        made = device_numpy.empty(offered["shape"], offered["dtype"])
        made.copy_from(
            Array.from_buffer(memory, offered["shape"], offered["dtype"], offset=offered["offset"]), stream=queue
        )
    finally:
        peer.done(offered, memory, queue)
    return made


class _Held:
    """Whoever has a view of claimed memory has this."""


def _in_place(offered: dict[str, Any], memory: Buffer, peer: _Peer, ending: _Ending, queue: Stream) -> ndarray:
    held = _Held()
    weakref.finalize(held, ending.work.put, (peer, offered, memory)).atexit = False
    size = int(numpy.prod(offered["shape"], dtype=int)) * numpy.dtype(offered["dtype"]).itemsize
    seen = Buffer.from_handle(int(memory.handle) + offered["offset"], size, owner=held)
    made = adopt(Array.from_buffer(seen, offered["shape"], offered["dtype"]), queue)
    made.handle  # noqa: B018 - the other process may write it, so expressions of it are computed at once
    return made
