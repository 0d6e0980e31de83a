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

echo "== the wheel in an empty environment"
"$python" -m venv "$scratch/empty"
"$scratch/empty/bin/python" -m pip install "${quiet[@]}" "$wheel[${CUPOLA_EXTRAS:-all}]"
cp examples/saxpy.py examples/arrays.py examples/cuda/vector_add.cu examples/cuda/check.h "$scratch"
cd "$scratch" # away from the sources
empty/bin/cupola --version
CUPOLA_DEVICE=cpu empty/bin/cupola doctor
CUPOLA_DEVICE=cpu empty/bin/python saxpy.py
# An installed package, unlike an editable one, runs the machine code that it has brought along.
empty/bin/python -c 'from cupola.cpu.compiler.objects import machine, packaged; assert packaged.is_used() == machine.runs(packaged.LEVEL)'
empty/bin/python -m pip install "${quiet[@]}" "$wheel[nvcc]" pytest
empty/bin/cupola new kernels
(cd kernels && CUPOLA_DEVICE=cpu ../empty/bin/python -m pytest -q) # with the plugin, which registers itself
empty/bin/cupola nvcc -std=c++17 vector_add.cu -o vector_add
CUPOLA_DEVICE=cpu empty/bin/cupola run ./vector_add
