//! The engine's gRPC interface: its messages, how a call travels, who calls, and the one table of errors.
//!
//! The facade knows the engine only through this crate. Whether the engine stands in the same process or behind a
//! network is the [`transport::Transport`]'s business.

pub mod access;
pub mod caller;
mod change;
mod connection;
pub mod details;
pub mod in_process;
mod records;
mod rest_names;
pub mod status;
pub mod time;
pub mod transport;

pub use caller::Caller;
pub use in_process::InProcessEngine;
pub use records::{IntoRecord, RecordResponse, record_response};
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

/// The interface's own description, for reflection: a serialized `FileDescriptorSet`.
pub const DESCRIPTOR: &[u8] = tonic::include_file_descriptor_set!("engine_descriptor");

include!(concat!(env!("OUT_DIR"), "/names.rs"));
