//! The findings of the checks, with their severity and the suggested fix.

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// No problem.
    Ok,
    /// A problem that does not affect payments yet.
    Warning,
    /// A problem because of which payments fail now or soon.
    Failing,
}

impl Severity {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failing => "failing",
        }
    }
}

/// The result of one check.
#[derive(Debug)]
pub(super) struct Finding {
    /// The subject of the check.
    pub(super) check: String,
    pub(super) severity: Severity,
    pub(super) message: String,
    /// The suggested fix.
    pub(super) remedy: Option<String>,
}

/// The results of all checks.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn ok(&mut self, check: &str, message: impl Into<String>) {
        let check = check.to_owned();
        self.0.push(Finding { check, severity: Severity::Ok, message: message.into(), remedy: None });
    }

    pub(super) fn warn(&mut self, check: &str, message: impl Into<String>, remedy: &str) {
        self.add(Severity::Warning, check, message, remedy);
    }

    pub(super) fn fail(&mut self, check: &str, message: impl Into<String>, remedy: &str) {
        self.add(Severity::Failing, check, message, remedy);
    }

    fn add(&mut self, severity: Severity, check: &str, message: impl Into<String>, remedy: &str) {
        let (check, remedy) = (check.to_owned(), Some(remedy.to_owned()));
        self.0.push(Finding { check, severity, message: message.into(), remedy });
    }

    pub(super) fn worst(&self) -> Severity {
        self.0.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
    }
}
