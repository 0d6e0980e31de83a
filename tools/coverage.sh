#!/usr/bin/env bash
# Which lines of Python and of C the tests run: one summary, and pages of HTML in build/coverage/html.
#
#   tools/coverage.sh                     the whole suite
#   tools/coverage.sh tests/graph ...     pytest with these arguments
#
# C that is generated (by bindgen and by Cython) is left out; a .pyx file is seen through its tests only. Processes that end by a signal
# leave no counts. PYTHON names an interpreter that has cupola[dev] (`make dev`).
set -euo pipefail
cd "$(dirname "$0")/.."

build=$PWD/build/coverage
tools/variant.sh coverage -Dbuildtype=debug -Db_coverage=true '-Dc_args=-fprofile-update=atomic'
python=$build/venv/bin/python
# coverage.py begins in the processes of a test by such a file. Its own is in the other environment, where the interpreter does not look for them.
for site in "$build"/venv/lib/python*/site-packages; do
    echo 'import coverage; coverage.process_startup()' >"$site/zz_coverage.pth" # behind the one that says where coverage is
done
find "$build" -name '*.gcda' -delete
rm -f "$build"/.coverage*

export COVERAGE_RCFILE=$PWD/tools/coverage.toml COVERAGE_FILE=$build/.coverage
[[ $# -gt 0 ]] || set -- tests --turn=all
failed=0
"$python" -m coverage run -m pytest -n "${JOBS:-2}" --timeout 600 "$@" || failed=$?
"$python" -m coverage combine --quiet
"$python" -m coverage xml --quiet -o "$build/python.xml"
sed -i "s,<source></source>,<source>$PWD</source>," "$build/python.xml" # gcovr leaves out files that are in no folder
generated=$(cd src/cupola/bindings && ls driver.c runtime.c nv*.c cufile.c cublas.c cublaslt.c cufft.c cudss.c curand.c cusolver_dn.c cusparse.c nccl.c | paste -sd '|')
rm -rf "$build/html" && mkdir "$build/html"
"$python" -m gcovr --root . --filter src/cupola/ --exclude "src/cupola/bindings/($generated)" --gcov-ignore-parse-errors all \
    --json "$build/c.json" "$build"
"$python" -m gcovr --root . --json-add-tracefile "$build/c.json" --cobertura-add-tracefile "$build/python.xml" \
    --txt "$build/summary.txt" --html-nested "$build/html/index.html"
cat "$build/summary.txt"
echo "pages: $build/html/index.html"
exit $failed
