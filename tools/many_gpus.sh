#!/usr/bin/env bash
# Run on all GPUs of this host what uses several: examples, tests and benchmarks, and leave a log of each.
#
# usage: tools/many_gpus.sh [LOG_FOLDER]      (PYTHON names the interpreter; STEPS picks some of the steps; GPUS says how many)
#
# Needs Python with cupola[test,mpi,nccl,dask,ray] and a library of MPI. On the CPU device: CUPOLA_DEVICE=cpu GPUS=4.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=${1:-many_gpus}
python=${PYTHON:-python3}
steps=${STEPS:-devices mpi nccl torchrun dask ray tests nccl_transfers mpi_transfers scaling}
gpus=${GPUS:-$(nvidia-smi -L | grep -c '^GPU ')}
mkdir -p "$logs"
# Programs that use NVLink multicast can put the GPUs of a host out of service, for everybody: it stays off in NCCL, PyTorch and NVSHMEM.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
export CUPOLA_DEVICE=${CUPOLA_DEVICE:-gpu} CUPOLA_CPU_DEVICES=$gpus PYTHONUNBUFFERED=1 RAY_USAGE_STATS_ENABLED=0
export PYTHONPATH="$PWD:$PWD/examples${PYTHONPATH:+:$PYTHONPATH}"
failed=()

step() { # NAME COMMAND...
    local name=$1 start=$SECONDS
    shift
    case " $steps " in *" $name "*) ;; *) return ;; esac
    echo "== $name"
    timeout "${STEP_SECONDS:-600}" "$@" >"$logs/$name.log" 2>&1 || failed+=("$name")
    tail -n "${TAIL:-25}" "$logs/$name.log"
    echo "== $name: $((SECONDS - start)) s"
}

counts=1
for ((n = 2; n <= gpus; n *= 2)); do counts+=,$n; done

step devices "$python" examples/several_devices.py
step mpi mpiexec -n "$gpus" "$python" -m mpi4py examples/mpi_heat.py
step nccl "$python" -m cupola run -n "$gpus" examples/nccl_allreduce.py
"$python" -c 'import torch' 2>/dev/null &&
    step torchrun "$python" -m torch.distributed.run --nproc-per-node="$gpus" examples/nccl_allreduce.py
step dask "$python" examples/dask_statistics.py
((gpus >= 3)) && step ray "$python" examples/ray_pipeline.py # an actor for each of three devices
step tests "$python" -m pytest -q -p no:benchmark -n 0 tests/nccl tests/mpi tests/dask tests/ray \
    tests/core/memory tests/core/exchange/test_copies.py tests/graph/test_definition.py tests/test_checkpoint.py
step nccl_transfers "$python" -m benchmarks.transfers --engine nccl --ranks "$gpus" --json "$logs/nccl.json"
step mpi_transfers "$python" -m benchmarks.transfers --engine mpi --ranks "$gpus" --json "$logs/mpi.json"
step scaling "$python" -m benchmarks.transfers --scaling "$counts" --json "$logs/scaling.json"

if ((${#failed[@]})); then
    echo "failed on $gpus devices: ${failed[*]}"
    exit 1
fi
echo "all passed on $gpus devices: $steps"
