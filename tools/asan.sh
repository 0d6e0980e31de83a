#!/usr/bin/env bash
# The tests of the bindings with AddressSanitizer: only their modules are built with it. PYTHON chooses the interpreter, which needs
# cupola[test] and meson, ninja and cython. Leaks are not looked for: Python keeps what it may use again.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
build=build/asan
library=$(${CC:-cc} -print-file-name=libasan.so)
[[ -f $library ]] || { echo "AddressSanitizer's library is missing: install libasan (it comes with gcc)" >&2; exit 1; }

[[ -f $build/build.ninja ]] || meson setup "$build" -Db_sanitize=address -Db_lundef=false -Dbuildtype=debugoptimized >/dev/null
modules=$(ninja -C "$build" -t targets all | sed -n 's/^\(src\/cupola\/bindings\/[^/]*\.so\): .*/\1/p')
# shellcheck disable=SC2086
ninja -C "$build" -j "${JOBS:-2}" $modules

# Python's own allocator would hide what lies behind an object.
export PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 CUPOLA_ASAN=$PWD/$build/src/cupola/bindings
export PYTHONPATH=$PWD/tools/asan${PYTHONPATH:+:$PYTHONPATH}
# What the compiler is run for needs no second look.
[[ $# -gt 0 ]] || set -- tests/bindings -k "not layout and not extension and not compiler and not committed"
LD_PRELOAD=$library "$python" -m pytest "$@"
