"""Median of each event on each node, and its ratio to the median of the event on all nodes.

usage: duckdb_cores.py IN.parquet OUT.csv
"""

import sys

import duckdb

source, target = sys.argv[1:]
query = f"""
    WITH counts AS (SELECT node, event, value FROM read_parquet('{source}')),
    nodes AS (SELECT node, event, median(value) AS of_node FROM counts GROUP BY node, event),
    events AS (SELECT event, median(value) AS of_all FROM counts GROUP BY event)
    SELECT node, event, of_node, of_all, of_node / of_all AS ratio FROM nodes JOIN events USING (event)"""
duckdb.execute(f"COPY ({query}) TO '{target}' (FORMAT csv)")
