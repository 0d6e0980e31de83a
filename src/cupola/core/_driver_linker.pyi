def link_ptx(
    text: bytes,
    name: bytes,
    arch: str,
    *,
    max_registers: int | None = None,
    debug: bool = False,
    lineinfo: bool = False,
) -> bytes: ...
