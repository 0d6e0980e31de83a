#!/usr/bin/env bash
# Check a working tree on a machine with a GPU: build it, run the whole test suite, the tour, the examples and the
# benchmarks there, and leave a log of each. Needs Python with NumPy, pytest, Cython, meson-python, meson and ninja.
#
# usage: tools/gpu_check.sh [LOG_FOLDER]      (PYTHON names the interpreter; STEPS picks some of the steps)
set -uo pipefail
cd "$(dirname "$0")/.."

logs=${1:-gpu_logs}
python=${PYTHON:-python3}
steps=${STEPS:-build tour tests calls cpu_device}
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)
site=${SITE:-$(mktemp -d)}
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}" CUPOLA_DEVICE=gpu PYTHONUNBUFFERED=1 \
    CUPOLA_STRESS_SECONDS="${CUPOLA_STRESS_SECONDS:-60}"
failed=()

step() { # NAME COMMAND...
    local name=$1 start=$SECONDS
    shift
    case " $steps " in *" $name "*) ;; *) return ;; esac
    echo "== $name"
    "$@" >"$logs/$name.log" 2>&1 || failed+=("$name")
    tail -n "${TAIL:-15}" "$logs/$name.log"
    echo "== $name: $((SECONDS - start)) s"
}

step build "$python" -m pip install --no-build-isolation --no-deps --no-index --upgrade --target "$site" .
step tour "$python" examples/tour.py
step tests "$python" -m pytest -q -p no:benchmark -n "${TEST_JOBS:-8}" --max-worker-restart 50 tests
step calls "$python" -m benchmarks.calls --json "$logs/calls.json"
step cpu_device "$python" -m benchmarks.cpu_device --seconds 0.5 --json "$logs/cpu_device.json"

if ((${#failed[@]})); then
    echo "failed: ${failed[*]}"
    exit 1
fi
echo "all passed: $steps"
