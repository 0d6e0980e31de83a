#!/usr/bin/env bash
# Run on all GPUs of this host what uses several: examples, tests and benchmarks. Leave a log of each, a table of how long each
# took and what came of it (clocks.txt), and the benchmarks' tables as docs/performance.md has them (tables.md). A step has its
# share of ten minutes; where there is no time for all, STEPS picks some for each call.
#
# usage: tools/many_gpus.sh [LOG_FOLDER]
#
# Variables: PYTHON names the interpreter, STEPS picks some of the steps, GPUS says how many devices there are (otherwise all that
# the process sees), STEP_SECONDS and ALL_SECONDS are time limits, JOBS is how many tests run at a time (a half of the cores, 8
# at most), SIZES are the messages of the benchmarks, up to 16 MiB, or 1 MiB on the CPU device. Needs Python with
# cupola[test,mpi,nccl,dask,ray] and a library of MPI; a step whose package is missing says so. On the CPU device:
# CUPOLA_DEVICE=cpu GPUS=4.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=${1:-many_gpus}
python=${PYTHON:-python3}
steps=${STEPS:-devices answers mpi nccl torchrun nccl4py dask ray nccl_transfers mpi_transfers scaling test_ranks test_memory}
mkdir -p "$logs" && : >"$logs/begin" || exit 2
# Programs that use NVLink multicast can put the GPUs of a host out of service, for everybody: it stays off in NCCL, PyTorch and NVSHMEM.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
export CUPOLA_DEVICE=${CUPOLA_DEVICE:-gpu} PYTHONUNBUFFERED=1 RAY_USAGE_STATS_ENABLED=0
# Open MPI: in containers, and with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_rmaps_base_oversubscribe=1
export PYTHONPATH="$PWD:$PWD/examples${PYTHONPATH:+:$PYTHONPATH}"
# As many as CUDA_VISIBLE_DEVICES and the like leave, not as many as the host has.
count='from cupola import Device; print(len(list(Device.get_all_devices())))'
gpus=${GPUS:-$("$python" -c "$count" 2>"$logs/devices.err")}
[[ $gpus =~ ^[1-9][0-9]*$ ]] || { echo "no devices for $python: $(tail -n 3 "$logs/devices.err" 2>/dev/null)" >&2 && exit 2; }
export CUPOLA_CPU_DEVICES=$gpus
# Large messages of ranks that have no core each take minutes.
sizes=${SIZES:-8,4K,64K,1M$([[ $CUPOLA_DEVICE == cpu ]] || echo ,16M)}
# A GPU has computed a small plate before a message is there.
plate=$([[ $CUPOLA_DEVICE == cpu ]] || echo --width 16384 --steps 200)
command -v nvidia-smi >/dev/null && nvidia-smi topo -m >"$logs/topology.txt" 2>&1
failed=() passed=() others=() clocks=() child=
cores=$(nproc) jobs=${JOBS:-$((cores < 4 ? 2 : cores > 16 ? 8 : cores / 2))}
# The step runs in a process group of its own, which `timeout` ends.
trap '[[ -n $child ]] && kill "$child" 2>/dev/null && wait "$child"; echo "stopped" >&2; exit 130' INT TERM

say() { # NAME WORDS
    clocks+=("$(printf '%-15s %s' "$1" "$2")")
    echo "== ${clocks[-1]}"
}

skip() { # NAME WHY
    others+=("$1")
    say "$1" "not run: $2"
}

