//! Derives the class of each row from the columns of a part of a file.

use super::columns::{ClassColumn, Columns};
use super::names;
use crate::input::importers::building::Building;
use crate::input::importers::row::{NameColumn, WRONG};
use crate::table::node_class::{Key, Parts};
use crate::table::{NamePool, facts, run_settings};
use hashbrown::HashMap;
use polars::prelude::{DataFrame, PolarsResult};

/// One number per row.
#[derive(Default)]
pub(super) struct Classes {
    pub class: Vec<u32>,
    /// The declared class; empty if it equals the class.
    pub declared: Vec<u32>,
    /// What the class consists of; empty if parts are not kept.
    pub parts: Vec<u32>,
}

/// One node in a tree of column values: from the columns read before to the value of the next column.
struct Step {
    before: Option<u32>,
    column: usize,
    value: u32,
    is_own: bool,
}

impl Step {
    fn begin(is_own: bool) -> Self {
        Self { before: None, column: 0, value: 0, is_own }
    }
}

impl Classes {
    pub fn of(
        frame: &DataFrame,
        is_own: &[bool],
        columns: &Columns,
        building: &mut Building,
    ) -> PolarsResult<Self> {
        let archived = building.is_of_archive();
        let (keep_declared, keep_parts) = (building.keeps_declared(), columns.keep_parts);
        if let [ClassColumn { name, key: Key::Class, .. }] = columns.class.as_slice()
            && !(archived || keep_declared || keep_parts)
        {
            let class = names::numbers(frame.column(name)?, NameColumn::Class, building)?;
            return Ok(Self { class, ..Self::default() });
        }
        // One root for rows of other tools, one for rows of pmmpi.
        let mut steps = vec![Step::begin(false), Step::begin(true)];
        let mut last: Vec<u32> = is_own.iter().map(|own| u32::from(*own)).collect();
        let has = [is_own.contains(&false), is_own.contains(&true)];
        if has[1] && !columns.has_parts {
            building.has_no_parts();
        }
        let mut texts: Vec<NamePool> = Vec::new();
        for ClassColumn { name, key, of_others, of_own, has_all_facts } in &columns.class {
            let (column, mut values, says) = (texts.len(), NamePool::default(), [*of_others, *of_own]);
            if has[0] && says[0] || has[1] && says[1] {
                let numbers = names::map(frame.column(name)?, |text| match has_all_facts {
                    true => {
                        let facts = facts::values(text);
                        values.number(run_settings::value(&facts, key.name()).unwrap_or_default())
                    }
                    false => values.number(text),
                })?;
                // Each pair of node and value gets one step.
                let mut pairs = HashMap::new();
                for (last, value) in last.iter_mut().zip(numbers) {
                    *last = *pairs.entry((*last, value)).or_insert_with(|| {
                        let is_own = steps[*last as usize].is_own;
                        if !says[usize::from(is_own)] {
                            return *last;
                        }
                        steps.push(Step { before: Some(*last), column, value, is_own });
                        steps.len() as u32 - 1
                    });
                }
            }
            texts.push(values);
        }
        let parts_of = |last: u32| {
            let mut parts = Parts::default();
            let path = std::iter::successors(Some(last), |step| steps[*step as usize].before);
            let mut path: Vec<u32> = path.collect();
            path.reverse();
            for Step { column, value, .. } in path[1..].iter().map(|step| &steps[*step as usize]) {
                let (column, text) =
                    (&columns.class[*column], texts[*column].get(*value).unwrap_or_default());
                match column.has_all_facts {
                    // Labels come before, because their columns do.
                    true => parts = parts.with_fact(column.key.name(), text),
                    false => parts.add(&column.key, text),
                }
            }
            if let Some(class) = columns.place.class.as_deref().filter(|_| !steps[last as usize].is_own) {
                parts.add(&Key::Class, class);
            }
            parts
        };
        let mut known: Vec<Option<[u32; 3]>> = vec![None; steps.len()];
        let mut classes = Self::default();
        for last in last {
            let [class, declared, parts] = *known[last as usize].get_or_insert_with(|| {
                let (parts, is_own, by) = (parts_of(last), steps[last as usize].is_own, &columns.class_by);
                building.has_parts(&parts, is_own);
                let class = if is_own { parts.class_of_own(by) } else { parts.class_of_others(by) };
                let declared = parts.get(&Key::Class).unwrap_or_default();
                let texts = [class.as_str(), if keep_declared { declared } else { "" }];
                let [class, declared] =
                    texts.map(|text| building.number(NameColumn::Class, text).unwrap_or(WRONG));
                if class != WRONG {
                    building.keep_class_parts(class, &parts, is_own);
                }
                [class, declared, if keep_parts { building.parts_number(|| parts.clone()) } else { 0 }]
            });
            classes.class.push(class);
            classes.declared.extend(keep_declared.then_some(declared));
            classes.parts.extend(keep_parts.then_some(parts));
        }
        Ok(classes)
    }
}
