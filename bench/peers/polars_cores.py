"""Median of each event on each node, and its ratio to the median of the event on all nodes.

usage: polars_cores.py IN.parquet OUT.csv
"""

import sys

import polars

source, target = sys.argv[1:]
counts = polars.scan_parquet(source)
nodes = counts.group_by("node", "event").agg(polars.col("value").median().alias("of_node"))
events = counts.group_by("event").agg(polars.col("value").median().alias("of_all"))
ratio = polars.col("of_node") / polars.col("of_all")
nodes.join(events, on="event").with_columns(ratio.alias("ratio")).collect().write_csv(target)
