//! What was counted at each place of a run: one row per run, node, place, region and event.
//!
//! The table is a data frame, so that Polars and every tool that reads Parquet can query it. [`PlaceTable::sums`] adds up
//! its rows by node, socket, NUMA node, core, hardware thread or rank.

use pmmpi::counters::open_counters::Scope;
use polars::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// The library's error, or a result.
pub type PlaceResult<T> = PolarsResult<T>;
/// See [`PlaceResult`].
pub type PlaceError = PolarsError;

/// The column with the id of the run.
pub const RUN_ID: &str = "run_id";

/// Quality of a value, from the best to the worst. A sum has the worst quality of its parts.
const QUALITIES: [&str; 7] =
    ["exact", "scaled", "partial", "overflowed", "unavailable", "denied", "unsupported"];

/// Where something was counted, within its node. A number is `None` if the place has several, or if the node's topology is
/// unknown: a rank that may run on two sockets has no socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The socket; sockets, cores and NUMA nodes have the numbers of [`pmmpi::node::HwThread`].
    pub socket: Option<u32>,
    /// The NUMA node.
    pub numa: Option<u32>,
    /// The core.
    pub core: Option<u32>,
    /// The kernel's number of the hardware thread.
    pub hardware_thread: Option<u32>,
}

/// One row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaceRow<'a> {
    /// Host name.
    pub node: &'a str,
    /// CPUID's vendor.
    pub cpu_vendor: Option<&'a str>,
    /// CPUID's family and model.
    pub cpu_model: Option<[u32; 2]>,
    /// Where.
    pub place: Place,
    /// The rank; `None` for a place that several ranks share.
    pub rank: Option<u32>,
    /// The region; `None` for the whole work.
    pub region: Option<&'a str>,
    /// What was counted: `task` (threads of the rank), `core` (all that ran on a hardware thread), `socket` (units outside
    /// the cores); `rank` and `node` for values that are no counts.
    pub scope: &'static str,
    /// The name in `pmmpi list events`, or of a quantity of the rank or the node.
    pub event: &'a str,
    /// The event without the instance of its PMU: several memory controllers count one event.
    pub family: String,
    /// The unit of the value: "", "ns", "bytes", "J", "s", "Hz".
    pub unit: &'a str,
    /// In this unit, extrapolated if the event was counted for a part of the time.
    pub value: Option<f64>,
    /// See [`pmmpi::counters::count_and_quality::Quality`].
    pub quality: &'static str,
    /// Why there is no value, or no exact one.
    pub reason: Option<String>,
    /// The count as it was read.
    pub count: Option<u64>,
    /// How long the event was enabled (ns).
    pub enabled_ns: Option<u64>,
    /// How long it was counting (ns).
    pub running_ns: Option<u64>,
    /// True if `pmmpi validate` found that the event does not count what its name says.
    pub is_unusable: bool,
}

/// What a report or an export needs to know of the run of these rows.
#[derive(Clone, Copy, Debug)]
pub struct RunOfRows<'a> {
    /// Its id.
    pub run_id: &'a str,
    /// Its start (ns since 1970).
    pub started_unix_ns: i64,
}

/// The part of a node by which rows are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The whole node.
    Node,
    /// Each socket.
    Socket,
    /// Each NUMA node.
    Numa,
    /// Each core.
    Core,
    /// Each hardware thread.
    Thread,
    /// Each rank.
    Rank,
}

