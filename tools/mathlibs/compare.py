"""Compare what the CPU device answers to recorded lines with what a GPU did.

``python tools/mathlibs/compare.py cublas`` prints the lines that differ, and fails if there are any.
"""

from __future__ import annotations

import collections
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.mathlibs.bench import COUNT, ROWS, decode, element, encode
from tools.mathlibs.factors import same_product

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "cpu" / "math" / "recorded"
# Units in the last place that sums may differ by, relative to 1 where values are small: the lines' own values are small
# numbers whose sums are exact, so this is for roots, quotients and factorizations.
TOLERANCE = {
    "h": 2e-3,
    "b": 1.6e-2,
    "s": 1e-5,
    "c": 1e-5,
    "d": 1e-13,
    "z": 1e-13,
    "i": 0,
    "q": 0,
    "k": 2e-3,
    "g": 1.6e-2,
}


def recorded(library: str) -> Iterator[tuple[str, str]]:
    """The lines of a library with their answers."""
    for text in (RECORDED / f"{library}.txt").read_text().splitlines():
        line, arrow, answer = text.partition(" -> ")
        if arrow:
            yield line, answer.strip()


def differs(expected: str, actual: str) -> bool:
    """Whether two answers differ in a status, in what changed, or in values by more than rounding."""
    if expected == actual:
        return False
    one, other = expected.split(), actual.split()
    if [p for p in one if "=" not in p] != [p for p in other if "=" not in p]:
        return True
    changes = [dict(p.split("=") for p in parts if "=" in p) for parts in (one, other)]
    return any(_values_differ(name, changes[0].get(name), changes[1].get(name)) for name in changes[0] | changes[1])


def _values_differ(name: str, one: str | None, other: str | None) -> bool:
    tolerance = TOLERANCE.get(name[-1], 0)
    first, second = (dict(p.split(">") for p in text.split(",")) if text else {} for text in (one, other))
    for index in first.keys() | second.keys():  # what one of them has not changed is as it was
        before = _before(name, int(index))
        was = before if before is not None else [math.nan] * len(_numbers((first | second)[index]))
        numbers = [_numbers(side[index]) if index in side else was for side in (first, second)]
        for a, b in zip(*numbers, strict=True):
            if math.isnan(a) != math.isnan(b):
                return True
            if not math.isnan(a) and a != b and not abs(a - b) <= tolerance * max(1, abs(a)):
                return True
    return False


def _before(name: str, index: int) -> list[float] | None:
    """The value of an element before the call, as the bench has put it; None: it has none."""
    if len(name) != 2 or name[0] not in ROWS or name[0] == "R" or index >= COUNT:
        return None
    return _numbers(decode(name[1], encode(name[1], element(name[0], name[1], index))))


def compared(library: str, line: str, answer: str) -> str:
    """An answer without the places whose contents do not count for the line (`NOT_COMPARED`)."""
    rows = {row for rule, places in NOT_COMPARED.get(library, {}).items() if re.search(rule, line) for row in places}
    positive = library == "cusolver" and re.search(r"\bI=\d+>[1-9]", answer)  # what a failure leaves is nobody's
    rows |= set("ABCNST") if positive else set()
    return " ".join(part for part in answer.split() if "=" not in part or not {part[0], part.split("=")[0]} & rows)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in re.split(":", text)]


# Places whose contents are not compared, after lines that match: `A` stands for the matrices A of all types. They were
# workspace, or hold vectors whose signs are free; tests/bindings has their residuals. The records leave them out.
NOT_COMPARED = {
    "cusolver": {
        r"gesvd": "ABCNR",
        r"(sy|he)(ev|gv)": "ABCNS",
        r"Dn(Csy|Zsy|[SD]sy)trf\(h, \d, 4, S., 4, null": "S",
        r"geev\(": "ABCNS",
        r"[gG]els\(|[gG]esv\(": ("info", "A", "S", "R"),
        r"getrf\(.*\bN[sdcz]": "NP",
        r"Get(Residual|Sweeps)": ("info", "rd"),
        r"gesvdaStrided.*\brd,|gesvdp\(": ("rd",),
        r"(evd|gvd)x.*\b100[23], ": "x",
        r"potrfBatched\(h, 1|potrsBatched": "S",
        r"gvdx_bufferSize|Xsyevdx\(h, params, 0, 1001, 0, 4, (99|2),|Xsyevdx.*\b(99|1), xs": ("info",),
    },
}

