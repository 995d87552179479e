//! The flag that enables a mutant.

use crate::commands::failure::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct MutantFlag {
    /// Enable this mutant, to see a failure (not in release builds)
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
}

/// The flag, as it follows other flags of a command; nothing without a mutant.
impl std::fmt::Display for MutantFlag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.mutant.as_deref().map_or(Ok(()), |name| write!(f, " --mutant {name}"))
    }
}

impl MutantFlag {
    /// Enables the mutant for all simulations of this thread.
    pub(super) fn enable(&self) -> Result<(), Failure> {
        let Some(name) = self.mutant.as_deref() else { return Ok(()) };
        if !known_mutants()?.iter().any(|(known, _)| *known == name) {
            return Err(Failure::Other(format!("there is no mutant {name:?}; `simulate mutants` lists them")));
        }
        simulations::mutants::activate(name);
        Ok(())
    }
}

/// Returns every mutant with its description.
pub(super) fn known_mutants() -> Result<Vec<(&'static str, &'static str)>, Failure> {
    simulations::mutants::available().ok_or_else(|| {
        Failure::Other(
            "a release build has no mutants; use a development build: cargo run -- simulate mutants".to_owned(),
        )
    })
}