impl Level {
    /// The name in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Socket => "socket",
            Self::Numa => "numa",
            Self::Core => "core",
            Self::Thread => "thread",
            Self::Rank => "rank",
        }
    }

    /// The parts of a node that a place of this level has.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Rank => &["socket", "numa", "core", "rank"],
            _ => self.keys(),
        }
    }

    /// Columns that tell places of this level apart, beside the node. Counts of a rank may come from several cores.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Node => &[],
            Self::Socket => &["socket"],
            Self::Numa => &["socket", "numa"],
            Self::Core => &["socket", "numa", "core"],
            Self::Thread => &["socket", "numa", "core", "hardware_thread"],
            Self::Rank => &["rank"],
        }
    }

    /// Columns of which a sum has the value of its first row.
    fn first_of(self) -> &'static [&'static str] {
        match self {
            Self::Rank => &["socket", "numa", "core"],
            _ => &[],
        }
    }

    /// The rows that belong to places of this level: counts of a whole socket are of no core.
    fn has(self) -> Option<Expr> {
        let is_of = |scopes: &[&'static str]| {
            scopes.iter().map(|scope| col("scope").eq(lit(*scope))).reduce(Expr::or)
        };
        match self {
            Self::Node | Self::Socket => None,
            Self::Numa | Self::Core | Self::Thread => is_of(&["task", "core", "rank"]),
            // What other ranks did on a rank's cores is not of the rank.
            Self::Rank => is_of(&["task", "core", "rank"]).map(|scope| scope.and(col("rank").is_not_null())),
        }
    }
}

/// Rows of any number of runs.
#[derive(Clone, Debug, Default)]
pub struct PlaceTable(DataFrame);

