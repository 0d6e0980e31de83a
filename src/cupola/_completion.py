"""TAB at the prompt shows the names of properties without running them.

The completer of Python takes care not to run a `property`, but it does run those of compiled classes, which are
getset descriptors: it would read every property of a device, a stream or a buffer from the driver, and give up at the
first error. Here it learns that they are properties, too. The environment variable
``CUDA_CORE_DONT_FIX_TAB_COMPLETION`` leaves the completer as it is, when it is anything but empty or 0.
"""

from __future__ import annotations

import os
import rlcompleter
from types import GetSetDescriptorType

if os.environ.get("CUDA_CORE_DONT_FIX_TAB_COMPLETION", "").strip().lstrip("+-").strip("0") == "":
    # The completer asks isinstance(..., property), with this name of its module before that of the language.
    rlcompleter.property = (property, GetSetDescriptorType)  # type: ignore[attr-defined]
