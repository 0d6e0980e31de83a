#!/usr/bin/env bash
# nvidia-cuda-nvcc 13.5.37 (ptxas 13.5): special registers are sources of cvt, too.
#
# Guess: PTX reads special registers with mov, and with nothing else.
# Seen: cvt takes %tid.x as its source; add, mul, setp, selp and st refuse it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.5.37
ptxas=$(find "$folder/venv" -name ptxas -type f)

failed=0
while IFS='|' read -r expected instruction; do
    cat >"$folder/a.ptx" <<END
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 a, w;
    .reg .b32 d;
    .reg .pred q;
    ld.param.u64 a, [p];
    setp.eq.u64 q, a, 0;
    mov.b32 d, 1;
    mov.b64 w, 1;
    $instruction;
    st.global.b32 [a], d;
    st.global.b64 [a+8], w;
    @q st.global.b32 [a+16], d;
    ret;
}
END
    if "$ptxas" -arch sm_90 -o /dev/null "$folder/a.ptx" >"$folder/log" 2>&1; then seen=accepted; else seen=refused; fi
    echo "$instruction: $seen"
    [[ $seen == "$expected" ]] || failed=1
done <<'END'
accepted|mov.u32 d, %tid.x
accepted|cvt.u64.u32 w, %tid.x
refused|add.u32 d, %tid.x, 1
refused|mul.lo.u32 d, %tid.x, 3
refused|setp.eq.u32 q, %tid.x, 0
refused|selp.b32 d, %tid.x, 0, q
refused|st.global.u32 [a], %tid.x
END
exit $failed
