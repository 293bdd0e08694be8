//! The places at which runs and nodes are slow, for the report.

use serde::Serialize;

/// The places at which a run or a node is slow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowPlaces {
    /// What differs there: an event, or a quotient of two.
    pub measure: &'static str,
    /// core, socket or rank.
    pub by: &'static str,
    /// Number of places that were compared.
    pub compared: usize,
    /// Number of sockets of these places.
    pub sockets: usize,
    /// The places.
    pub places: Vec<PlaceOfRun>,
    /// All places that were compared, in their order: for a picture.
    #[serde(skip)]
    pub all: Vec<PlaceOfRun>,
}

/// One place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceOfRun {
    /// The socket; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// The core; absent if it is unknown, or if sockets were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// The rank; absent unless ranks were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The measure there as a multiple of its median over the runs of the node, or over the nodes of the class.
    pub ratio: f64,
}
