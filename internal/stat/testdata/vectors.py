#!/usr/bin/env python3
"""Writes vectors.json: what SciPy and NumPy say to the questions that the tests of
package stat ask. What SciPy does not have is computed here in the plainest way.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install numpy==2.4.6 scipy==1.17.1
    /tmp/v/bin/python vectors.py > vectors.json

Nothing is random but by the seed, so the same versions write the same file.
"""
import itertools
import json
import math
import sys

import numpy as np
import scipy
from scipy import optimize, special, stats

rng = np.random.default_rng(20240607)


def floats(x):
    return [float(v) for v in np.asarray(x).ravel()]


def describe():
    out = []
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 25, 100]:
        for x in (rng.normal(10, 2, n), np.exp(rng.normal(0, 3, n)), rng.integers(1, 5, n).astype(float)):
            p = [0, 0.01, 0.1, 0.25, 0.5, 0.77, 0.999, 1]
            out.append({
                "x": floats(x), "median": float(np.median(x)), "p": p, "quantiles": floats(np.quantile(x, p)),
                "mad": float(stats.median_abs_deviation(x, scale="normal")), "gmean": float(stats.gmean(x)),
                "spread": spread(x) if n > 1 else 0.0,
            })
    return out


def spread(x):
    n = len(x)
    h = n // 2 + 1
    d = sorted(abs(a - b) for a, b in itertools.combinations(x, 2))
    few = {2: .399, 3: .994, 4: .512, 5: .844, 6: .611, 7: .857, 8: .669, 9: .872}
    f = few.get(n, n / (n + 1.4) if n % 2 else n / (n + 3.8))
    return float(f * d[h * (h - 1) // 2 - 1] / (math.sqrt(2) * stats.norm.ppf(5 / 8)))


def normal():
    z = [-37, -20, -8, -3.5, -1, -1e-9, 0, 0.3, 1.96, 5, 8]
    p = [1e-300, 1e-100, 1e-20, 5e-5, 0.025, 0.3, 0.4999, 0.5, 0.7, 0.975, 0.99995]
    return {"z": z, "cdf": floats(stats.norm.cdf(z)), "p": p, "quantile": floats(stats.norm.ppf(p))}


def student():
    out = []
    for df in [1, 1.5, 2, 3, 7, 29.5, 100, 1e4, 1e7]:
        t = [-200, -12, -3, -0.5, 0, 1e-3, 1, 2.5, 9]
        p = [1e-12, 5e-5, 0.005, 0.025, 0.4, 0.5, 0.9, 0.99995]
        out.append({"df": df, "t": t, "cdf": floats(stats.t.cdf(t, df)), "p": p, "quantile": floats(stats.t.ppf(p, df))})
    return out


def beta():
    out = []
    for a, b in [(0.5, 0.5), (1, 1), (2, 3), (0.5, 500), (10, 1), (1, 1e6), (30, 70), (5000, 5000), (1e6, 2e6), (1e-3, 4), (3e8, 7e8)]:
        m = a / (a + b)
        s = math.sqrt(m * (1 - m) / (a + b + 1))
        for x in [m, m / 2, m / 100, min(0.999999, m + s), m + (1 - m) / 2, max(m - 3 * s, m / 10)]:
            out.append({"a": a, "b": b, "x": float(x), "value": float(special.betainc(a, b, x))})
    return out


def binomial():
    out = []
    for n, p in [(1, 0.5), (6, 0.5), (20, 0.1), (50, 0.5), (1000, 0.01), (10**6, 0.5), (10**6, 1e-6), (10**9, 0.3), (5000, 0.9999)]:
        m, s = n * p, math.sqrt(n * p * (1 - p))
        for k in sorted({0, int(m), int(m - 3 * s), int(m + 3 * s), int(m - 8 * s), int(m + 8 * s), n}):
            if 0 <= k <= n:
                out.append({"n": n, "p": p, "k": k, "cdf": float(stats.binom.cdf(k, n, p)), "tail": float(stats.binom.sf(k - 1, n, p))})
    return out


def clopper():
    out = []
    for k, n in [(0, 1), (1, 1), (0, 20), (20, 20), (19, 20), (3, 40), (500, 1000), (1, 100000), (0, 40)]:
        for level in [0.9, 0.95, 0.9999]:
            # As binomtest(k, n).proportion_ci(level, "exact"), whose solver stops at an
            # absolute error of 1e-12.
            miss = (1 - level) / 2
            low = stats.beta.ppf(miss, k, n - k + 1) if k else 0
            high = stats.beta.isf(miss, k + 1, n - k) if k < n else 1
            v = stats.binomtest(k, n).proportion_ci(level, "exact")
            assert abs(v.low - low) < 1e-11 and abs(v.high - high) < 1e-11
            out.append({"k": k, "n": n, "level": level, "low": float(low), "high": float(high)})
    return out


def order():
    # With 1 ... n as the sample, SciPy's interval is made of the ranks.
    out = []
    for n in [1, 3, 5, 6, 7, 8, 9, 10, 11, 15, 20, 25, 30, 50, 72, 100, 1000]:
        for p in [0.5, 0.25, 0.9, 0.05]:
            for level in [0.5, 0.95, 0.99]:
                v = stats.quantile_test(np.arange(1, n + 1), q=0, p=p).confidence_interval(level)
                low, high = float(v.low), float(v.high)
                if math.isnan(low) or math.isnan(high):
                    out.append({"n": n, "p": p, "level": level, "low": 0, "high": 0, "coverage": 0.0})
                    continue
                coverage = stats.binom.cdf(high - 1, n, p) - stats.binom.cdf(low - 1, n, p)
                out.append({"n": n, "p": p, "level": level, "low": int(low), "high": int(high), "coverage": float(coverage)})
    return out


def ranks():
    out = []
    for n, m, ties in [(1, 1, 0), (3, 3, 0), (4, 4, 0), (6, 6, 0), (6, 9, 0), (10, 12, 0), (30, 40, 0), (50, 50, 0), (80, 70, 0),
                       (4, 4, 1), (6, 6, 1), (5, 8, 1), (40, 30, 1), (100, 120, 1), (5, 5, 2)]:
        for shift in [0, 0.8]:
            a, b = rng.normal(0, 1, n), rng.normal(shift, 1, m)
            if ties == 1:
                a, b = np.round(a), np.round(b)
            if ties == 2:
                a, b = np.full(n, 3.0), np.full(m, 3.0)
            how = "exact"
            if ties and n + m <= 40:
                # Every way to split the values, which is exact with ties, too.
                both = np.concatenate([a, b])
                r = stats.rankdata(both)
                all_ = np.array([r[list(c)].sum() for c in itertools.combinations(range(n + m), n)])
                seen = r[:n].sum()
                p = min(1, 2 * min((all_ <= seen + 1e-9).mean(), (all_ >= seen - 1e-9).mean()))
                u = seen - n * (n + 1) / 2
            else:
                how = "exact" if not ties and n * m <= 2500 else "asymptotic"
                t = stats.mannwhitneyu(a, b, alternative="two-sided", method=how)
                u, p = t.statistic, t.pvalue
            out.append({"a": floats(a), "b": floats(b), "u": float(u), "p": float(p), "exact": how == "exact"} | lehmann(a, b, 0.95))
    return out


def lehmann(a, b, level):
    n, m = len(a), len(b)
    d = np.sort(np.subtract.outer(b, a).ravel())
    out = {"shift": float(np.median(d)), "k": 0, "low": 0.0, "high": 0.0, "level": 0.0}
    if n * m > 2500:
        return out
    # The counts of U are the coefficients of a Gaussian binomial.
    count = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for j in range(n * m, m + i - 1, -1):
            count[j] -= count[j - m - i]
        for j in range(i, n * m + 1):
            count[j] += count[j - i]
    total, below = math.comb(n + m, n), 0
    for c in count:
        if (below + c) / total > (1 - level) / 2:
            break
        below += c
        out["k"] += 1
    if out["k"]:
        out["low"], out["high"] = float(d[out["k"] - 1]), float(d[n * m - out["k"]])
        out["level"] = 1 - 2 * below / total
    return out


def multiple():
    out = []
    for n in [1, 2, 5, 20, 300]:
        p = rng.uniform(size=n) ** 2
        if n == 20:
            p = np.round(p, 1)
        holm, worst = np.empty(n), 0
        for i, k in enumerate(np.argsort(p, kind="stable")):
            worst = max(worst, (n - i) * p[k])
            holm[k] = min(1, worst)
        out.append({"p": floats(p), "holm": floats(holm), "bh": floats(stats.false_discovery_control(p, method="bh")),
                    "by": floats(stats.false_discovery_control(p, method="by"))})
    return out


def power():
    out = []
    for df in [1, 3, 9, 30, 1000]:
        for level, want in [(0.95, 0.8), (0.999, 0.9), (0.9999, 0.5)]:
            t = stats.t.isf((1 - level) / 2, df)
            nc = optimize.brentq(lambda d: noncentral(t, d, df) - want, 0, 20 * t + 20, xtol=1e-12, rtol=1e-12)
            out.append({"df": df, "level": level, "power": want, "shift": float(nc)})
    return out


def noncentral(t, d, df):
    """The chance that |Z + d| > t S, over the distribution of Z."""
    from scipy import integrate
    def f(z):
        return stats.norm.pdf(z) * stats.chi2.cdf(df * ((z + d) / t) ** 2, df)
    return integrate.quad(f, -12, 12, points=[-d] if abs(d) < 12 else None, epsabs=1e-12, limit=500)[0]


def pairs():
    """The same estimate with dense matrices and NumPy's least squares."""
    out = []
    for n, rounds in [(4, 3), (8, 6), (16, 15)]:
        full = list(itertools.combinations(range(n), 2))
        pick = full if rounds == n - 1 else [full[i] for i in sorted(rng.choice(len(full), rounds * n // 2, replace=False))]
        a = rng.normal(0, 0.02, n)
        a[0] -= 0.1
        level = [math.log(1e9), math.log(4e8)]
        dist = [int(i // (n // 2) != j // (n // 2)) for i, j in pick]
        y = np.array([a[i] + a[j] + level[d] for (i, j), d in zip(pick, dist)]) + rng.normal(0, 0.03, len(pick))
        if n > 4:
            y[5] -= 0.7
        X = np.zeros((len(pick), n + 2))
        for e, ((i, j), d) in enumerate(zip(pick, dist)):
            X[e, i] = X[e, j] = X[e, n + d] = 1
        rank = np.linalg.matrix_rank(X)
        assert rank == n + 1

        def solve(w):
            q = np.sqrt(w)
            return np.linalg.lstsq(X * q[:, None], y * q, rcond=None)[0]

        def scale(r):
            return stats.norm.ppf(0.75) ** -1 * np.median(np.abs(r)) * math.sqrt(len(r) / (len(r) - rank))
        theta = solve(np.ones(len(y)))
        s = scale(y - X @ theta)
        for _ in range(2000):
            r = y - X @ theta
            theta = solve(np.minimum(1, 1.345 * s / np.maximum(np.abs(r), 1e-9)))
            s = scale(y - X @ theta)
        for _ in range(2000):
            u = abs(y - X @ theta) / (4.685 * s)
            theta = solve(np.maximum(np.maximum(0, 1 - u * u) ** 2, 1e-4 / np.maximum(1, u)))
        m = np.median(theta[:n])
        out.append({"nodes": n, "a": [int(i) for i, _ in pick], "b": [int(j) for _, j in pick], "distance": dist,
                    "value": floats(np.exp(y)), "effects": floats(theta[:n] - m), "levels": floats(theta[n:] + 2 * m),
                    "scale": float(scale(y - X @ theta))})
    return out


parts = {
    "made": f"vectors.py with Python {sys.version.split()[0]}, NumPy {np.__version__}, SciPy {scipy.__version__}",
    "describe": describe(), "normal": normal(), "student": student(), "beta": beta(), "binomial": binomial(),
    "clopper": clopper(), "order": order(), "ranks": ranks(), "multiple": multiple(), "power": power(), "pairs": pairs(),
}
print("{" + ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in parts.items()) + "}")
