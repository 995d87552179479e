//! Output of commands.

use std::io::Write as _;

use super::failure::Failure;

/// Prints a text to standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Other(format!("cannot write to standard output: {error}")))
}
