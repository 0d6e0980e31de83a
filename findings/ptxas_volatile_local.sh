#!/usr/bin/env bash
# nvidia-cuda-nvcc 13.5.37 (ptxas 13.5): volatile accesses to local memory are new in PTX 9.1.
#
# Guess: ld.volatile and st.volatile, which PTX has had from its beginning, take .local as they take .global and .shared, or never do.
# Seen: with .local they are refused up to PTX 9.0 and accepted from 9.1 on, for an old target (sm_75) as well.
# A driver of CUDA 13.0, which knows PTX up to 9.0, calls such PTX CUDA_ERROR_INVALID_PTX.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.5.37
ptxas=$(find "$folder/venv" -name ptxas -type f)

judge() { # VERSION SPACE
    cat >"$folder/a.ptx" <<END
.version $1
.target sm_75
.address_size 64
.visible .entry k() {
    .$2 .align 4 .b8 s[64];
    .reg .b64 a;
    .reg .b32 v;
    mov.u64 a, s;
    mov.b32 v, 1;
    st.volatile.$2.b32 [a], v;
    ld.volatile.$2.b32 v, [a];
    ret;
}
END
    if "$ptxas" -arch sm_75 -o /dev/null "$folder/a.ptx" >"$folder/log" 2>&1; then echo accepted; else echo refused; fi
}

failed=0
for case in 9.0:shared:accepted 9.0:local:refused 9.1:local:accepted; do
    IFS=: read -r version space expected <<<"$case"
    seen=$(judge "$version" "$space")
    echo "PTX $version, .$space: $seen"
    [[ $seen == "$expected" ]] || failed=1
done
exit $failed
