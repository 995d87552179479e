//! The progress bar of a long command, on standard error: a bar on a terminal, a line per table elsewhere.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use storage::Progress;
use tokio::time::Instant;

/// Time between two updates of the bar.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);
/// Width of the bar.
const WIDTH: u64 = 30;

/// Shows the progress of a copy.
#[derive(Debug)]
pub(super) struct ProgressBar {
    is_terminal: bool,
    updated_at: Option<Instant>,
    table: &'static str,
}

impl ProgressBar {
    /// Begins without output.
    pub(super) fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), updated_at: None, table: "" }
    }

    /// Shows the progress, if it has changed enough.
    pub(super) fn show(&mut self, progress: Progress) {
        let is_other_table = self.table != progress.table;
        self.table = progress.table;
        let is_due = self.updated_at.is_none_or(|at| at.elapsed() >= UPDATE_INTERVAL);
        let text = match self.is_terminal {
            true if is_due || is_other_table => format!("\r{:<78}", line(progress)),
            false if is_other_table => format!("{}\n", line(progress)),
            _ => return,
        };
        self.updated_at = Some(Instant::now());
        write(&text);
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if self.is_terminal && self.updated_at.is_some() {
            write(&format!("\r{:<78}\r", ""));
        }
    }
}

/// A closed standard error does not stop the command.
fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn line(Progress { table, rows, expected }: Progress) -> String {
    // Sums have rows that are not expected.
    let share = |of: u64| (rows * of).checked_div(expected).unwrap_or(0).min(of);
    let done = share(WIDTH);
    let bar: String = (0..WIDTH).map(|place| if place < done { '#' } else { '.' }).collect();
    format!("{:>3} % [{bar}] {rows} rows, {table}", share(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_share_of_the_rows() {
        let shown = |rows, expected| line(Progress { table: "payments", rows, expected });
        assert_eq!(shown(0, 0), "  0 % [..............................] 0 rows, payments");
        assert_eq!(shown(1_500, 3_000), " 50 % [###############...............] 1500 rows, payments");
        assert_eq!(shown(3_100, 3_000), "100 % [##############################] 3100 rows, payments");
    }
}
