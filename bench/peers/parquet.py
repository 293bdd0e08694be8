"""Writes the Parquet files that all programs in the comparison read, from CSV that pmmpi-bench wrote.

usage: parquet.py IN.csv OUT.parquet sorted|shuffled|cores

The writer is DuckDB with its defaults; DuckDB is also one of the compared programs.
"""

import sys

import duckdb

# The ten events, and their counts per second on one hardware thread.
PER_S = {
    "cpus": 0,
    "tsc": 2.1e9,
    "task_clock_ns": 0.98e9,
    "cycles": 2.4e9,
    "ref_cycles": 2.05e9,
    "instructions": 3.6e9,
    "cycles_kernel": 3e7,
    "instructions_kernel": 2e7,
    "page_faults": 40,
    "context_switches": 15,
}
CORES = 48

source, target, rows = sys.argv[1:]
database = duckdb.connect()
if rows == "cores":
    database.execute("CREATE TABLE events (number INTEGER, event VARCHAR, per_s DOUBLE)")
    events = [(number, event, per_s) for number, (event, per_s) in enumerate(PER_S.items())]
    database.executemany("INSERT INTO events VALUES (?, ?, ?)", events)
    # Within 1 % of its rate: hash() gives the same value in every run.
    query = f"""
        SELECT node, run, elapsed_s, core, event,
            CASE event WHEN 'cpus' THEN 1 ELSE
                (per_s * elapsed_s * (0.99 + 0.02 * (hash(node, run, core, event) % 10007) / 10007))::BIGINT
            END AS value
        FROM read_csv('{source}'), (SELECT range::INTEGER AS core FROM range({CORES})), events
        ORDER BY node, run, core, number"""
else:
    order = "hash(node, run)" if rows == "shuffled" else "session, node, run"
    query = f"""
        SELECT node, run, elapsed_s, session, started, class
        FROM read_csv('{source}', types = {{'started': 'TIMESTAMPTZ'}})
        ORDER BY {order}"""
database.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet)")
