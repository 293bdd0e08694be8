"""Computes answers with statsmodels and scipy, for tests/reference.rs: one JSON object in, one out."""

import json
import math
import sys

import numpy
from scipy.stats import binom, norm
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
        "adjusted": multipletests(ask["p"], method="fdr_bh")[1].tolist(),
    },
    sys.stdout,
)
