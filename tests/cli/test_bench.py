"""``cupola bench``: what it measures, and what it makes of its arguments."""

from __future__ import annotations

import json

import pytest

from cupola.cli import expression, main
from tests.conftest import on_cpu_device

SOURCE = """
extern "C" __global__ void saxpy(float a, const float* __restrict__ x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
// __global__ void commented(int n) {
template <typename T> __global__ void fill(T* x, unsigned long long n) { if (threadIdx.x < n) x[threadIdx.x] = T(1); }
struct Pair { int a, b; };
extern "C" __global__ void odd(Pair* pairs) { }
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "k.cu").write_text(SOURCE)
    return str(tmp_path / "k.cu")


def test_a_kernel_on_the_device(file, capsys):
    arguments = ["bench", file, "--kernel", "saxpy", "--size", "1000, 4k", "--time", "0.01"]
    assert main([*arguments, "--flops", "2*n", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert [row["n"] for row in result["sizes"]] == [1000, 4096]
    for row in result["sizes"]:
        assert row["bytes"] == 8 * row["n"] and row["flops"] == 2 * row["n"]
        assert 0 < row["least_seconds"] <= row["median_seconds"]
        assert row["gigabytes_per_second"] == pytest.approx(row["bytes"] / row["median_seconds"] / 1e9)
    assert main([*arguments, "--args", "float 2, float[n], float[2*n], n", "--bytes", "12*n"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["n", "median", "least", "GB/s", "device"] and second.startswith("4,096 ")


def test_a_template_and_a_grid(file, capsys):
    arguments = ["--block", "8,4", "--grid", "n/32, 2", "--shared", "4*n", "--size", "64", "--time", "0.01", "--json"]
    assert main(["bench", file, "--kernel", "fill<double>", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["sizes"][0]["bytes"] == 64 * 8


def test_both_devices(file, capsys):
    assert (
        main(["bench", file, "--kernel", "saxpy", "--device", "both", "--size", "32", "--time", "0.01", "--json"]) == 0
    )
    gpu, cpu = json.loads(capsys.readouterr().out)["results"]
    assert cpu["device"].startswith("cupola CPU device") and cpu["sizes"]
    if on_cpu_device() and "sizes" not in gpu:
        assert gpu["absent"] and "NVIDIA" in gpu["error"] or "GPU" in gpu["error"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "has several kernels: add --kernel with one of saxpy, fill, odd"),
        (["--kernel", "nothing"], "there is no kernel nothing"),
        (["--kernel", "odd"], "no value is known for the parameter `Pair* pairs`"),
        (["--kernel", "saxpy", "--args", "1.0, string[n]"], "there is no type 'string'"),
        (["--kernel", "saxpy", "--args", "1.0, m"], "'m' is no arithmetic of numbers and n, "),
        (["--kernel", "saxpy", "--args", "1.0"], "4 parameters|4 arguments"),
        (["--kernel", "saxpy", "--grid", "1,1,1,1"], "one to three numbers"),
    ],
)
def test_what_cannot_be_measured(file, capsys, arguments, text):
    assert main(["bench", file, "--size", "8", "--time", "0.01", *arguments]) == 1
    captured = capsys.readouterr()
    assert any(part in captured.err for part in text.split("|")), captured.err
    assert not captured.out


@pytest.mark.parametrize(
    "arguments", [["--size", "none"], ["--size", "0"], ["--time", "0"], ["--model", "t4", "--device", "gpu"]]
)
def test_wrong_arguments(file, arguments):
    with pytest.raises(SystemExit) as caught:
        main(["bench", file, *arguments])
    assert caught.value.code == 2


def test_arithmetic():
    good = {"2*n**2 + 1": 33, "-n % 3": 2, "ceil(n / 3)": 2, "min(n, 2, 9)": 2, "7 // 2": 3, "log2(n)": 2}
    assert {text: expression.evaluate(text, n=4) for text in good} == good
    for text in (
        "",
        "n n",
        "m",
        "n.real",
        "[1]",
        "'a'*3",
        "9**9**9",
        "1/0",
        "__import__('os')",
        "min(n, key=1)",
        "(" * 300,
    ):
        with pytest.raises(ValueError):
            expression.evaluate(text, n=4)
    assert [expression.size(text) for text in ("7", "2k", "3M", "2**20")] == [7, 2048, 3 << 20, 1 << 20]
    for text in ("", "k", "1.5", "-1"):
        with pytest.raises(ValueError):
            expression.size(text)
