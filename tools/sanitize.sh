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
fail() { echo "$1" >&2; exit 1; }

case $kind in
address) flags=address,undefined names="libasan libubsan" ;;
thread) flags=thread names=libtsan ;;
*) fail "the sanitizers are address (with UBSan) and thread, not $kind" ;;
esac
# gcc has one of these for each of its major versions.
for name in $names; do
    [[ $(${CC:-cc} -print-file-name="$name.so") == */* ]] ||
        fail "${CC:-cc} has no $name: install it (Debian and Ubuntu: apt install gcc, which brings it; Fedora: dnf install $name), or name gcc: CC=gcc"
done
library=$(${CC:-cc} -print-file-name="${names%% *}.so")

# ThreadSanitizer has no place for addresses as random as many systems make them (vm.mmap_rnd_bits above 28); children inherit this.
start=()
if [[ $kind == thread ]]; then
    if setarch --addr-no-randomize true 2>/dev/null; then
        start=(setarch --addr-no-randomize)
    elif [[ $(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0) -gt 28 ]]; then
        fail "ThreadSanitizer needs addresses that are less random, and setarch may not make them so here: sudo sysctl -w vm.mmap_rnd_bits=28"
    fi
fi

# Without optimisation, which compiles four times as fast: what the tests wait for is mostly Python and LLVM.
tools/variant.sh "$kind" -Dbuildtype=debug -Db_sanitize=$flags -Db_lundef=false '-Dc_args=-O0 -g1' -Dcpp_args=-O0

# Signals stay with us: our handler makes faults of kernels of them, and a crash ends the process as ever. Leaks are not looked for:
# Python keeps at exit what it may use again. Its own allocator would hide what lies behind an object.
# Reports of wrong accesses and of races are files, whichever process wrote them, and none may be there at the end; UBSan ends the process.
# The interpreter is not instrumented; what it does by itself is not looked at for races.
reports=$build/reports
rm -rf "$reports" && mkdir "$reports"
export ASAN_OPTIONS=exitcode=99:handle_segv=0:handle_sigbus=0:handle_abort=0:detect_leaks=0:allocator_may_return_null=1:log_path=$reports/address
export UBSAN_OPTIONS=exitcode=99:halt_on_error=1:print_stacktrace=1:suppressions=$lists/undefined.supp
export TSAN_OPTIONS=exitcode=0:ignore_noninstrumented_modules=1:second_deadlock_stack=1:history_size=4:log_path=$reports/thread:suppressions=$lists/thread.supp
export PYTHONMALLOC=malloc CUPOLA_SANITIZER=$kind

[[ $# -gt 0 ]] || set -- whole
fuzz=
[[ $kind == address && $1 == whole ]] && fuzz=yes
if [[ $1 == quick || $1 == whole ]]; then
    # Tests that take turns: those of today, and of tests with many parameters a half; or all of them.
    turn=all share=1
    [[ $1 == quick ]] && turn=$(($(date +%s) / 86400)) share=2
    export CUPOLA_TESTS_TURN=${CUPOLA_TESTS_TURN:-$turn}
    mapfile -t tests < <(sed -e 's/ *#.*//' -e '/^$/d' "$lists/$kind.$1")
    shift
    set -- "--share=$share" "$@"
    set -- "${tests[@]}" "$@"
fi
failed=0
run() { LD_PRELOAD=$library "${start[@]}" "$build/venv/bin/python" "$@" || failed=1; }
run -m pytest -n "${WORKERS:-2}" --dist worksteal --timeout 600 "$@"
if [[ $fuzz ]]; then # more seeds than the tests have, always the same
    run tools/fuzz_ptx.py --seeds 10000:10500
    run tools/fuzz_ptx.py --images --seeds 10000:12000
fi
if [[ -n $(ls "$reports") ]]; then
    grep -h '^SUMMARY' "$reports"/* | sort | uniq -c | sort -rn
    echo "the reports are in $reports" >&2
    failed=1
fi
exit $failed
