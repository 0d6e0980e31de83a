"""Attention, softmax(Q K^T / sqrt(d)) V, in one pass: a block for each query."""

import numpy as np
from pictures import colors, save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
#define INFINITY __int_as_float(0x7f800000)
const int D = 64;  // numbers of a key, and threads of a block

extern "C" __global__ void attention(const float* q, const float* k, const float* v, float* out, int n) {
    __shared__ float query[D], scores[D];
    const int t = threadIdx.x, row = blockIdx.x;
    query[t] = q[row * D + t] * rsqrtf(D);
    float most = -INFINITY, total = 0, sum = 0;  // of the scores so far, of their weights, of weighted values
    for (int first = 0; first < n; first += D) {
        __syncthreads();
        float score = first + t < n ? 0 : -INFINITY;  // thread t has key first + t
        for (int i = 0; i < D && first + t < n; ++i) score += query[i] * k[(first + t) * D + i];
        scores[t] = score;
        __syncthreads();
        float higher = most;
        for (int i = 0; i < D; ++i) higher = fmaxf(higher, scores[i]);
        const float shrink = expf(most - higher);  // what was added up with a smaller maximum
        total *= shrink, sum *= shrink, most = higher;
        for (int i = 0; i < min(D, n - first); ++i) {
            const float weight = expf(scores[i] - most);
            total += weight;
            sum += weight * v[(first + i) * D + t];  // thread t has column t of the values
        }
    }
    out[row * D + t] = sum / total;
}
"""


def main(path: str = "attention.png", *, n: int = 150, d: int = 64) -> None:
    dev = Device()
    dev.set_current()
    kernel = cupola.compile(SOURCE).get_kernel("attention")
    waves = np.arange(n)[:, None] / np.geomspace(1, n, d // 2)  # of positions, so near ones are alike
    q = k = (0.7 * np.hstack([np.cos(waves), np.sin(waves)])).astype(np.float32)
    v = np.sin(np.arange(n)[:, None] * np.arange(d) / 60).astype(np.float32)
    with dev.stream() as stream:
        out = dev.empty((n, d), np.float32)
        launch(stream, LaunchConfig(grid=n, block=d), kernel, dev.array(q), dev.array(k), dev.array(v), out, n)
        result = out.to_numpy()
    scores = q.astype(np.float64) @ k.T / np.sqrt(d)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result, weights @ v, atol=1e-5)
    picture = np.hstack([weights / weights.max(), np.ones((n, 6)), (result - result.min()) / np.ptp(result)])
    save(path, colors(np.kron(picture, np.ones((2, 2)))))
    print(f"attention: {n} queries and keys of {d} numbers as NumPy has them, see {path}, on {dev.name}")


if __name__ == "__main__":
    main()
