"""Writes an archive of a year of weekly sessions, in the form of `pmmpi export`, with its medians.

usage: years.py FOLDER WORKLOADS NODES RUNS

Prints the month of the last file. The writer is DuckDB, which is also one of the compared programs.
"""

import datetime
import os
import sys

import duckdb

SESSIONS = 52
FIRST = datetime.datetime(2026, 1, 5, 6)

folder, workloads, nodes, runs = sys.argv[1], *map(int, sys.argv[2:])
database = duckdb.connect()
database.execute(f"""
    SELECT setseed(0.5);
    CREATE TABLE nodes AS SELECT w, n, CASE WHEN n % 100 = 7 THEN {SESSIONS // 2} ELSE {SESSIONS} END AS slower_from,
        0.01 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS own
    FROM range({workloads}) workloads(w), range({nodes}) nodes(n)""")
months = {}
for session in range(SESSIONS):
    start = FIRST + datetime.timedelta(days=7 * session)
    months.setdefault(start.strftime("%Y-%m"), []).append(session)
for month, sessions in months.items():
    for place in (f"{folder}/month={month}", f"{folder}/_medians/month={month}"):
        os.makedirs(place)
    file = f"{folder}/month={month}/runs.parquet"
    database.execute(f"""
        COPY (SELECT printf('n%05d', n) AS node, CAST(r AS VARCHAR) AS run, false AS measured_by_pmmpi,
                printf('w%02d', w) AS class, printf('s%02d', s) AS session,
                TIMESTAMP_NS '{FIRST}' + to_days(7 * s::INT) + to_minutes(3 * (r * {workloads} + w)) AS started,
                round(100 * exp(own + (CASE WHEN s >= slower_from THEN 0.03 ELSE 0 END)
                    + 0.004 * (random() + random() + random() + random() - 2)), 6) AS elapsed_s,
                printf('w%02d', w) AS "class.declared"
            FROM nodes, range({sessions[0]}, {sessions[-1] + 1}) sessions(s), range({runs}) runs(r)
            ORDER BY w, s, n) TO '{file}' (FORMAT parquet, COMPRESSION zstd)""")
    database.execute(f"""
        COPY (SELECT node, session, measured_by_pmmpi, COLUMNS('^class'), min(started) AS started, count(*) AS runs,
                median(elapsed_s) AS median_s, mad(elapsed_s) AS deviation_s
            FROM read_parquet('{file}', hive_partitioning => false) GROUP BY ALL ORDER BY class, session, node)
        TO '{folder}/_medians/month={month}/medians.parquet' (FORMAT parquet, COMPRESSION zstd)""")
with open(f"{folder}/_medians/.covered-files", "w") as covered:
    covered.writelines(f"month={month}/runs.parquet\n" for month in months)
print(month)
