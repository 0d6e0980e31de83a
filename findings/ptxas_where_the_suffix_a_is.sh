#!/usr/bin/env bash
# nvidia-cuda-nvcc 13.5.37 (ptxas 13.5): that machine code is for sm_90a, not for sm_90, does not stand in the ELF header.
#
# Guess: e_flags of a cubin tell sm_90 from sm_90a, as they tell sm_90 from sm_89.
# Seen: the e_flags of the two are equal, and the contents of the section .nv.compat differ. nvidia-cuda-nvcc-cu12 12.9.86 tells them apart in e_flags.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/a.ptx" <<'END'
.version 8.8
.target TARGET
.address_size 64
.visible .entry k() { ret; }
END

flags() { # PTXAS TARGET: e_flags; the cubin stays as $folder/TARGET.cubin
    sed "s/TARGET/$2/" "$folder/a.ptx" >"$folder/b.ptx"
    "$1" -arch "$2" -o "$folder/$2.cubin" "$folder/b.ptx"
    python3 -c 'import struct, sys; print(hex(struct.unpack_from("<I", open(sys.argv[1], "rb").read(), 48)[0]))' "$folder/$2.cubin"
}

compat() { # CUBIN: the bytes of .nv.compat
    python3 - "$1" <<'END'
import struct, sys

data = open(sys.argv[1], "rb").read()
at, size, count, names = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HHH", data, 58))
sections = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
for name, _, _, _, place, length in sections:
    start = sections[names][4] + name
    if data[start : data.index(b"\0", start)] == b".nv.compat":
        print(data[place : place + length].hex())
END
}

python3 -m venv "$folder/new"
"$folder/new/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.5.37
python3 -m venv "$folder/old"
"$folder/old/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc-cu12==12.9.86
new=$(find "$folder/new" -name ptxas -type f) old=$(find "$folder/old" -name ptxas -type f)
plain=$(flags "$new" sm_90) special=$(flags "$new" sm_90a)
echo "13.5: sm_90 $plain $(compat "$folder/sm_90.cubin")"
echo "13.5: sm_90a $special $(compat "$folder/sm_90a.cubin")"
[[ $plain == "$special" && $(compat "$folder/sm_90.cubin") != "$(compat "$folder/sm_90a.cubin")" ]]
plain=$(flags "$old" sm_90) special=$(flags "$old" sm_90a)
echo "12.9: sm_90 $plain, sm_90a $special"
[[ $plain != "$special" ]]
