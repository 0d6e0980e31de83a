"""What packages that take any array of the Array API standard, or any that looks like NumPy's, give for arrays of
cupola.numpy, beside NumPy's.

    python tests/ecosystem/standard_programs.py sklearn

prints each statement whose result differs, or is no array of the device where NumPy gives an array, and their number.
"""

from __future__ import annotations

import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import numpy

import cupola.numpy as np

PACKAGES = {
    "array_api_compat": """
import array_api_compat as compat
---
compat.array_namespace(x).sum(x)
compat.size(x), compat.is_array_api_obj(x), compat.is_writeable_array(x)
compat.to_device(x, compat.device(x))
""",
    "array_api_extra": """
import array_api_extra as extra
---
extra.at(x)[0].set(5, copy=True)
extra.at(x)[x > 0.5].add(5, copy=True)
extra.at(x)[:, 1].multiply(x[:, 0], copy=True)
extra.apply_where(x > 0, (x,), n.sqrt, lambda a: -a)
extra.atleast_nd(x, ndim=3)
extra.cov(x)
extra.create_diagonal(x[0])
extra.isin(y, y[:3])
extra.kron(x[:3], x[3:5])
extra.lazy_apply(lambda a: a * 2, x)
extra.nunique(y)
extra.one_hot(y, 2)
extra.pad(x, 2)
extra.setdiff1d(t, t[:5])
extra.sinc(x)
extra.union1d(y, y + 1)
""",
    "scipy": """
import scipy.cluster.vq, scipy.differentiate, scipy.fft, scipy.integrate, scipy.interpolate, scipy.signal
import scipy.spatial.transform, scipy.special, scipy.stats
from scipy import cluster, differentiate, fft, integrate, interpolate, signal, spatial, special, stats
---
cluster.vq.kmeans2(x, x[:3], minit="matrix")[0]
cluster.vq.vq(x, x[:3])[0]
cluster.vq.whiten(x)
differentiate.derivative(n.exp, t).df
fft.dct(x)
fft.fft(x), fft.irfft(fft.rfft(x)), fft.fftn(x), fft.fftshift(x)
integrate.cumulative_simpson(x)
integrate.tanhsinh(lambda a: a * a, t * 0, t * 0 + 1).integral
integrate.trapezoid(x)
interpolate.make_interp_spline(n.cumsum(abs(t)), t)(n.asarray([0.5, 0.7]))
signal.detrend(x)
signal.fftconvolve(x, x[:5, :3])
signal.hilbert(x)
signal.windows.hann(5, xp=n)
spatial.transform.Rotation.from_quat(x[:, :4]).as_matrix()
special.erf(x), special.expit(x), special.gamma(abs(x) + 1), special.gammaln(abs(x) + 1), special.xlogy(abs(x), x * x)
special.logsumexp(x, axis=1), special.softmax(x, axis=0), special.log_softmax(x, axis=0)
stats.bartlett(x[:, 0], x[:, 1]).statistic
stats.describe(x).variance
stats.directional_stats(x).mean_direction
stats.entropy(abs(x)), stats.gmean(abs(x)), stats.hmean(abs(x)), stats.circmean(x), stats.trim_mean(x, 0.1)
stats.jarque_bera(x).statistic
stats.pearsonr(x[:, 0], x[:, 1]).statistic
stats.rankdata(x, axis=0)
stats.ttest_1samp(x, 0.0).pvalue, stats.ttest_ind(x[:100], x[100:]).pvalue
stats.zscore(x), stats.skew(x), stats.kurtosis(x), stats.moment(x, 3), stats.variation(x), stats.sem(x)
""",
    "sklearn": """
from sklearn import decomposition, discriminant_analysis, kernel_approximation, linear_model, metrics, mixture
from sklearn import model_selection, naive_bayes, preprocessing, set_config
from sklearn.metrics import pairwise
set_config(array_api_dispatch=True)
---
decomposition.PCA(3, svd_solver="full").fit_transform(x)
discriminant_analysis.LinearDiscriminantAnalysis().fit(x, y).predict(x)
kernel_approximation.Nystroem(n_components=5, random_state=0).fit_transform(x)
linear_model.LogisticRegression().fit(x, y).predict(x)
linear_model.PoissonRegressor().fit(x, abs(t)).coef_
linear_model.Ridge(solver="svd").fit(x, t).predict(x)
linear_model.RidgeCV().fit(x, t).predict(x)
metrics.accuracy_score(y, 1 - y), metrics.f1_score(y, y), metrics.roc_auc_score(y, t), metrics.log_loss(y, abs(t) / 99)
metrics.confusion_matrix(y, 1 - y)
metrics.r2_score(t, t * 1.1), metrics.mean_squared_error(t, t + 1)
mixture.GaussianMixture(2, init_params="random", random_state=0, max_iter=3).fit(x).means_
model_selection.cross_val_predict(discriminant_analysis.LinearDiscriminantAnalysis(), x, y)
model_selection.train_test_split(x, random_state=0)
naive_bayes.GaussianNB().fit(x, y).predict(x)
pairwise.cosine_similarity(x), pairwise.euclidean_distances(x), pairwise.rbf_kernel(x), pairwise.polynomial_kernel(x)
preprocessing.LabelBinarizer().fit_transform(y)
preprocessing.PolynomialFeatures().fit_transform(x), preprocessing.Normalizer().fit_transform(x)
preprocessing.StandardScaler().fit_transform(x), preprocessing.MinMaxScaler().fit_transform(x)
""",
    "xarray": """
import xarray
---
xarray.DataArray(x).mean("dim_0").data, xarray.DataArray(x).std("dim_1").data, xarray.DataArray(x).sum().data
xarray.DataArray(x).quantile(0.3, "dim_0").data, xarray.DataArray(x).median("dim_1").data
xarray.DataArray(x).rolling(dim_0=5).mean().data, xarray.DataArray(x).coarsen(dim_0=4).max().data
xarray.DataArray(x).isel(dim_0=slice(3, 9)).data, xarray.DataArray(x).shift(dim_0=2).data
xarray.DataArray(x).where(xarray.DataArray(x) > 0).fillna(5.0).data
xarray.DataArray(x).stack(both=("dim_0", "dim_1")).data, xarray.DataArray(x).pad(dim_1=1).data
xarray.concat([xarray.DataArray(x), xarray.DataArray(x) * 2], "dim_0").data
xarray.dot(xarray.DataArray(x), xarray.DataArray(x), dim="dim_1").data
xarray.Dataset({"x": xarray.DataArray(x)}).groupby("dim_1").mean().x.data
numpy.hypot(xarray.DataArray(x), 2).data
""",
}
"""Imports, and statements over ``x`` (200 x 6), ``y`` (classes), ``t`` (numbers) and the namespace ``n``."""


