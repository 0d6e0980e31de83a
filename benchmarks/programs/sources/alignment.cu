#ifdef __CUDACC__
KERNEL void align(const char *a, const char *b, int *scores) { /* a block for each pair, a thread for each column */
    __shared__ int s[3][129];
    int t = threadIdx.x, best = 0;
    for (int k = 0; k < 3; ++k) s[k][t + 1] = 0;
    if (!t) s[0][0] = s[1][0] = s[2][0] = 0;
    char mine = b[blockIdx.x * 128 + t];
    __syncthreads();
    for (int d = 0; d < 255; ++d) {
        int row = d - t, *now = s[d % 3], *last = s[(d + 2) % 3], *before = s[(d + 1) % 3], score = 0;
        if (row >= 0 && row < 128) {
            score = before[t] + (a[blockIdx.x * 128 + row] == mine ? 3 : -2);
            score = max(max(score, 0), max(last[t], last[t + 1]) - 2);
            best = max(best, score);
        }
        now[t + 1] = score;
        __syncthreads();
    }
    atomicMax(&scores[blockIdx.x], best);
}
#else
void program(const char *restrict a, const char *restrict b, int *restrict scores, int pairs) {
#pragma omp parallel for
    for (int pair = 0; pair < pairs; ++pair) {
        int row[129] = {0}, best = 0;
        for (int i = 0; i < 128; ++i) {
            int corner = 0;
            for (int j = 0; j < 128; ++j) {
                int score = corner + (a[pair * 128 + i] == b[pair * 128 + j] ? 3 : -2);
                int gap = (row[j] > row[j + 1] ? row[j] : row[j + 1]) - 2;
                corner = row[j + 1];
                score = score > gap ? score : gap;
                row[j + 1] = score = score > 0 ? score : 0;
                best = best > score ? best : score;
            }
        }
        scores[pair] = best;
    }
}
#endif
