"""The median of each node in each session and class.

usage: duckdb_month.py IN.parquet OUT.csv
"""

import sys

import duckdb

source, target = sys.argv[1:]
query = f"""SELECT node, class, session, median(elapsed_s) AS median_s
    FROM read_parquet('{source}', hive_partitioning => false) GROUP BY ALL"""
duckdb.execute(f"COPY ({query}) TO '{target}' (FORMAT csv)")
