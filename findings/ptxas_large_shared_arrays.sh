#!/usr/bin/env bash
# nvidia-cuda-nvcc 13.5.37 (ptxas 13.5): shared arrays that are far too large are accepted.
#
# Guess: static shared memory beyond 48 KiB is refused, whatever its size, as "too much shared data".
# Seen: 49,153 bytes are refused for sm_90 ("0xc001 bytes, 0xc000 max"); 2,147,483,648 and 8,589,934,592 bytes are accepted without
# a word. So whoever loads PTX has to look at the sizes by itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.5.37
ptxas=$(find "$folder/venv" -name ptxas -type f)

judge() { # BYTES: accepted, or refused
    cat >"$folder/a.ptx" <<END
.version 9.0
.target sm_90
.address_size 64
.visible .entry k() {
    .shared .b8 s[$1];
    .reg .b32 a;
    mov.u32 a, s;
    st.shared.b32 [a], a;
    ret;
}
END
    if "$ptxas" -arch sm_90 -o /dev/null "$folder/a.ptx" >"$folder/log" 2>&1; then echo accepted; else echo refused; fi
}

failed=0
for case in 49152:accepted 49153:refused 2147483648:accepted 8589934592:accepted; do
    seen=$(judge "${case%:*}")
    echo "${case%:*} bytes: $seen"
    [[ $seen == "${case#*:}" ]] || failed=1
done
exit $failed
