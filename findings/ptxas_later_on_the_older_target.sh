#!/usr/bin/env bash
# nvidia-cuda-nvcc 13.5.37 (ptxas 13.5): a conversion to 8-bit floats needs a newer PTX version for the older of two targets.
#
# Guess: the lowest PTX version of an instruction is one number for all targets that have it.
# Seen: cvt.rn.satfinite.e4m3x2.f32 is accepted from PTX 7.8 on for sm_90, but only from 8.1 on for sm_89, the older architecture.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.5.37
ptxas=$(find "$folder/venv" -name ptxas -type f)

lowest() { # TARGET: the lowest version with which the instruction is accepted
    local version
    for version in 7.8 8.0 8.1 8.2; do
        cat >"$folder/a.ptx" <<END
.version $version
.target $1
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 a;
    .reg .f32 x;
    .reg .b16 d;
    ld.param.u64 a, [p];
    ld.global.f32 x, [a];
    cvt.rn.satfinite.e4m3x2.f32 d, x, x;
    st.global.b16 [a], d;
    ret;
}
END
        "$ptxas" -arch "$1" -o /dev/null "$folder/a.ptx" >"$folder/log" 2>&1 && echo "$version" && return
    done
    echo none
}

echo "sm_89: from PTX $(lowest sm_89) on; sm_90: from PTX $(lowest sm_90) on"
[[ $(lowest sm_89) == 8.1 && $(lowest sm_90) == 7.8 ]]
