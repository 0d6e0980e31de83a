"""Names of CuPy's namespace that the stand-in lacks, and names of cupola.numpy that CuPy lacks."""

_OLD = "NumPy 2 has removed it, too"

# Name -> what there is instead.
MISSING = {
    "polynomial": "poly1d, polyfit, polyval, roots and polyadd are there",
    **dict.fromkeys(
        [
            "Inf", "Infinity", "NAN", "NINF", "NZERO", "NaN", "PINF", "PZERO", "alltrue", "asfarray", "byte_bounds",
            "cfloat", "complex_", "cumproduct", "disp", "find_common_type", "float_", "infty", "issctype",
            "issubclass_", "issubsctype", "msort", "obj2sctype", "product", "round_", "safe_eval", "sctype2char",
            "set_string_function", "singlecomplex", "sometrue", "who",
        ],
        _OLD,
    ),
    **dict.fromkeys(
        [
            "AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError",
            "VisibleDeprecationWarning",
        ],
        "it is in cupy.exceptions",
    ),
    "trapz": "trapezoid is its name now",
    "broadcast": "broadcast_arrays and broadcast_shapes do the same",
    "flatiter": "x.flat is there",
    "cublas": "cupola.bindings.cublas has cuBLAS",
    "DataSource": "open(path) of Python opens files",
    "format_parser": "arrays of structures are made by cupola.numpy, with a dtype of NumPy",
    "get_array_wrap": "arrays need none",
    "make_aligned_dtype": "numpy.dtype({...}, align=True) aligns fields",
    "_core": "reductions and scans are kernels of cupola, whatever accelerators are set",
    "disable_experimental_feature_warning": "the stand-in warns of nothing",
}  # fmt: skip

NOT_IN_CUPY = {
    "__array_api_version__", "__array_namespace_info__", "block", "einsum_path", "errstate", "geomspace", "geterr",
    "histogram_bin_edges", "insert", "matvec", "nanpercentile", "nanquantile", "ndenumerate", "polyder", "polydiv",
    "polyint", "report", "seterr", "spacing", "typecodes", "unstack", "vecdot", "vecmat",
}  # fmt: skip

# Of CuPy's other namespaces.
OF_LINALG = {
    "expm": "cupyx.scipy.linalg.expm is there",
    "lu": "cupyx.scipy.linalg.lu is there",
    "solve_triangular": "cupyx.scipy.linalg.solve_triangular is there",
}
OF_FFT = {
    "dct": "cupyx.scipy.fft.dct is there",
    "next_fast_len": "cupyx.scipy.fft.next_fast_len is there",
}
