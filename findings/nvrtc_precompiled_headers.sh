#!/usr/bin/env bash
# nvidia-cuda-nvrtc 13.5.37 (NVRTC 13.5): address randomization makes a precompiled header useless to later processes.
#
# Guess: --create-pch=FILE writes a file that later processes read with --use-pch=FILE, as with other compilers.
# Seen: the process itself uses it. Another one gets warning 20282-D, "incompatible precompiled header (PCH) heap allocation
#       address", and reads the headers again, unless address randomization is off for both. The file is more than a hundred
#       times the header's size.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvrtc==13.5.37
cat >"$folder/compile.py" <<'END'
import ctypes
import glob
import os
import sys

folder = sys.argv[1]
path = glob.glob(folder + "/venv/lib/**/libnvrtc.so.13", recursive=True)[0]
nvrtc = ctypes.CDLL(path)
header = "".join(f"struct S{i} {{ int a[{i + 1}]; __device__ int sum() const {{ return a[0] + {i}; }} }};\n" for i in range(2000))
with open(folder + "/structs.h", "w") as file:
    file.write(header)


def compiled(options, value):
    program = ctypes.c_void_p()
    source = f'#include "structs.h"\nextern "C" __global__ void k(int* out) {{ S7 s{{}}; *out = s.sum() + {value}; }}'
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    flags = [b"--gpu-architecture=sm_90", b"-I" + folder.encode(), b"--pch-messages=true", *options]
    status = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
    assert status == 0, status
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode()


file = folder + "/structs.pch"
if sys.argv[2] == "write":
    print("created here:", "creating precompiled header" in compiled([b"--create-pch=" + file.encode()], 1))
    print("times the header's size: more than 100:", os.path.getsize(file) > 100 * len(header))
log = compiled([b"--use-pch=" + file.encode()], 2)
print("used here:", "using precompiled header" in log, "- refused for its address:", "20282-D" in log)
END
{
    "$folder/venv/bin/python" "$folder/compile.py" "$folder" write
    "$folder/venv/bin/python" "$folder/compile.py" "$folder" read
    setarch --addr-no-randomize "$folder/venv/bin/python" "$folder/compile.py" "$folder" write
    setarch --addr-no-randomize "$folder/venv/bin/python" "$folder/compile.py" "$folder" read
} | tee "$folder/seen"
written='created here: True
times the header'\''s size: more than 100: True
used here: True - refused for its address: False'
[[ $(cat "$folder/seen") == "$written
used here: False - refused for its address: True
$written
used here: True - refused for its address: False" ]]