# Where the CPU device means to answer otherwise: lines that match, and why. It refuses what crashes the process or
# gives numbers that nobody can want.
DIFFERENCES = {
    "cublas": {
        r"GetVersion": "the version is that of the headers",
        r"\bnull\b.*-> crash": "a null pointer that is not expected crashes the process there",
        r"gemv_v2\(h, (3|-1), ": "operations that there are not",
        r"gemv_v2\(h, 0, 3, 2, two_., A., 4, x., (0|1), one_., y., [01]\)": "increments of 0",
        r"axpy_v2\(h, 3, two_., x., 1, y., 0\)": "sums that are all stored in one place: which one stays is open",
        r"rk_v2.*zero_., N., 4, zero_|r2k_v2.*zero_., N., 4, .*zero_": "what beta = 0 does to a C that is not a number",
        r"trsm_v2.*N., 4, N., 4": "A and B overlap",
        r"gemmStridedBatched.*C., 4, 4, 2\)": "the results overlap",
        r"geam\(h, 0, 0, 3, 2, null": "a null pointer counts as a zero there",
        r"gemv_v2\(h, 0, 4, 2, one_[cz], N|trmm_v2.*zero_[cz], N": "infinity or NaN, in products of complex numbers",
        r"Batched(Ex)?\(.*, -1(, \d+, -1)?\)": "a negative count is refused, always with the same status",
        r"cublasGemmEx\(.*, 1, -1\)": "a compute type of CUDA 10",
        r"cublasScalEx\(.*, 99,": "which of two statuses",
        r"rotg": "not emulated",
        r"GroupedBatched.*>-0\.0": "zeros with a sign, where alpha is 0",
        r"GetVector(Async)?\(-1, ": "a negative count, which crashes the process there",
    },
    "cublasLt": {
        r"\bnull\b.*-> .*crash|cublasLtMatrixTransform\(h, null": "a null pointer that crashes the process there",
        r"DisableCpu|Desc[GS]etAttribute\(got\(\), (39|40|41)\b": "newer than the recorded library, but in the headers",
        r"Attribute\(got\(\), 16\b": "an attribute that is not in the headers",
        r"SetAttribute\(got\(\), 1, p\(-1\), 4\)": "the status of no function",
        r"AlgoInit|AlgoGetIds|AlgoCap": "algorithms are those of a GPU",
        r"plane=|batch_mode=1": "planar numbers and arrays of pointers are not emulated",
        r"trans[ab]=(3|-1)": "operations that there are not",
        r"epilogue=(0|1|3|5|16|34|64|128|132|768|1024)\b": "epilogues that there are not",
        r"Cs, L\(0, 4, 4, 4\), As\)|, null, Cs, L|null, null, L": "D is A, or C has no layout",
        r"aux_ld=(4|12)\b|aux_stride=100": "what the headers ask for",
        r"transform\(\d, L\(\d+, 4, 4, 3\)": "a leading dimension that is too small",
        r"order=[23]": "interleaved orders are not emulated",
        r"Rd, epilogue=192": "the last digits of the slope of GELU",
        r"Rq, transa=1, epilogue=192": "GELU in 8 bits is not rounded alike",
        r"batch=0.* -> 13": "batches of none",
        r"epilogue=(152|208).* -> 15": "no workspace is needed",
        r"L\(0, (0, 4|4, 0), 4\).* -> 13": "matrices without elements are fine",
        r"L\(2[89], .*, A[ds], .*\bB?A?d, L\(0, .* Rs": "large and small terms, of which an H200 keeps less",
        r"L\(28, (112|144|192|272|512), 16, .*Rs, transa=1, a_mode=": "likewise",
        r"L\(28, (272|512), 16, .*Rb, transa=1, a_mode=4": "likewise, of terms that cancel",
        r"a_mode=3, b_mode=[45].*-> (crash|0 some)": "a pair of modes that crashes the process there",
        r"L\(28, 256, 1, 256\).*a_mode=[34].*-> 0 Rs": "of one row, the scales of A are taken for those of B there",
        r"L\(33, .*a_mode=1, b_mode=1": "which of two statuses",
        r"L\(0, .*bias=xb \+ 2": "which of two statuses",
        r"L\(2[89], .*epilogue=(256|512|8)\b.*-> (15|0 some)": "what a heuristic says of products that there are not",
        r"L\(2[89], .*epilogue=(32|36|160|164).*-> 0 .*R[iq]=": "GELU in 8 bits is not rounded alike",
        r"L\(14, .*L\(28, .*L\((14|0|28), .*, L\((0|14), .*-> 7": "which of two statuses",
        r"heuristic.*(null|batch=0|pointer_mode=[234])|heuristic\(0, 0": "what has no algorithm",
    },
    "cusolver": {
        r"GetVersion": "the version is that of the headers",
        r"-> crash": "what crashes the process there",
        r"\(null, .*-> ([\d ]*\b)?[03]\b": "a handle that is none",
        r"SetAdvOptions\(params, [2-6], [012]\)": "functions that are newer than the library that was recorded",
        r"IRSInfosCreate\(slot\), cusolverDnIRSInfosGetMaxIters": "the limit before any call",
        r"sytri\(": "that library leaves the matrix as it is",
        r"getrf\(.*A., (3|0|-4), (work|P)": "a leading dimension that is too small reads beyond the matrix",
        r"laswp\(h, 4, B., (3|0|-4|4, 0)": "likewise, and rows that there are not",
        r"laswp\(.*P, 0\)": "an increment of 0",
        r"\bR[cz], .*getrf|getrf\(.*\bR[cz]\b|geqrf\(.*\bR[sdcz]\b": "the rounding of a matrix of rank 1",
        r"getrf\(.*\bN[sdcz]\b": "where NaN ends up",
        r"(gesv|gels)\(.*\b[RN][sdcz]\b": "what is left of a matrix that has no solution",
        r"Batched\(.*-> 0 I=0>0$|Batched\(h, 0, 0, p": "of empty batches and matrices, all have a devInfo",
        r"(evj|evd|gesvdj)\(.*null": "there is no workspace that has to be there; a null devInfo is told nothing",
        r"XsyevBatched\(.*null": "likewise",
        r"SetMaxSweeps\(\w+, 1\)": "a direct method needs no sweeps",
        r"IRSX(gesv|gels)\(.*-> 0 0 0( I=0>-|$)|IRSXgels": "wrong arguments have a status, and no other devInfo",
        r"Precisions\(irsp, 1203, 1204\).*Solver\(irsp, 1101\)": "a solution in single precision, which is double here",
        r"X(potrf|getrf|sytrs)_bufferSize\(.*\b(99|1|2),": "types are checked when the size is asked for, too",
        r"Xtrtri\(h, \d, 1,": "a diagonal of ones is not written",
        r"Xtrtri\(.*\bN[sdcz]\b": "where NaN ends up",
        r"Xgesvdp\(h, params, 0, 0, (-1|4, -1|4, 4, 0, A., -4)": "which of two statuses; devInfo tells the argument",
        r"Xgesvdp\(.*\bN[sdcz]\b": "NaN gives NaN",
        r"Xsyevdx\(.*, (99|1), x?.*-> 3 I=0>0 info": "the number of eigenvalues is not touched",
        r"trf\(.*C., 4, null.*Xsytrs": "the triangle that does not count",
    },
    "curand": {
        r"(slot|Host\(slot), 0\)": "a generator that is refused by name",
        r"slot, 20[1-4]\).*Generate(Log)?Normal\(.*-> .*Rs=": "refused by name: the last bit is not known",
        r"PoissonDistribution": "not emulated",
        r"Ordering\(got\(\), 104\)": "an ordering that is refused by name",
        r"DirectionVectors|ScrambleConstants": "not emulated",
        r"GetVersion|GetProperty": "the version is that of the headers",
        r"Destroy.*, curandGenerate\(": "a generator that was destroyed is none",
    },
    "cufft": {
        r"Plan3d\(slot, 2, (0|-1|2, 0)": "sizes of 0 and less are refused in each dimension",
        r"Plan2d\(slot, 4, 0|many\(2, (0|2, 0|-2)": "likewise",
        r"many\(2, 0\)": "so are rows of length 0",
        r"2147483647": "GPUs have not that much memory",
        r"Exec(C2R|Z2D).* A[cz]=": "the input of several dimensions is left alone, where a GPU destroys it",
        r"info=0>16": "sizes of work areas, of which none are needed",
        r"p\(12\), .*-> 0 16 0 info": "a refused plan writes no size",
        r"many\(4\), 1, 6, many\(4\), 1, 3": "the transforms of a batch overlap",
        r"XtSetGPUs": "not emulated",
        r"PropertyInt64\(got_int\(\), [34],": "properties that are newer than the library that was recorded",
        r"N[cz]": "infinity and NaN, in sums of complex numbers",
    },
    "cusparse": {
        r"Get(Version|Property)": "the version is that of the headers",
        r"DnVecGetValues\(.*null.*-> crash": "a null pointer that is not expected crashes the process there",
        r"\binfo(, null)?\)?\) -> 0|, info, null, null\)|buf2, info\)|info \+ 32, null": "the sizes of buffers",
        r"\b[yN]i?\b.*-> 7|spvec\(\"[qi]\"\).*-> 7|Ai.*-> 7": "integers, with which cuSPARSE has an internal error",
        r"Csr2cscEx2(_bufferSize)?\(h, (0, 5|4, 0), 8": "elements of a matrix that has none",
        r"bsr\(.*-> 10": "blocks of kinds that newer libraries have",
        r"SpGEMM.*, \d+, [12], spgemm": "the steps of algorithms that need more memory than the bench gives",
        r"SpGEMM_compute.*, 0, [45], spgemm": "ALG2 and ALG3 without cusparseSpGEMM_estimateMemory",
        r"SpSV.*, 0, [12], spsv": "algorithms that newer libraries have",
        r"SDDMM\(h, (2, \d|\d, 2), two_[cz]": "conjugate transposes, which are read there as if they were none",
        r"SpMatGetSize\(bell": "the number of elements of Blocked ELL, which is too large there",
        r"one_s, bell\(\"s\", size=[3458]": "products of large floats, which are rounded to 10 bits there",
        r"one_d, bell\(\"d\", size=5": "large terms that cancel",
        r"^cusparseSpGEMM_copy\(h.*-> 0": "a copy before there is a result",
        r"^cusparseSp(SV|SM)_updateMatrix\(h.*-> 0": "new values before the analysis",
    },
}  # fmt: skip


def main() -> int:
    from tools.mathlibs.record import bench_of

    library = sys.argv[1]
    bench = bench_of(library, emulated=True)
    counts: collections.Counter[str] = collections.Counter()
    for line, expected in recorded(library):
        if "fault" in expected:  # ends the context on both devices
            counts["fault"] += 1
            continue
        actual = compared(library, line, bench.answer(line))
        expected = compared(library, line, expected)
        kind = "different" if differs(expected, actual) and not same_product(line, expected, actual) else "alike"
        whole = f"{line} -> {expected}"
        if kind == "different" and any(re.search(rule, whole) for rule in DIFFERENCES.get(library, {})):
            kind = "meant to differ"
        counts[kind] += 1
        if kind == "different":
            print(f"{line}\n    GPU {expected}\n    CPU {actual}")
    print(dict(counts))
    return 1 if counts["different"] or not counts["alike"] else 0


if __name__ == "__main__":
    sys.exit(main())
