// Distributions that few programs need, apart from the others, so that their kernels compile sooner.

struct rare_source : random_source {
    __device__ rare_source(unsigned long long key, unsigned long long index) : random_source(key, index) {}
    // An angle from -pi to pi: Best and Fisher (1979), rejection from a wrapped Cauchy distribution.
    __device__ double vonmises(double mean, double kappa) {
        const double pi = 3.14159265358979323846;
        double angle = 0;
        if (kappa != kappa) return kappa;
        if (kappa < 1e-8) return pi * (2 * uniform() - 1); // wherever the mean is
        if (kappa > 1e6) { // a normal one, but for less than can be seen
            angle = normal() / sqrt(kappa);
        } else {
            double r = 1 + sqrt(1 + 4 * kappa * kappa), rho = (r - sqrt(2 * r)) / (2 * kappa);
            double s = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho);
            for (int turn = 0; turn < 1000; turn++) {
                double z = cospi(uniform()), w = (1 + s * z) / (s + z), y = kappa * (s - w), v = positive();
                if (y * (2 - y) < v && log(y / v) + 1 - y < 0) continue;
                angle = acos(fmin(fmax(w, -1.0), 1.0));
                break;
            }
            if (word() & 1) angle = -angle;
        }
        return remainder(mean + angle, 2 * pi);
    }
    // Devroye (1986), X.6.1: rejection from a Pareto distribution that is rounded down.
    __device__ double zipf(double a) {
        if (a >= 1025) return 1; // two has less than the least chance
        double b = pow(2.0, a - 1), least = pow(9223372036854775807.0, 1 - a); // of u: what is above the integers
        for (int turn = 0; turn < 10000; turn++) {
            double u = positive(), v = uniform(), x = floor(pow(u * least + (1 - u), -1 / (a - 1)));
            if (!(x < 9223372036854775807.0)) continue;
            double t = pow(1 + 1 / x, a - 1);
            if (v * x * (t - 1) / (b - 1) <= t / b) return x;
        }
        return 1;
    }
    // How many good ones a sample has, of so many good and bad ones.
    __device__ double hypergeometric(double good, double bad, double sample) {
        double all = good + bad, drawn = fmin(sample, all - sample); // or what is left: that is a sample, too
        if (!(drawn >= 1)) return sample > 0 ? good : 0;
        double few = fmin(good, bad), found = drawn < 10 ? one_by_one(few, all, drawn) : by_ratio(few, all, drawn);
        if (good > bad) found = drawn - found;
        return drawn < sample ? good - found : found;
    }
    __device__ double one_by_one(double few, double all, double drawn) {
        double left = few;
        for (; drawn >= 1; drawn--, all--)
            if (uniform() * all < left) left--;
        return few - left;
    }
    // Stadlober's ratio of uniforms (1990): below a table mountain about the mode.
    __device__ double by_ratio(double few, double all, double drawn) {
        double share = few / all, centre = drawn * share + 0.5;
        double spread = sqrt((all - drawn) * drawn * share * (1 - share) / (all - 1) + 0.5);
        double width = 1.7155277699214135 * spread + 0.8989161620588988; // 2 sqrt(2 / e), 3 - 2 sqrt(3 / e)
        double mode = floor((drawn + 1) * (few + 1) / (all + 2)), best = weight(few, all, drawn, mode);
        double end = fmin(fmin(drawn, few) + 1, floor(centre + 16 * spread));
        for (int turn = 0; turn < 1000; turn++) {
            double u = positive(), k = floor(centre + width * (uniform() - 0.5) / u);
            if (k < 0 || k >= end) continue;
            double t = best - weight(few, all, drawn, k);
            if (u * (4 - u) - 3 <= t) return k;
            if (u * (u - t) < 1 && 2 * log(u) <= t) return k;
        }
        return mode;
    }
    static __device__ double weight(double few, double all, double drawn, double k) {
        return lgamma(k + 1) + lgamma(few - k + 1) + lgamma(drawn - k + 1) + lgamma(all - few - drawn + k + 1);
    }
};
