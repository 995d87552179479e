//! The binary `hivetill`.

use std::process::ExitCode;

fn main() -> ExitCode {
    api::commands::main()
}
