//! The limit on open files, raised to the number that the connections need.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{info, warn};

/// Number of open files besides client connections: the store, nodes, webhooks, gRPC connections.
const OTHER_FILES: u64 = 512;

/// Raises the limit on open files for a number of client connections. Logs a warning if the hard limit is too low.
pub(super) fn raise_limit(connections: usize) {
    let required = (connections as u64).saturating_add(OTHER_FILES);
    let limit = getrlimit(Resource::Nofile);
    // No value means no limit.
    let Some(current) = limit.current.filter(|current| *current < required) else { return };
    let target = limit.maximum.map_or(required, |maximum| maximum.min(required));
    let raised = match setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum: limit.maximum }) {
        Ok(()) => target,
        Err(_) => current,
    };
    if raised < required {
        warn!(
            open_files = raised,
            required,
            "this process can open {raised} files, but limits.connections = {connections} needs {required}: raise the \
             hard limit (systemd: LimitNOFILE={required}) or lower limits.connections"
        );
    } else {
        info!(open_files = raised, "limit on open files raised from {current} to {raised}");
    }
}
