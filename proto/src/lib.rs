//! The engine's gRPC interface: messages, transport, caller metadata and errors.
//!
//! The facade uses the engine only through this crate. A [`transport::Transport`] calls an engine in the same process or
//! over the network.

pub mod access;
pub mod caller;
mod change;
mod cluster;
mod connection;
pub mod details;
pub mod in_process;
mod records;
mod repetition;
mod rest_names;
pub mod status;
pub mod time;
pub mod transport;

pub use caller::Caller;
pub use cluster::EngineState;
pub use in_process::InProcessEngine;
pub use records::{IntoRecord, RecordResponse, record_response};
pub use repetition::Repetition;
pub use status::{ApiError, Reason};
pub use transport::{Engine, Local, Transport};

/// The messages, clients and servers generated from `hivetill/engine/v1/*.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::disallowed_types,
    reason = "generated"
)]
pub mod v1 {
    tonic::include_proto!("hivetill.engine.v1");
}

/// The file descriptor set for server reflection, serialized.
pub const DESCRIPTOR: &[u8] = tonic::include_file_descriptor_set!("engine_descriptor");

include!(concat!(env!("OUT_DIR"), "/names.rs"));