impl PlaceTable {
    /// The rows of one run.
    ///
    /// | column | type | |
    /// |---|---|---|
    /// | run_id | str | |
    /// | started | datetime, ns, UTC | |
    /// | node | str | |
    /// | cpu_vendor; cpu_family, cpu_model | str; u32 | null if unknown |
    /// | socket, numa, core, hardware_thread, rank | u32 | null: see [`Place`] and [`PlaceRow`] |
    /// | region | str | null: the whole work |
    /// | scope, event, family, unit | str | |
    /// | value | f64 | null if there is no value |
    /// | quality | str | |
    /// | reason | str | null for an exact value |
    /// | count, enabled_ns, running_ns | u64 | null for values that are no counts |
    /// | unusable | bool | |
    pub fn of_run(run: RunOfRows<'_>, rows: &[PlaceRow<'_>]) -> PolarsResult<Self> {
        fn column<'r, 'a, T, P: ?Sized>(
            rows: &'r [PlaceRow<'a>],
            name: &str,
            of: impl Fn(&'r PlaceRow<'a>) -> T,
        ) -> Column
        where
            Series: NamedFrom<Vec<T>, P>,
        {
            Series::new(name.into(), rows.iter().map(of).collect::<Vec<T>>()).into_column()
        }
        let utc = DataType::Datetime(TimeUnit::Nanoseconds, None);
        let height = rows.len();
        let columns = vec![
            Column::new_scalar(RUN_ID.into(), Scalar::from(PlSmallStr::from(run.run_id)), height),
            Column::new_scalar("started".into(), Scalar::from(run.started_unix_ns), height).cast(&utc)?,
            column(rows, "node", |row| row.node),
            column(rows, "cpu_vendor", |row| row.cpu_vendor),
            column(rows, "cpu_family", |row| row.cpu_model.map(|[family, _]| family)),
            column(rows, "cpu_model", |row| row.cpu_model.map(|[_, model]| model)),
            column(rows, "socket", |row| row.place.socket),
            column(rows, "numa", |row| row.place.numa),
            column(rows, "core", |row| row.place.core),
            column(rows, "hardware_thread", |row| row.place.hardware_thread),
            column(rows, "rank", |row| row.rank),
            column(rows, "region", |row| row.region),
            column(rows, "scope", |row| row.scope),
            column(rows, "event", |row| row.event),
            column(rows, "family", |row| row.family.as_str()),
            column(rows, "unit", |row| row.unit),
            column(rows, "value", |row| row.value),
            column(rows, "quality", |row| row.quality),
            column(rows, "reason", |row| row.reason.as_deref()),
            column(rows, "count", |row| row.count),
            column(rows, "enabled_ns", |row| row.enabled_ns),
            column(rows, "running_ns", |row| row.running_ns),
            column(rows, "unusable", |row| row.is_unusable),
        ];
        DataFrame::new(height, columns).map(Self)
    }

    /// A frame with at least the columns of [`Self::of_run`], for example from a file that anyone may have made. The error
    /// names a column that is missing or has another type.
    pub fn checked(frame: DataFrame) -> Result<Self, String> {
        let empty =
            Self::of_run(RunOfRows { run_id: "", started_unix_ns: 0 }, &[]).map_err(|e| e.to_string())?;
        let column = |like: &Column| {
            let column =
                frame.column(like.name()).map_err(|_| format!("it has no column `{}`", like.name()))?;
            // Another program may have written dictionaries, or wider integers.
            column.strict_cast(like.dtype()).map_err(|_| {
                format!(
                    "the column `{}` has {} where {} is expected",
                    like.name(),
                    column.dtype(),
                    like.dtype()
                )
            })
        };
        let columns = empty.0.columns().iter().map(column).collect::<Result<Vec<Column>, String>>()?;
        let table = DataFrame::new(frame.height(), columns).map(Self).map_err(|e| e.to_string())?;
        for name in [RUN_ID, "node", "scope", "event", "family", "quality"] {
            if table.0.column(name).map_err(|e| e.to_string())?.null_count() > 0 {
                return Err(format!("the column `{name}` lacks values"));
            }
        }
        let values = table.0.column("value").and_then(|column| column.f64()).map_err(|e| e.to_string())?;
        let wrong = values.iter().flatten().find(|value| !value.is_finite() || *value < 0.0);
        match wrong {
            Some(value) => Err(format!("the column `value` has {value}")),
            None => Ok(table),
        }
    }

    /// The id of the run of each row, one for each stretch of equal ones. The frame needs no other column.
    pub fn run_ids(frame: &DataFrame) -> Result<Vec<String>, String> {
        let column = frame.column(RUN_ID).map_err(|_| format!("it has no column `{RUN_ID}`"))?;
        let ids = column.strict_cast(&DataType::String).map_err(|e| e.to_string())?;
        let mut runs: Vec<String> = Vec::new();
        for id in ids.str().map_err(|e| e.to_string())?.iter() {
            let id = id.ok_or_else(|| format!("the column `{RUN_ID}` lacks values"))?;
            if runs.last().is_none_or(|last| last != id) {
                runs.push(id.to_owned());
            }
        }
        Ok(runs)
    }

    /// Adds the rows of `other`.
    pub fn append(&mut self, other: Self) -> PolarsResult<()> {
        match self.0.width() {
            0 => *self = other,
            _ => _ = self.0.vstack_mut_owned(other.0)?,
        }
        Ok(())
    }

    /// The ids of the runs, each once.
    pub fn runs(&self) -> PolarsResult<BTreeSet<String>> {
        if self.is_empty() {
            return Ok(BTreeSet::new());
        }
        Ok(self.0.column(RUN_ID)?.str()?.iter().flatten().map(str::to_owned).collect())
    }

    /// The rows of these runs.
    pub fn of_runs(&self, runs: &[&str]) -> PolarsResult<Self> {
        let wanted: HashSet<&str> = runs.iter().copied().collect();
        let ids = self.0.column(RUN_ID)?.str()?;
        let mask: BooleanChunked =
            ids.iter().map(|id| Some(id.is_some_and(|id| wanted.contains(id)))).collect();
        self.0.filter(&mask).map(Self)
    }

    /// The rows of the whole work, without those of regions.
    pub fn of_whole_work(&self) -> PolarsResult<Self> {
        let regions = self.0.column("region")?;
        self.0.filter(&regions.is_null()).map(Self)
    }

    /// The rows of counts with this scope.
    pub fn of_scope(&self, scope: Scope) -> PolarsResult<Self> {
        self.lazy().filter(col("scope").eq(lit(scope.name()))).collect().map(Self)
    }

    /// The rows before those of the last run, and the rows of the last run.
    pub fn without_last_run(&self) -> PolarsResult<(Self, Self)> {
        if self.is_empty() {
            return Ok((Self::default(), Self::default()));
        }
        let ids = self.0.column(RUN_ID)?.str()?;
        let last = ids.get(self.len() - 1);
        let first = (0..self.len()).rev().take_while(|row| ids.get(*row) == last).last().unwrap_or(0);
        Ok((Self(self.0.slice(0, first)), Self(self.0.slice(first as i64, self.len() - first))))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.height()
    }

    /// True without a row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame, for files.
    pub fn frame(&self) -> &DataFrame {
        &self.0
    }

    /// The frame, for queries.
    pub fn lazy(&self) -> LazyFrame {
        self.0.clone().lazy()
    }

    /// The sum of each family of events at each place of a level, by run, node, place, region, family and scope, in any
    /// order. It has the columns of these, and:
    ///
    /// | column | type | |
    /// |---|---|---|
    /// | cpu_vendor; cpu_family, cpu_model | str; u32 | |
    /// | unit | str | |
    /// | value | f64 | null if a row of the sum has no value |
    /// | rows | u32 | how many rows were added up |
    /// | socket, numa, core | u32 | only by rank: of the first row |
    /// | quality | str | the worst of these |
    /// | reason | str | of the first row with this quality |
    /// | running_share | f64 | the smallest of these; null if unknown |
    /// | unusable | bool | true if a row is |
    pub fn sums(&self, level: Level) -> PolarsResult<DataFrame> {
        if self.is_empty() {
            return Ok(DataFrame::empty());
        }
        let keys: Vec<Expr> = [RUN_ID, "node"]
            .iter()
            .chain(level.keys())
            .chain(&["region", "family", "scope"])
            .map(|name| col(*name))
            .collect();
        let worst = QUALITIES.iter().enumerate().skip(1).fold(lit(0u32), |rank, (at, name)| {
            when(col("quality").eq(lit(*name))).then(lit(at as u32)).otherwise(rank)
        });
        let share = col("running_ns").cast(DataType::Float64) / col("enabled_ns").cast(DataType::Float64);
        let share = when(col("enabled_ns").gt(lit(0u64))).then(share).otherwise(lit(NULL));
        let rows = match level.has() {
            Some(has) => self.lazy().filter(has),
            None => self.lazy(),
        };
        // The first row of a group is then one of the worst quality, and gives the reason: a filter in each group would take
        // longer than all the rest.
        let worst_first =
            SortMultipleOptions::default().with_order_descending(true).with_maintain_order(true);
        let sums = rows
            .with_columns([
                worst.cast(DataType::UInt32).alias("rank_of_quality"),
                share.alias("running_share"),
            ])
            .sort(["rank_of_quality"], worst_first)
            .group_by(keys)
            .agg(
                level
                    .first_of()
                    .iter()
                    .map(|name| col(*name).first())
                    .chain([
                        col("cpu_vendor").first(),
                        col("cpu_family").first(),
                        col("cpu_model").first(),
                        col("unit").first(),
                        when(col("value").null_count().eq(lit(0u32)))
                            .then(col("value").sum())
                            .otherwise(lit(NULL))
                            .alias("value"),
                        len().cast(DataType::UInt32).alias("rows"),
                        col("rank_of_quality").max(),
                        col("reason").first(),
                        col("running_share").min(),
                        col("unusable").max(),
                    ])
                    .collect::<Vec<Expr>>(),
            );
        let mut sums = sums.collect()?;
        let ranks = sums.column("rank_of_quality")?.u32()?;
        let qualities: Vec<&str> = ranks
            .iter()
            .map(|rank| QUALITIES[rank.map_or(0, |rank| rank as usize).min(QUALITIES.len() - 1)])
            .collect();
        let qualities = Column::new("quality".into(), qualities);
        sums.with_column(qualities)?;
        sums.drop("rank_of_quality")
    }
}