step() { # NAME DEVICES MODULES COMMAND...: runs where there are so many devices and the modules can be imported
    local name=$1 least=$2 modules=$3 module start=$SECONDS left limit
    shift 3
    case " $steps " in *" $name "*) ;; *) return ;; esac
    ((gpus >= least)) || { skip "$name" "it needs $least devices, and there are $gpus" && return; }
    command -v "$1" >/dev/null || { skip "$name" "there is no $1" && return; }
    for module in $modules; do
        "$python" -c "import $module" 2>/dev/null || { skip "$name" "$python has no $module" && return; }
    done
    left=$((${ALL_SECONDS:-590} - SECONDS)) limit=${STEP_SECONDS:-240}
    ((left > 5)) || { skip "$name" "${ALL_SECONDS:-590} s are over" && failed+=("$name") && return; }
    # In the background, so that Ctrl-C is heard at once; the shell would have what it puts there ignore Ctrl-C, tests of it, too.
    env --default-signal=INT timeout -k 5 $((limit < left ? limit : left)) "$@" >"$logs/$name.log" 2>&1 </dev/null &
    child=$!
    wait "$child"
    local status=$?
    child=
    # Where mpiexec and mpi4py are of different libraries, each rank is alone, and all seems well.
    if ((status == 0)) && [[ -n ${EXPECTED:-} ]] && ! grep -q "$EXPECTED" "$logs/$name.log"; then
        echo "its output does not have '$EXPECTED': do all ranks use the same library?" >>"$logs/$name.log"
        status=1
    fi
    tail -n "${TAIL:-25}" "$logs/$name.log"
    if ((status == 124)); then
        say "$name" "$((SECONDS - start)) s, FAILED: its time was over"
    else
        say "$name" "$((SECONDS - start)) s, $( ((status)) && echo "FAILED with $status" || echo passed)"
    fi
    if ((status)); then failed+=("$name"); else passed+=("$name"); fi
}

counts=1
for ((n = 2; n <= gpus; n *= 2)); do counts+=,$n; done

step devices 1 "" "$python" examples/several_devices.py
step answers 1 "" "$python" tests/nccl/answers.py
EXPECTED="\b$gpus rank" step mpi 1 mpi4py mpiexec -n "$gpus" "$python" -m mpi4py examples/mpi_heat.py
EXPECTED="\b$gpus rank" step nccl 1 "" "$python" -m cupola run -n "$gpus" examples/nccl_allreduce.py
EXPECTED="\b$gpus rank" step torchrun 1 torch "$python" -m torch.distributed.run --nproc-per-node="$gpus" examples/nccl_allreduce.py
EXPECTED="split agrees" step nccl4py 1 nccl.core "$python" -m cupola run tests/ecosystem/nccl4py_programs.py
step dask 1 distributed "$python" examples/dask_statistics.py
step ray 1 ray "$python" examples/ray_pipeline.py
step nccl_transfers 1 "" "$python" -m benchmarks.transfers --strict --engine nccl --ranks "$gpus" --sizes "$sizes" --json "$logs/nccl.json"
step mpi_transfers 1 mpi4py "$python" -m benchmarks.transfers --strict --engine mpi --ranks "$gpus" --sizes "$sizes" --json "$logs/mpi.json"
step scaling 1 mpi4py "$python" -m benchmarks.transfers --scaling "$counts" $plate --json "$logs/scaling.json"
tests=(1 "pytest xdist" "$python" -m pytest -q -p no:benchmark -n "$jobs" -rs)
step test_ranks "${tests[@]}" tests/nccl tests/mpi tests/dask tests/ray
step test_memory "${tests[@]}" tests/core/memory tests/core/exchange/test_copies.py tests/graph/test_definition.py \
    tests/test_checkpoint.py

measured=()
for name in nccl mpi scaling; do [[ -s $logs/$name.json && $logs/$name.json -nt $logs/begin ]] && measured+=("$logs/$name.json"); done
if ((${#measured[@]})); then "$python" -m benchmarks.transfers.tables "${measured[@]}" >"$logs/tables.md"; fi
{
    printf '%s\n' "${clocks[@]}"
    echo "in all $SECONDS s on $gpus devices"
    echo "passed: ${passed[*]:-none}; failed: ${failed[*]:-none}; not run: ${others[*]:-none}"
} >"$logs/clocks.txt"
echo "== in all"
cat "$logs/clocks.txt"
((${#failed[@]} == 0))
