//! The bytes of a run file: the present schema is written, all schemas are read.

use super::{RunFileError, VERSION};
use crate::clock::Crystal;
use crate::counters::empty_entry::EmptyEntry;
use crate::ids::NodeId;
use crate::probes::Probes;
use crate::record::node_additions::NodeAdditions;
use crate::record::run::Run;
use crate::record::wire;

pub(super) const MAGIC: &[u8; 8] = b"PMMPIRUN";
pub(super) const HEADER_BYTES: usize = 24;

pub(super) fn to_bytes(run: &Run) -> Result<Vec<u8>, wire::WireError> {
    let mut payload = wire::encode(run)?;
    payload.extend(wire::encode(&(run.starting_ns, &run.sync, &run.regions))?);
    payload.extend(wire::encode(&run.counts)?);
    payload.extend(wire::encode(&crystals(run))?);
    payload.extend(wire::encode(&run.asked)?);
    payload.extend(wire::encode(&NodeAdditions::of(run))?);
    payload.extend(wire::encode(&run.screened)?);
    let has_entry = run.empty_entry != EmptyEntry::default();
    if has_entry || !run.expected.is_empty() || run.probes != Probes::default() {
        payload.extend(wire::encode(&(&run.expected, &run.probes))?);
    }
    if has_entry {
        payload.extend(wire::encode(&run.empty_entry)?);
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

/// The run in a file's bytes.
pub fn from_bytes(bytes: &[u8]) -> Result<Run, RunFileError> {
    if bytes.is_empty() {
        return Err(RunFileError::Empty);
    }
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    if *start != MAGIC[..start.len()] {
        return Err(RunFileError::Foreign);
    }
    let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(RunFileError::Truncated { expected: HEADER_BYTES as u64, found: bytes.len() as u64 });
    };
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let version = word(8);
    if version > VERSION {
        return Err(RunFileError::Newer { version });
    }
    if version == 0 {
        return Err(RunFileError::Damaged("it has schema 0, which does not exist".into()));
    }
    let expected = u64::from(word(16)) | u64::from(word(20)) << 32;
    if (payload.len() as u64) < expected {
        let whole = expected.saturating_add(HEADER_BYTES as u64);
        return Err(RunFileError::Truncated { expected: whole, found: bytes.len() as u64 });
    }
    if payload.len() as u64 > expected {
        return Err(RunFileError::Damaged("there are bytes after its end".into()));
    }
    if crc32fast::hash(payload) != word(12) {
        return Err(RunFileError::Damaged("its checksum does not match".into()));
    }
    let run = decode(payload, version)
        .map_err(|e| RunFileError::Damaged(format!("its records cannot be decoded: {e}")))?;
    let sound = run.filter(Run::is_sound);
    sound.ok_or_else(|| RunFileError::Damaged("its records contradict one another".into()))
}

/// `None` if one part refers to nodes that another part lacks.
fn decode(payload: &[u8], version: u32) -> Result<Option<Run>, wire::WireError> {
    let (mut run, mut rest) = wire::decode_first::<Run>(payload)?;
    if version >= 2 {
        ((run.starting_ns, run.sync, run.regions), rest) = wire::decode_first(rest)?;
    }
    if version >= 3 {
        (run.counts, rest) = wire::decode_first(rest)?;
    }
    let mut of_nodes: Vec<(NodeId, Crystal)> = Vec::new();
    if version >= 4 {
        (of_nodes, rest) = wire::decode_first(rest)?;
    }
    if version >= 5 {
        (run.asked, rest) = wire::decode_first(rest)?;
    }
    let mut additions = NodeAdditions::default();
    if version >= 6 {
        (additions, rest) = wire::decode_first(rest)?;
    }
    if version >= 7 {
        (run.screened, rest) = wire::decode_first(rest)?;
        if !rest.is_empty() {
            ((run.expected, run.probes), rest) = wire::decode_first(rest)?;
        }
        if !rest.is_empty() {
            (run.empty_entry, rest) = wire::decode_first(rest)?;
        }
    }
    wire::end(rest)?;
    for (node, crystal) in of_nodes {
        match run.nodes.get_mut(node.index()).and_then(|node| node.facts.as_mut()) {
            Some(facts) => facts.hardware.crystal = crystal,
            None => return Ok(None),
        }
    }
    Ok(additions.add_to(&mut run).map(|()| run))
}

fn crystals(run: &Run) -> Vec<(NodeId, Crystal)> {
    let facts = (0..).map(NodeId).zip(&run.nodes).filter_map(|(at, node)| Some((at, node.facts.as_ref()?)));
    let crystals = facts.map(|(at, facts)| (at, facts.hardware.crystal));
    crystals.filter(|(_, crystal)| *crystal != Crystal::default()).collect()
}