def problem(found: object, wanted: object) -> str:
    """Why a result is not the wanted one, or nothing."""
    if isinstance(wanted, (tuple, list)):
        return next(filter(None, map(problem, found, wanted)), "")  # type: ignore[call-overload]
    if isinstance(wanted, numpy.ndarray) and not isinstance(found, np.ndarray):
        return f"is a {type(found).__name__}"
    numbers = found.to_numpy() if isinstance(found, np.ndarray) else numpy.asarray(found)
    return "" if numpy.allclose(numbers, wanted, atol=1e-8, equal_nan=True) else "differs from NumPy's"


def main(package: str) -> int:
    """Print what is wrong; the status is not 0 if anything is."""
    warnings.simplefilter("ignore")  # SciPy says that its support is experimental
    rng = numpy.random.default_rng(1)
    x = rng.normal(size=(200, 6))
    arrays = {"x": x, "y": (x[:, 0] + 0.3 * rng.normal(size=200) > 0).astype("i8"), "t": x @ rng.normal(size=6)}
    imports, statements = PACKAGES[package].split("---\n")
    modules: dict[str, object] = {"numpy": numpy}
    exec(imports, modules)
    wrong = 0
    for statement in statements.strip().splitlines():
        try:
            wanted = eval(statement, {**modules, "n": numpy, **arrays})
            given = {name: np.asarray(array) for name, array in arrays.items()}
            why = problem(eval(statement, {**modules, "n": np, **given}), wanted)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if why:
            wrong += 1
            print(f"{statement}: {why}")
    print(f"{len(statements.strip().splitlines())} statements, {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
