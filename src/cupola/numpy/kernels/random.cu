// Philox4x32-10 (Salmon et al., 2011): random bits as a function of a key and a counter. So element i of a sequence is the
// same on every device, and however the work is divided.

struct random_block {
    unsigned int word[4];
};

static __device__ random_block philox(unsigned long long key, unsigned long long index, unsigned int trial) {
    unsigned int a = index, b = index >> 32, c = trial, d = 0, k = key, l = key >> 32;
    for (int round = 0; round < 10; round++, k += 0x9E3779B9u, l += 0xBB67AE85u) {
        unsigned long long one = 0xD2511F53ull * a, other = 0xCD9E8D57ull * c;
        a = (unsigned int)(other >> 32) ^ b ^ k, b = (unsigned int)other;
        c = (unsigned int)(one >> 32) ^ d ^ l, d = (unsigned int)one;
    }
    return {a, b, c, d};
}

// The source of one element: as many numbers as it takes.
struct random_source {
    unsigned long long key, index;
    unsigned int trial = 0, used = 4;
    random_block block;
    __device__ random_source(unsigned long long key, unsigned long long index) : key(key), index(index) {}
    __device__ unsigned int word() {
        if (used == 4) block = philox(key, index, trial++), used = 0;
        return block.word[used++];
    }
    __device__ unsigned long long bits() {
        unsigned long long low = word();
        return low | (unsigned long long)word() << 32;
    }
    __device__ double uniform() { return (bits() >> 11) * (1.0 / 9007199254740992.0); }   // [0, 1)
    __device__ float single() { return (word() >> 8) * (1.0f / 16777216); }                    // [0, 1)
    __device__ double between() { return ((bits() >> 12) + 0.5) * (1.0 / 4503599627370496.0); } // (0, 1)
    __device__ unsigned long long below(unsigned long long span) { return __umul64hi(bits(), span); }
    __device__ double positive() { return ((bits() >> 11) + 1) * (1.0 / 9007199254740992.0); } // (0, 1]
    __device__ double exponential() { return -log(positive()); }
    __device__ double normal() {
        double radius = sqrt(-2 * log(positive()));
        return radius * cospi(2 * uniform());
    }
    // Marsaglia and Tsang (2000).
    __device__ double gamma(double shape) {
        double boost = 1;
        if (shape == 0) return 0;
        if (shape < 1) boost = pow(positive(), 1 / shape), shape += 1;
        double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
        for (int turn = 0; turn < 1000; turn++) {
            double x = normal(), v = 1 + c * x;
            if (v <= 0) continue;
            v = v * v * v;
            if (log(positive()) < 0.5 * x * x + d * (1 - v + log(v))) return boost * d * v;
        }
        return boost * d;
    }
    // By multiplication where it is short, else Hoermann's PTRS (1993). What is no number has none, as in NumPy, and
    // infinitely many are NumPy's number for that.
    __device__ double poisson(double mean) {
        if (isinf(mean) && mean > 0) return -9223372036854775808.0;
        if (!(mean >= 10)) {
            double limit = exp(-mean), product = positive();
            int found = 0;
            for (; product > limit && found < 10000; found++) product *= positive();
            return found;
        }
        double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
        double alpha = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
        for (int turn = 0; turn < 1000; turn++) {
            double u = uniform() - 0.5, v = positive(), us = 0.5 - fabs(u);
            double k = floor((2 * a / us + b) * u + mean + 0.43);
            if (us >= 0.07 && v <= inside) return k;
            if (k < 0 || (us < 0.013 && v > us)) continue;
            if (log(v) + log(alpha) - log(a / (us * us) + b) <= -mean + k * log(mean) - lgamma(k + 1)) return k;
        }
        return floor(mean);
    }
    // By inversion where it is short, else Hoermann's BTRS (1993).
    __device__ double binomial(double n, double p) {
        if (p > 0.5) return n - binomial_half(n, 1 - p);
        return binomial_half(n, p);
    }
    __device__ double binomial_half(double n, double p) {
        double q = 1 - p;
        if (n * p < 10) {
            double left = uniform(), chance = exp(n * log1p(-p)), k = 0;
            // What is left is a rounding error where chances are below the smallest number.
            while (left > chance && chance > 0 && k < n) {
                left -= chance;
                k += 1;
                chance *= (n - k + 1) / k * p / q;
            }
            return k;
        }
        double spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5;
        double inside = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread, m = floor((n + 1) * p);
        double best = lgamma(m + 1) + lgamma(n - m + 1);
        for (int turn = 0; turn < 1000; turn++) {
            double u = uniform() - 0.5, v = positive(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
            if (k < 0 || k > n) continue;
            if (us >= 0.07 && v <= inside) return k;
            if (log(v * alpha / (a / (us * us) + b)) <= best - lgamma(k + 1) - lgamma(n - k + 1) + (k - m) * log(p / q)) return k;
        }
        return m;
    }
};
