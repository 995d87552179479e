//! The limit on open files: raised to what the connections need, as far as the system allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{info, warn};

/// Files besides the connections of customers: the store, nodes, webhooks, streams to other engines.
const OTHERS: u64 = 512;

/// Makes room for so many connections at once, and reports where there is not enough.
pub(super) fn provide(connections: usize) {
    let wanted = wanted(connections);
    let limit = getrlimit(Resource::Nofile);
    // No value means no limit.
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return };
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let got = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    };
    if got < wanted {
        warn!(
            open_files = got,
            wanted,
            "this process may open {got} files, and limits.connections = {connections} needs {wanted}: raise the hard \
             limit (systemd: LimitNOFILE={wanted}) or lower limits.connections"
        );
    } else {
        info!(open_files = got, "limit on open files raised from {current} to {got}");
    }
}

fn wanted(connections: usize) -> u64 {
    (connections as u64).saturating_add(OTHERS)
}
