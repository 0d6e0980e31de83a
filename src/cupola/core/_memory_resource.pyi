from typing import Any

class MemoryResource:
    def allocate(self, size: int, *, stream: Any) -> Any: ...
