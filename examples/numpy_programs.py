"""NumPy programs on the device. They differ from their NumPy form by the import alone.

    python examples/numpy_programs.py [NAME ...]

Each function below is such a program, of arrays of n elements or so. At the end this file is loaded once more with
`import numpy as np` in place of its own import. Both forms run, their results are compared, and their times are
printed: the least of five runs behind the first one, which compiles kernels.
"""

import sys
import time
from pathlib import Path
from typing import Any

import cupola.numpy as np


def noise(n: int, start: int = 0) -> Any:
    """Numbers from 0 to 1 that look random and are the same everywhere."""
    x = np.arange(start, start + n, dtype=np.uint64) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(2862933555777941757)
    return (x >> np.uint64(40)).astype(np.float64) / 2**24


def heat(n: int) -> Any:
    """Heat spreads in a plate with a warm edge."""
    side = int(n**0.5)
    u = np.zeros((side, side))
    u[0] = 1
    for _ in range(50):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def wave(n: int) -> Any:
    """A plucked string."""
    x = np.linspace(0, 1, n)
    now = np.minimum(x, 1 - x)
    before = now.copy()
    for _ in range(50):
        after = 2 * now - before
        after[1:-1] += 0.25 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now = now, after
    return now


def mandelbrot(n: int) -> Any:
    """How soon points leave the circle of radius 2."""
    side = int(n**0.5)
    c = np.linspace(-2, 1, side) + 1j * np.linspace(-1.5, 1.5, side)[:, None]
    z, steps = np.zeros_like(c), np.zeros(c.shape, dtype=np.int32)
    for _ in range(30):
        inside = z.real * z.real + z.imag * z.imag < 4
        z = np.where(inside, z * z + c, z)
        steps += inside
    return (steps > 10).sum() / n  # points on the border may go either way


