//! Resource usage of the gateway's process on this host, read from `/proc`.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

/// Clock ticks per second in `/proc/…/stat`, the same on every Linux that Rust supports.
const TICKS: u32 = 100;
const PAGE_BYTES: u64 = 4_096;

/// The process that listens on the gateway's port.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
}

/// Resource usage of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) pid: u32,
    /// User and system CPU time.
    pub(super) cpu: Duration,
    /// Resident memory.
    pub(super) resident_bytes: u64,
}

impl Usage {
    /// Returns the usage since an earlier one: the CPU time of the interval, and the current memory.
    pub(super) fn since(self, before: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(before.cpu), ..self }
    }
}

impl Process {
    /// Finds the process that listens on an address of this host; `None` if `/proc` does not show it.
    pub(super) fn listening_on(address: SocketAddr) -> Option<Self> {
        let tables = [fs::read_to_string("/proc/net/tcp"), fs::read_to_string("/proc/net/tcp6")];
        let inode = tables.iter().flatten().find_map(|table| listener(table, address.port()))?;
        let socket = format!("socket:[{inode}]");
        let mut processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            holds(&entry.path().join("fd"), &socket).then_some(Self { pid })
        });
        processes.next()
    }

    /// Returns the usage so far; `None` after the process has exited.
    pub(super) fn usage(&self) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let (cpu, resident_bytes) = (cpu_of(&stat)?, resident_of(&statm)?);
        Some(Usage { pid: self.pid, cpu, resident_bytes })
    }
}

/// Returns the inode of the socket that listens on a port, from a table of `/proc/net`.
fn listener(table: &str, port: u16) -> Option<u64> {
    const LISTENS: &str = "0A";
    let port = format!(":{port:04X}");
    let mut sockets = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = sockets.find(|fields| fields.len() > 9 && fields[1].ends_with(&port) && fields[3] == LISTENS)?;
    found[9].parse().ok()
}

/// Returns whether a directory of file descriptors contains a socket.
fn holds(descriptors: &Path, socket: &str) -> bool {
    let Ok(entries) = fs::read_dir(descriptors) else { return false };
    entries.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == socket))
}

/// Parses user and system CPU time. The process name before them may contain spaces and parentheses.
fn cpu_of(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_secs(1) * user.checked_add(system)? / TICKS)
}

fn resident_of(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_tables_are_parsed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n   \
                     1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n";
        assert_eq!((listener(table, 8080), listener(table, 8081)), (Some(4_711), None));
        let stat = "12 (a ) name) S 1 1 1 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_of(stat), Some(Duration::from_secs(2)));
        assert_eq!(resident_of("100 10 1 1 0 1 0"), Some(40_960));
        assert_eq!((cpu_of(""), resident_of("x")), (None, None));
    }

    #[test]
    fn a_listening_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = Process::listening_on(listener.local_addr().unwrap());
        if Path::new("/proc/net/tcp").exists() {
            let found = found.expect("this process listens");
            assert_eq!(found.pid, std::process::id());
            assert!(found.usage().is_some_and(|usage| usage.resident_bytes > 0));
        }
    }
}
