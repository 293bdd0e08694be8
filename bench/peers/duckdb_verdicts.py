"""For each session: median of each node, median of its class, and a robust z-score.

usage: duckdb_verdicts.py IN.parquet OUT.csv
"""

import sys

import duckdb

source, target = sys.argv[1:]
query = f"""
    WITH nodes AS (
        SELECT session, class, node, median(elapsed_s) AS node_s
        FROM read_parquet('{source}') GROUP BY session, class, node),
    classes AS (
        SELECT session, class, median(node_s) AS class_s, 1.4826 * mad(node_s) AS spread_s
        FROM nodes GROUP BY session, class)
    SELECT session, class, node, node_s, class_s, (node_s - class_s) / spread_s AS z
    FROM nodes JOIN classes USING (session, class)"""
duckdb.execute(f"COPY ({query}) TO '{target}' (FORMAT csv)")
