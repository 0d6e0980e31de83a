from typing import Any

capsule: Any
