"""How much static shared memory PTX may declare: what NVIDIA's assembler takes, told when the module is loaded."""

from __future__ import annotations

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status

pytestmark = pytest.mark.cpu_only

PTX = """.version 8.0
.target sm_90
.address_size 64
{module}
.visible .entry k() {{
    .reg .u32 %a;
    {kernel}
    mov.u32 %a, 1;
    st.shared.u32 [s], %a;
    ret;
}}
"""


@pytest.mark.parametrize("place", ["module", "kernel"])
@pytest.mark.parametrize("size", [49152, 49153, 232448, 2**31 - 16, 2**31, 2**32 - 1, 2**33])
def test_static_shared_memory(context, place, size):
    declared = {"module": "", "kernel": "", place: f".shared .align 16 .b8 s[{size}];"}
    result = driver.cuModuleLoadData(PTX.format(**declared).encode() + b"\0")
    if size <= 49152:
        kernel = ok(driver.cuModuleGetFunction(ok(result), b"k"))
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        assert ok(driver.cuFuncGetAttribute(attribute, kernel)) == size
    else:
        assert status(result) == "CUDA_ERROR_INVALID_PTX"
        said = explanation(result)
        assert f"Entry function 'k' uses too much shared data ({size:#x} bytes, 0xc000 max)" in said
