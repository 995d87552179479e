//! What commands print.

use std::io::Write as _;

use super::failure::Failure;

/// Prints to whoever called the command.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    said.map_err(|error| Failure::Other(format!("cannot write to the standard output: {error}")))
}
