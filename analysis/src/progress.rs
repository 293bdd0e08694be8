//! How far reading is.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// Counts bytes. The default tells nobody.
#[derive(Clone, Default)]
pub struct Progress(Option<Rc<RefCell<Counting>>>);

struct Counting {
    done_bytes: u64,
    all_bytes: u64,
    tell: Box<dyn FnMut(u64, u64)>,
}

impl Progress {
    /// `tell` is told how many of how many bytes are read, often.
    pub fn new(tell: impl FnMut(u64, u64) + 'static) -> Self {
        Self(Some(Rc::new(RefCell::new(Counting { done_bytes: 0, all_bytes: 0, tell: Box::new(tell) }))))
    }

    /// This file will be read.
    pub fn expect(&self, file: &Path) {
        if let Some(counting) = &self.0 {
            counting.borrow_mut().all_bytes += std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        }
    }

    /// So much was read.
    pub fn add(&self, bytes: u64) {
        if let Some(counting) = &self.0 {
            let counting = &mut *counting.borrow_mut();
            counting.done_bytes += bytes;
            (counting.tell)(counting.done_bytes, counting.all_bytes);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Counts what is read.
pub(crate) struct Metered<R> {
    source: R,
    progress: Progress,
}

impl<R> Metered<R> {
    pub fn new(source: R, progress: Progress) -> Self {
        Self { source, progress }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.source.read(buffer)?;
        self.progress.add(bytes as u64);
        Ok(bytes)
    }
}
