#!/usr/bin/env bash
# Build all C of cupola (bindings, Cython modules, driver, engine, runtime) with sanitizers and run tests on it.
#
#   tools/sanitize.sh address                 AddressSanitizer and UBSan: every test that reaches the C, and the fuzzers
#   tools/sanitize.sh thread                  ThreadSanitizer: the tests with several threads or processes
#   tools/sanitize.sh address quick           what CI runs: a selection of a few minutes
#   tools/sanitize.sh address tests/core ...  pytest with these arguments
#
# The lists of tests are in tools/sanitize/. PYTHON names an interpreter that has cupola[dev] (`make dev`). Kernels are machine code from
# LLVM, which is not instrumented; what they call in the engine is.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:?address or thread}
shift
lists=$PWD/tools/sanitize build=$PWD/build/$kind

case $kind in
address) flags=address,undefined library=libasan.so ;;
thread) flags=thread library=libtsan.so ;;
*) echo "the sanitizers are address (with UBSan) and thread, not $kind" >&2; exit 1 ;;
esac
library=$(${CC:-cc} -print-file-name=$library)
[[ -f $library ]] || { echo "the sanitizer's library is missing: install $(basename "$library" .so) (it comes with gcc)" >&2; exit 1; }
tools/variant.sh "$kind" -Dbuildtype=debugoptimized -Db_sanitize=$flags -Db_lundef=false '-Dc_args=-O1 -fno-omit-frame-pointer'

# Signals stay with us: our handler makes faults of kernels of them, and a crash ends the process as ever. Leaks are not looked for:
# Python keeps at exit what it may use again. Its own allocator would hide what lies behind an object.
export ASAN_OPTIONS=exitcode=99:handle_segv=0:handle_sigbus=0:handle_abort=0:detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=exitcode=99:halt_on_error=1:print_stacktrace=1:suppressions=$lists/undefined.supp
# A race is a file in $build/reports, and no race may be left. The interpreter is not instrumented; what it does by itself is not looked at.
rm -rf "$build/reports" && mkdir "$build/reports"
export TSAN_OPTIONS=exitcode=0:ignore_noninstrumented_modules=1:second_deadlock_stack=1:history_size=4:log_path=$build/reports/thread:suppressions=$lists/thread.supp
export PYTHONMALLOC=malloc CUPOLA_SANITIZER=$kind

[[ $# -gt 0 ]] || set -- whole
fuzz=
[[ $kind == address && $1 == whole ]] && fuzz=yes
if [[ $1 == quick || $1 == whole ]]; then
    mapfile -t tests < <(sed -e 's/ *#.*//' -e '/^$/d' "$lists/$kind.$1")
    shift
    set -- "${tests[@]}" "$@"
fi
failed=0
LD_PRELOAD=$library "$build/venv/bin/python" -m pytest -n "${JOBS:-2}" --timeout 600 "$@" || failed=1
if [[ $fuzz ]]; then # more seeds than the tests have, always the same
    LD_PRELOAD=$library "$build/venv/bin/python" tools/fuzz_ptx.py --seeds 10000:10500 || failed=1
    LD_PRELOAD=$library "$build/venv/bin/python" tools/fuzz_ptx.py --images --seeds 10000:12000 || failed=1
fi
if [[ -n $(ls "$build/reports") ]]; then
    grep -h '^SUMMARY' "$build"/reports/* | sort | uniq -c | sort -rn
    echo "the reports are in $build/reports" >&2
    failed=1
fi
exit $failed
