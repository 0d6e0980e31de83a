#!/usr/bin/env bash
# Install the wheel in dist/ (tools/build_wheel.sh) into an empty environment and use it there.
#
# PYTHON names the interpreter (python3); CUPOLA_EXTRAS what is installed with the wheel (all: NVIDIA's compilers and llvmlite).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
quiet=(--quiet --disable-pip-version-check)
wheel=$(echo "$PWD"/dist/*.whl)

echo "== a new project in an empty environment, by the commands of its workflow"
"$python" -m venv "$scratch/maker"
"$scratch/maker/bin/python" -m pip install "${quiet[@]}" --no-deps "$wheel"
cp examples/saxpy.py examples/arrays.py examples/cuda/vector_add.cu examples/cuda/check.h "$scratch"
cd "$scratch" # away from the sources
maker/bin/cupola new kernels
"$python" -m venv empty
(
    cd kernels
    grep -q '^cupola\[all\]' requirements.txt
    sed -i "s|^cupola\[all\].*|cupola[${CUPOLA_EXTRAS:-all}] @ file://$wheel|" requirements.txt
    PATH=$scratch/empty/bin:$PATH
    sed -n 's/^ *- run: //p' .github/workflows/test.yml >commands
    [[ $(wc -l <commands) -ge 2 ]]
    PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 bash -euxo pipefail commands
)

echo "== the wheel in that environment"
empty/bin/cupola --version
CUPOLA_DEVICE=cpu empty/bin/cupola doctor
CUPOLA_DEVICE=cpu empty/bin/python saxpy.py
# An installed package, unlike an editable one, runs the machine code that it has brought along.
empty/bin/python -c 'from cupola.cpu.compiler.objects import machine, packaged; assert packaged.is_used() == machine.runs(packaged.LEVEL)'
empty/bin/python -m pip install "${quiet[@]}" "cupola[nvcc]" # as pages say it: an extra of what is installed
empty/bin/cupola nvcc -std=c++17 vector_add.cu -o vector_add
CUPOLA_DEVICE=cpu empty/bin/cupola run ./vector_add
