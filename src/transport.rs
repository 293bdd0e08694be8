//! How ranks reach one another: the job's interconnect, and sockets within a node.
//!
//! Here belongs what moves bytes between ranks, and what waits for them. Not here: what the bytes mean
//! ([`crate::record`]), and when they are sent ([`crate::session`]).

pub mod backoff;
pub mod collectives;
pub mod end_barrier;
pub mod fabric;
pub mod gather;
pub mod local_socket;
pub mod mpi_family;
pub mod node_election;
pub mod node_meeting;
pub mod ping_exchange;
