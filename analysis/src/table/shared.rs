//! Texts and other parts that many reports have: a fleet may have a million reports.

use super::{NamePool, RunTable, UNDECLARED};
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value of which all clones share one copy.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shared<T: ?Sized>(Arc<T>);

/// A text of which all clones share one copy.
pub type SharedText = Shared<str>;

impl<T> Shared<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl SharedText {
    /// The text.
    pub fn as_str(&self) -> &str {
        self
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

/// The names of a table, by their numbers.
pub struct SharedNames {
    nodes: Vec<SharedText>,
    classes: Vec<SharedText>,
    sessions: Vec<SharedText>,
}

impl SharedNames {
    /// The names of `table`.
    pub fn of(table: &RunTable) -> Self {
        let all = |names: &NamePool| names.iter().map(SharedText::from).collect();
        let mut classes: Vec<SharedText> = all(&table.classes);
        classes.iter_mut().filter(|name| name.is_empty()).for_each(|name| *name = UNDECLARED.into());
        Self { nodes: all(&table.nodes), classes, sessions: all(&table.sessions) }
    }

    /// Host name of a row.
    pub fn node(&self, table: &RunTable, row: usize) -> SharedText {
        self.nodes[table.node.at(row) as usize].clone()
    }

    /// Class of a row.
    pub fn class(&self, table: &RunTable, row: usize) -> SharedText {
        self.classes[table.class.at(row) as usize].clone()
    }

    /// Session of a row; `None` if it has none.
    pub fn session(&self, table: &RunTable, row: usize) -> Option<SharedText> {
        Some(&self.sessions[table.session.at(row) as usize]).filter(|name| !name.is_empty()).cloned()
    }
}
