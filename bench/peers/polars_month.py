"""The median of each node in each session and class since a moment, by Polars' lazy scan of an archive.

usage: polars_month.py ARCHIVE OUT.csv SINCE
"""

import datetime
import sys

import polars

archive, target, since = sys.argv[1:]
runs = polars.scan_parquet(f"{archive}/month=*/*.parquet", hive_partitioning=False)
runs = runs.filter(polars.col("started") >= datetime.datetime.fromisoformat(since))
medians = runs.group_by("node", "class", "session").agg(median_s=polars.col("elapsed_s").median())
medians.collect(engine="streaming").write_csv(target)
