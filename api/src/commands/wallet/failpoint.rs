//! Failpoints at which a test kills the process, in development builds only.

/// Kills the process with SIGKILL if the environment variable `HIVETILL_FAILPOINT` names this failpoint. Release builds
/// ignore the variable.
pub(super) fn reach(place: &str) {
    if cfg!(debug_assertions) {
        let named = crate::config::environment_variables().into_iter().find(|(name, _)| name == "HIVETILL_FAILPOINT");
        if named.is_some_and(|(_, named)| named == place) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}
