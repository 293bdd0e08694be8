use super::*;
use crate::kernel::repeat;
use crate::team::tests::small_team;
use proptest::prelude::*;

const BLOCK_BYTES: usize = 64 << 10;
const BLOCKS: u64 = 5;

fn small(folder: &Path) -> DiskSettings {
    let bytes = BLOCKS * BLOCK_BYTES as u64 + 100;
    DiskSettings { folder: folder.to_owned(), bytes, block_bytes: BLOCK_BYTES, allow_page_cache: true }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn writes_reads_and_leaves_nothing() {
    let (team, folder) = (small_team(), tempfile::tempdir().unwrap());
    let mut disk = Disk::new(small(folder.path())).unwrap();
    let repetitions = repeat(&mut disk, &team, 0, 2).unwrap();
    assert!(repetitions[1].values.iter().map(|value| value.measure).eq(MEASURES));
    assert!(repetitions[1].values.iter().all(|value| value.node > 0.0 && value.node.is_finite()));
    assert!(is_empty(folder.path()));
    assert!(disk.notes()[0].contains("0.000 GB in blocks of 65536 bytes"), "{:?}", disk.notes());
}

/// A flipped bit, and a sector at the place of another.
#[test]
fn a_changed_file_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut random) = (small(folder.path()), Random(3));
    let mut sector = Pages::map(SECTOR_BYTES, false).unwrap();
    for round in 0..40 {
        let mut buffers = Buffers::new(BLOCK_BYTES).unwrap();
        let sectors = BLOCKS * (BLOCK_BYTES / SECTOR_BYTES) as u64;
        let (from, bit) = (random.below(sectors), random.below(SECTOR_BYTES as u64 * 8));
        let to = if round % 2 == 0 { from } else { (from + 1 + random.below(sectors - 1)) % sectors };
        let (file, _) = open(&settings, round).unwrap();
        let change = |file: &File| {
            assert!(is_empty(folder.path()));
            file.read_exact_at(sector.words::<u8>(), from * SECTOR_BYTES as u64)?;
            if from == to {
                sector.words::<u64>()[(bit / 64) as usize] ^= 1 << (bit % 64);
            }
            file.write_all_at(sector.words::<u8>(), to * SECTOR_BYTES as u64)
        };
        let result = buffers.run(&file, &settings, BLOCKS, round, 9, change);
        let Err(Error::Wrong(wrong)) = result else { panic!("the check found nothing") };
        let word = if from == to { bit / 64 } else { 0 };
        assert_eq!((wrong.element, wrong.hardware_thread), (to * SECTOR_WORDS as u64 + word, 9));
    }
}

#[test]
fn a_shorter_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut buffers) = (small(folder.path()), Buffers::new(BLOCK_BYTES).unwrap());
    let (file, _) = open(&settings, 1).unwrap();
    let result = buffers.run(&file, &settings, BLOCKS, 1, 0, |file| file.set_len(BLOCK_BYTES as u64));
    let text = result.err().unwrap().to_string();
    assert!(text.starts_with(&format!("Cannot read a file in {}", folder.path().display())), "{text}");
    assert!(is_empty(folder.path()));
}

#[test]
fn folders_and_sizes_that_it_cannot_use_are_errors() {
    let mut disk = Disk::new(small(Path::new("/nowhere"))).unwrap();
    let error = repeat(&mut disk, &small_team(), 0, 1).unwrap_err().to_string();
    assert!(error.starts_with("Cannot create /nowhere/.pmmpi-screen-"), "{error}");
    assert!(error.ends_with("choose an existing folder in which you may write"), "{error}");
    for (bytes, block_bytes) in
        [(1 << 20, 0), (1 << 20, 1000), (4095, 4096), (u64::MAX, 4096), (1 << 40, 1 << 31)]
    {
        let settings = DiskSettings { bytes, block_bytes, ..small(Path::new("/tmp")) };
        assert!(matches!(Disk::new(settings), Err(Error::Setting(_))), "{bytes} {block_bytes}");
    }
}

proptest! {
    /// No two sectors of a file have the same number.
    #[test]
    fn sectors_differ(salt in any::<u64>()) {
        let mut buffers = Buffers::new(BLOCK_BYTES).unwrap();
        let mut numbers: Vec<u64> = Vec::new();
        for block in 0..10 {
            let words = buffers.expect(salt, block).words::<u64>();
            numbers.extend(words.iter().step_by(SECTOR_WORDS));
        }
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), all);
    }
}
