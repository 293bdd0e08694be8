//! How ranks reach one another: the job's interconnect, and sockets within a node.
//!
//! This module moves bytes between ranks and waits for them. [`crate::record`] defines what the bytes mean, and
//! [`crate::session`] when they are sent.

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
