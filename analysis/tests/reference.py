"""Computes answers with statsmodels and scipy, for tests/reference.rs: one JSON object in, one out."""

import json
import math
import sys

import numpy
from scipy.stats import binom, kstat, norm, pearson3, pearsonr, rankdata
from statsmodels.robust.scale import qn_scale
from statsmodels.stats.multitest import multipletests

LEAST_COVERAGE = 0.9375


def interval(count):
    """[low, high, coverage] of the narrowest symmetric interval for the median, from 0; None if there is none."""
    ranks = numpy.arange(1, count // 2 + 1)
    coverage = 1 - 2 * binom.cdf(ranks - 1, count, 0.5)
    wide = ranks[coverage >= LEAST_COVERAGE - 1e-12]
    if len(wide) == 0:
        return None
    rank = int(wide[-1])
    return [rank - 1, count - rank, 1 - 2 * binom.cdf(rank - 1, count, 0.5)]


def savage(values):
    """Savage scores less 1; equal values have the mean of their scores."""
    n = len(values)
    of_place = numpy.array([sum(1 / (n - j) for j in range(i + 1)) for i in range(n)])
    low, high = rankdata(values, "min").astype(int), rankdata(values, "max").astype(int)
    return numpy.array([of_place[a - 1 : b].mean() for a, b in zip(low, high)]) - 1


def association(times, values, ends):
    """[rho, p] of the more certain direction, with the moments of the permutation distribution by numpy."""
    found = []
    for sign in (1, -1):
        a, b = savage(numpy.array(times)), savage(sign * numpy.array(values))
        pairs = [(x - x.mean(), y - y.mean()) for x, y in zip(numpy.split(a, ends[:-1]), numpy.split(b, ends[:-1]))]
        centred = [numpy.concatenate(side) for side in zip(*pairs)]
        rho = pearsonr(*centred)[0]
        # k-statistics: the moments of the sum over all orders, block by block.
        variance = sum((len(x) - 1) * x.var(ddof=1) * y.var(ddof=1) for x, y in pairs if len(x) > 1)
        third = sum(
            (n - 1) * (n - 2) / n * (kstat(x, 3) * kstat(y, 3))
            for x, y in pairs
            for n in [len(x)]
            if n > 2
        )
        z, skew = sum((x * y).sum() for x, y in pairs) / math.sqrt(variance), third / variance**1.5
        found.append((float(pearson3.sf(z, skew) if skew > 0 else norm.sf(z)), sign * rho))
    p, rho = min(found)
    return [rho, min(1.0, 2 * p)]


ask = json.load(sys.stdin)
json.dump(
    {
        "qn": [qn_scale(numpy.array(sample)) for sample in ask["samples"]],
        "constant": 1 / (math.sqrt(2) * norm.ppf(5 / 8)),
        "intervals": [interval(count) for count in ask["counts"]],
        "ranks": [int(numpy.sum(binom.cdf(numpy.arange(count), count, 0.5) <= 0.01)) for count in ask["counts"]],
        "tails": [binom.sf(x - 1, n, p) for n, p, x in ask["binomials"]],
        "upper": [norm.sf(z) for z in ask["scores"]],
        "quantiles": [norm.ppf(p) for p in ask["p"]],
        "mid_ranks": [(rankdata(sample) - 1).tolist() for sample in ask["samples"]],
        "savage": [savage(sample).tolist() for sample in ask["samples"]],
        "associations": [association(*blocks) for blocks in ask["blocks"]],
        "adjusted": multipletests(ask["p"], method="fdr_bh")[1].tolist(),
    },
    sys.stdout,
)