def life(n: int) -> Any:
    """Conway's game of life on a torus."""
    side = int(n**0.5)
    alive = (noise(side * side) < 0.4).reshape(side, side)
    for _ in range(20):
        near = sum(np.roll(alive.astype(np.int8), (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        alive = (near == 3) | (alive & (near == 2))
    return alive


def nbody(n: int) -> Any:
    """Stars that attract each other."""
    count = min(int(n**0.5), 512)
    place, speed = noise(3 * count).reshape(count, 3) - 0.5, np.zeros((count, 3))
    for _ in range(10):
        away = place[None] - place[:, None]
        square = (away * away).sum(axis=2) + 0.01
        speed += 0.001 * (away / (square * np.sqrt(square))[:, :, None]).sum(axis=1) / count
        place = place + speed
    return place


def k_means(n: int) -> Any:
    """Points are gathered around eight centers."""
    points = noise(2 * n).reshape(n, 2)
    centers = points[:8].copy()
    for _ in range(10):
        nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        sums, counts = np.zeros((8, 2)), np.bincount(nearest, minlength=8)
        np.add.at(sums, nearest, points)
        centers = sums / np.maximum(counts, 1)[:, None]
    return centers


def pca(n: int) -> Any:
    """The share of the variance along each main direction."""
    data = noise(n // 8 * 8).reshape(-1, 8) * np.arange(1, 9)
    return np.linalg.eigvalsh(np.cov(data.T)) / data.var(axis=0).sum()


def regression(n: int) -> Any:
    """A plane through points, by least squares."""
    x = noise(n // 4 * 4).reshape(-1, 4)
    y = x @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.1 * noise(len(x), n)
    return np.linalg.lstsq(x, y, rcond=None)[0]


def logistic(n: int) -> Any:
    """Two classes told apart, by gradient descent."""
    x = noise(n // 4 * 4).reshape(-1, 4) - 0.5
    wanted = (x @ np.array([1.0, -2.0, 0.5, 3.0]) > 0).astype(np.float64)
    w = np.zeros(4)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-(x @ w)))
        w = w + x.T @ (wanted - chance) / len(x) * 10
    return w


def monte_carlo(n: int) -> Any:
    """Pi, by counting points in a circle."""
    x, y = noise(n), noise(n, n)
    return 4 * np.mean(x * x + y * y < 1)


def black_scholes(n: int) -> Any:
    """The values of options."""
    price, strike, years = 20 + 80 * noise(n), 20 + 80 * noise(n, n), 0.1 + 2 * noise(n, 2 * n)
    root = 0.3 * np.sqrt(years)
    d = (np.log(price / strike) + (0.02 + 0.045) * years) / root

    def normal(v: Any) -> Any:
        t = 1 / (1 + 0.2316419 * np.abs(v))
        tail = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        tail = tail * np.exp(-v * v / 2) * 0.3989422804014327
        return np.where(v > 0, 1 - tail, tail)

    return price * normal(d) - strike * np.exp(-0.02 * years) * normal(d - root)


def fft_filter(n: int) -> Any:
    """A tone found in noise."""
    t = np.arange(n) / n
    signal = np.sin(2 * np.pi * 50 * t) + noise(n) - 0.5
    spectrum = np.fft.rfft(signal)
    spectrum[np.abs(spectrum) < n / 10] = 0
    return np.fft.irfft(spectrum, n)


def blur_and_edges(n: int) -> Any:
    """An image is blurred, and its edges are marked."""
    side = int(n**0.5)
    image = np.pad(noise(side * side).reshape(side, side), 2, mode="edge")
    blurred = sum(image[i : i + side, j : j + side] for i in range(5) for j in range(5)) / 25
    down, right = np.gradient(blurred)
    return np.hypot(down, right)


def equalize(n: int) -> Any:
    """The grays of an image are spread evenly."""
    image = (255 * noise(n) ** 2).astype(np.uint8)
    counts = np.bincount(image, minlength=256)
    share = np.cumsum(counts) / n
    return (255 * share).astype(np.uint8)[image]


def page_rank(n: int) -> Any:
    """The ranks of pages that link to each other."""
    count = min(int(n**0.5), 1024)
    links = (noise(count * count) < 0.05).reshape(count, count) | np.eye(count, dtype=bool)
    chance = links / links.sum(axis=0)
    rank = np.full(count, 1 / count)
    for _ in range(20):
        rank = 0.15 / count + 0.85 * (chance @ rank)
    return rank


def conjugate_gradients(n: int) -> Any:
    """A linear system that only its product is known of."""

    def product(v: Any) -> Any:
        out = 2.5 * v
        out[1:] -= v[:-1]
        out[:-1] -= v[1:]
        return out

    b = noise(n)
    x, r = np.zeros(n), b
    p, size = r, r @ r
    for _ in range(25):
        q = product(p)
        a = size / (p @ q)
        x, r = x + a * p, r - a * q
        size, before = r @ r, size
        p = r + size / before * p
    return x


def nearest_neighbors(n: int) -> Any:
    """The five nearest points of each."""
    count = min(int(n**0.5), 512)
    points = noise(2 * count).reshape(count, 2)
    square = (points**2).sum(axis=1)
    return np.argsort(square[:, None] + square - 2 * points @ points.T, axis=1)[:, 1:6]


def primes(n: int) -> Any:
    """The sieve of Eratosthenes."""
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for k in range(2, min(int(n**0.5), 200) + 1):
        prime[k * k :: k] = False
    return np.flatnonzero(prime)


def shortest_paths(n: int) -> Any:
    """The shortest ways between all pairs of towns."""
    count = min(int(n**0.5), 96)
    way = noise(count * count).reshape(count, count)
    for k in range(count):
        way = np.minimum(way, way[:, k, None] + way[None, k])
    return way


def moving_average(n: int) -> Any:
    """A series made smooth, and where it departs most from that."""
    series = np.cumsum(noise(n) - 0.5)
    total = np.cumsum(np.concatenate([np.zeros(1), series]))
    smooth = (total[20:] - total[:-20]) / 20
    away = np.abs(series[10 : 10 + len(smooth)] - smooth)
    return np.sort(away)[-5:]


def gram_schmidt(n: int) -> Any:
    """Vectors made orthogonal: what is left of their products."""
    vectors = noise(n // 8 * 8).reshape(-1, 8)
    for k in range(8):
        vectors[:, k] /= np.linalg.norm(vectors[:, k])
        vectors[:, k + 1 :] -= np.outer(vectors[:, k], vectors[:, k] @ vectors[:, k + 1 :])
    return vectors.T @ vectors


PROGRAMS = [
    heat, wave, mandelbrot, life, nbody, k_means, pca, regression, logistic, monte_carlo, black_scholes, fft_filter,
    blur_and_edges, equalize, page_rank, conjugate_gradients, nearest_neighbors, primes, shortest_paths, moving_average,
    gram_schmidt,
]  # fmt: skip


def with_numpy() -> dict[str, Any]:
    """The same programs with NumPy: this file with another import."""
    text = Path(__file__).read_text().replace("import cupola.numpy as np", "import numpy as np")
    names: dict[str, Any] = {"__name__": "with_numpy", "__file__": __file__}
    exec(compile(text, __file__, "exec"), names)
    return names


def measured(form: Any, n: int) -> float:
    """How many milliseconds a program takes."""
    start = time.perf_counter()
    np.asnumpy(form(n))
    return 1e3 * (time.perf_counter() - start)


def main(names: list[str], n: int = 10_000) -> None:
    import numpy

    theirs = with_numpy()
    print(f"{'program':22}{'cupola.numpy':>14}{'NumPy':>12}   milliseconds, n = {n}")
    for program in PROGRAMS:
        if names and program.__name__ not in names:
            continue
        times: list[float] = []
        results: list[Any] = []
        for form in (program, theirs[program.__name__]):
            results.append(np.asnumpy(form(n)))
            times.append(min(measured(form, n) for _ in range(5)))
        found, right = results
        assert found.shape == right.shape, program.__name__
        assert numpy.allclose(found, right, rtol=1e-6, atol=1e-7), program.__name__
        print(f"{program.__name__:22}{times[0]:14.1f}{times[1]:12.1f}")


if __name__ == "__main__":
    size = [int(one) for one in sys.argv[1:] if one.isdigit()]
    main([one for one in sys.argv[1:] if not one.isdigit()], *size)
