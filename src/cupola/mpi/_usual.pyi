from typing import Any

from mpi4py import MPI

from cupola import Stream
from cupola.mpi._request import forgotten as forgotten
from cupola.mpi._staging import Stages

class Lent:
    def release(self) -> None: ...

class Settings:
    comm: Any
    stream: Stream | None
    timeout: float | None
    part: int
    _stages: Stages
    def Send(self, buf: Any, dest: int, tag: int = 0) -> None: ...
    def Recv(
        self, buf: Any, source: int | None = None, tag: int | None = None, status: MPI.Status | None = None
    ) -> None: ...
    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int | None = None,
        recvtag: int | None = None,
        status: MPI.Status | None = None,
    ) -> None: ...
    def Bcast(self, buf: Any, root: int = 0) -> None: ...
    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op | None = None) -> None: ...
    def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op | None = None, root: int = 0) -> None: ...
