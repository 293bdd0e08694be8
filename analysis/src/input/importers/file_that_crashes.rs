//! Tells a parent process which Parquet file this process decodes. A damaged file can crash this process; the parent
//! then starts it again without that file.

use super::ImportFault;
use std::io::{PipeWriter, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Ends each message. A path cannot contain it.
const END: u8 = 0;

/// Tells which file this process decodes, and refuses files that crashed an earlier process. The default does
/// neither.
#[derive(Clone, Debug, Default)]
pub struct Decoding {
    fatal: Vec<PathBuf>,
    teller: Option<Rc<PipeWriter>>,
}

impl Decoding {
    /// Refuses the files in `fatal`; writes the path of each other file to `teller`.
    pub fn new(fatal: Vec<PathBuf>, teller: Option<PipeWriter>) -> Self {
        Self { fatal, teller: teller.map(Rc::new) }
    }

    /// Takes all that a process wrote. Returns the file that the process decoded when it ended.
    pub fn interrupted(told: &[u8]) -> Option<PathBuf> {
        let last = told.strip_suffix(&[END])?.rsplit(|byte| *byte == END).next()?;
        (!last.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(last.to_vec())))
    }

    /// Calls `decode`, unless `path` crashed an earlier process.
    pub(crate) fn of<T>(
        &self,
        path: &Path,
        decode: impl FnOnce() -> Result<T, ImportFault>,
    ) -> Result<T, ImportFault> {
        if self.fatal.iter().any(|fatal| fatal == path) {
            return Err(ImportFault::Damaged(
                "the Parquet library crashed while it read the file, or ran out of memory".to_owned(),
            ));
        }
        self.tell(path.as_os_str().as_bytes())?;
        let decoded = decode();
        self.tell(&[])?;
        decoded
    }

    fn tell(&self, message: &[u8]) -> Result<(), ImportFault> {
        let Some(teller) = &self.teller else { return Ok(()) };
        Ok((&**teller).write_all(&[message, &[END]].concat())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_file_that_is_not_done_is_the_interrupted_one() {
        let (mut reader, teller) = std::io::pipe().unwrap();
        let decoding = Decoding::new(vec!["bad".into()], Some(teller));
        let mut told = Vec::new();
        let mut more = |bytes: usize| {
            let before = told.len();
            told.resize(before + bytes, 0);
            reader.read_exact(&mut told[before..]).unwrap();
            Decoding::interrupted(&told)
        };
        let during = decoding.of(Path::new("a"), || Ok(more(2))).unwrap();
        assert_eq!((during, more(1)), (Some("a".into()), None));
        assert!(matches!(decoding.of(Path::new("bad"), || Ok(())), Err(ImportFault::Damaged(_))));
        assert!(decoding.of(Path::new("b"), || Err::<(), _>(ImportFault::Empty)).is_err());
        assert_eq!((more(2), more(1)), (Some("b".into()), None));
        assert_eq!(Decoding::interrupted(b""), None);
    }
}
