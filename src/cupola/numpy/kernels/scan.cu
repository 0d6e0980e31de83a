// Running totals of rows that lie side by side. T is the type of the elements, COMPUTED that of the computation; combined() is
// given. A block takes a tile of a row; what precedes a tile is combined with it by a second kernel.

constexpr int BLOCK = 256, EACH = 8, TILE = BLOCK * EACH;

extern "C" __global__ void __launch_bounds__(BLOCK) scan_tiles(const T* in, T* out, T* totals, long long rows, long long count) {
    __shared__ char memory[2][BLOCK * sizeof(COMPUTED)];
    long long tiles = (count + TILE - 1) / TILE;
    for (long long part = blockIdx.x; part < rows * tiles; part += gridDim.x) {
        long long from = part % tiles * TILE + threadIdx.x * EACH;
        const T* row = in + part / tiles * count;
        T* to = out + part / tiles * count;
        COMPUTED running[EACH];
        int mine = count - from < EACH ? (count > from ? count - from : 0) : EACH;
        for (int k = 0; k < mine; k++) running[k] = k ? combined(running[k - 1], (COMPUTED)row[from + k]) : (COMPUTED)row[from];
        int now = 0;
        if (mine) ((COMPUTED*)memory[0])[threadIdx.x] = running[mine - 1];
        // Threads behind the end of the row have nothing, and nobody before the end reads them.
        for (int reach = 1; reach < BLOCK; reach *= 2) {
            __syncthreads();
            COMPUTED* old = (COMPUTED*)memory[now];
            COMPUTED* next = (COMPUTED*)memory[1 - now];
            if (mine) next[threadIdx.x] = threadIdx.x < reach ? old[threadIdx.x] : combined(old[threadIdx.x - reach], old[threadIdx.x]);
            now = 1 - now;
        }
        __syncthreads();
        COMPUTED* all = (COMPUTED*)memory[now];
        for (int k = 0; k < mine; k++) to[from + k] = (T)(threadIdx.x ? combined(all[threadIdx.x - 1], running[k]) : running[k]);
        if (mine && (from + mine == count || threadIdx.x == BLOCK - 1)) totals[part] = (T)all[threadIdx.x];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) add_before(T* out, const T* totals, long long rows, long long count) {
    long long tiles = (count + TILE - 1) / TILE;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * count; i += step) {
        long long tile = i % count / TILE;
        if (tile) out[i] = (T)combined((COMPUTED)totals[i / count * tiles + tile - 1], (COMPUTED)out[i]);
    }
}
