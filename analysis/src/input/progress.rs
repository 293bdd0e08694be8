//! Progress of reading.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// Counts bytes that are read. The default reports to no one.
#[derive(Clone, Default)]
pub struct Progress(Option<Rc<RefCell<Counting>>>);

struct Counting {
    done_bytes: u64,
    all_bytes: u64,
    tell: Box<dyn FnMut(u64, u64)>,
}

impl Progress {
    /// Calls `tell` often, with the number of bytes read and the number of all bytes.
    pub fn new(tell: impl FnMut(u64, u64) + 'static) -> Self {
        Self(Some(Rc::new(RefCell::new(Counting { done_bytes: 0, all_bytes: 0, tell: Box::new(tell) }))))
    }

    /// Adds the size of a file that is going to be read.
    pub fn expect(&self, file: &Path) {
        if let Some(counting) = &self.0 {
            counting.borrow_mut().all_bytes += std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        }
    }

    /// Adds bytes that were read.
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

/// Counts the bytes that pass through it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_read_is_told() {
        let told = Rc::new(Cell::new((0, 0)));
        let teller = told.clone();
        let progress = Progress::new(move |done, all| teller.set((done, all)));
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        progress.expect(manifest);
        progress.expect(Path::new("/nonexistent"));
        let mut text = String::new();
        Metered::new(&b"0123456789"[..], progress.clone()).read_to_string(&mut text).unwrap();
        let bytes = std::fs::metadata(manifest).unwrap().len();
        assert_eq!((text.len(), told.get()), (10, (10, bytes)));
        progress.add(5);
        assert_eq!(told.get().0, 15);
        // Without a listener, too.
        Progress::default().add(1);
    }
}
