//! The trace of a run: a hash that must be the same in every repetition and, if requested, readable lines.

use std::{collections::BTreeMap, fmt};

use crate::{coverage::Places, index::Index};

/// The source of an event; a swimlane of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Customers and agents.
    Payer,
    /// The Hive chain and its nodes.
    Ledger,
    /// The scanner's progress.
    Scanner,
    /// Payment sessions.
    Session,
    /// The disk below the store.
    Disk,
    /// Webhooks in flight.
    Webhook,
    /// Merchants.
    Merchant,
    /// The process, its clock and its actors.
    Process,
    /// One of several engines, by its number.
    Engine(u8),
}

impl Source {
    /// Every source of a run with one engine, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Payer,
        Self::Ledger,
        Self::Scanner,
        Self::Session,
        Self::Disk,
        Self::Webhook,
        Self::Merchant,
        Self::Process,
    ];

    /// Returns the sources of a run, in the order of the report: each of several engines has its own.
    #[must_use]
    pub fn of_run(engines: usize) -> Vec<Self> {
        let engines = u8::try_from(engines).unwrap_or(u8::MAX);
        let several = (0..engines).filter(|_| engines > 1).map(Self::Engine);
        Self::ALL.into_iter().chain(several).collect()
    }

    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payer => "payer",
            Self::Ledger => "ledger",
            Self::Scanner => "scanner",
            Self::Session => "session",
            Self::Disk => "disk",
            Self::Webhook => "webhook",
            Self::Merchant => "merchant",
            Self::Process => "process",
            Self::Engine(0) => "engine 0",
            Self::Engine(1) => "engine 1",
            Self::Engine(2) => "engine 2",
            Self::Engine(3) => "engine 3",
            Self::Engine(_) => "engine 4",
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The time, virtual milliseconds since the simulation began.
    pub at_ms: u64,
    /// Who.
    pub source: Source,
    /// The kind of event.
    pub kind: &'static str,
    /// The session it is about, by its number in the script.
    pub session: Option<u32>,
    /// The description.
    pub text: String,
    /// Whether it is a fault that was injected.
    pub is_fault: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_fault { "!" } else { " " };
        write!(f, "{:>12} {mark} {:<8} {}", show_ms(self.at_ms), self.source.as_str(), self.text)
    }
}

/// Formats virtual time: `12m04.250s`.
#[must_use]
pub fn show_ms(ms: u64) -> String {
    let (hours, minutes, seconds, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}.{rest:03}s"),
        (0, _) => format!("{minutes}m{seconds:02}.{rest:03}s"),
        _ => format!("{hours}h{minutes:02}m{seconds:02}.{rest:03}s"),
    }
}

/// The events so far.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    events: u64,
    lines: Option<Vec<Line>>,
    /// The ends of faults that last, as they are planned; kept with the lines.
    ends: Vec<Line>,
    faults: BTreeMap<&'static str, u64>,
    marks: Index<&'static str, u64>,
    places: Places,
}

impl Trace {
    /// Returns an empty trace; it keeps lines only if `keeps_lines` is set.
    #[must_use]
    pub fn new(keeps_lines: bool) -> Self {
        Self { lines: keeps_lines.then(Vec::new), ..Self::default() }
    }

    /// Records an event. Its text is built only where lines are kept; time, kind, session and `detail` are hashed.
    pub fn event(
        &mut self,
        at_ms: u64,
        source: Source,
        kind: &'static str,
        session: Option<u32>,
        detail: u64,
        text: impl FnOnce() -> String,
    ) {
        self.note(at_ms, source, kind, session, detail, false, text);
    }

    /// Records an injected fault.
    pub fn fault(
        &mut self,
        at_ms: u64,
        source: Source,
        kind: &'static str,
        detail: u64,
        text: impl FnOnce() -> String,
    ) {
        *self.faults.entry(kind).or_default() += 1;
        self.note(at_ms, source, kind, None, detail, true, text);
    }

    /// Records when a fault that lasts will end. It changes only the lines.
    pub fn fault_will_end(&mut self, at_ms: u64, source: Source, text: impl FnOnce() -> String) {
        if self.lines.is_some() {
            self.ends.push(Line { at_ms, source, kind: "fault.over", session: None, text: text(), is_fault: false });
        }
    }

    /// Counts that a rare state was reached.
    pub fn mark(&mut self, name: &'static str) {
        *self.marks.entry(name).or_default() += 1;
    }

    /// Counts a fault of a node.
    pub fn count_node_fault(&mut self, fault: &'static str, node: usize) {
        *self.places.entry((fault, node)).or_default() += 1;
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where both kinds of event meet")]
    fn note(
        &mut self,
        at_ms: u64,
        source: Source,
        kind: &'static str,
        session: Option<u32>,
        detail: u64,
        is_fault: bool,
        text: impl FnOnce() -> String,
    ) {
        self.events += 1;
        self.mix(at_ms);
        for chunk in kind.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(session.map_or(u64::MAX, u64::from));
        self.mix(detail);
        if let Some(lines) = &mut self.lines {
            lines.push(Line { at_ms, source, kind, session, text: text(), is_fault });
        }
    }

    /// Mixes a number into the hash.
    pub fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Returns the hash of all events.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of events.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Returns the faults injected, by kind.
    #[must_use]
    pub const fn faults(&self) -> &BTreeMap<&'static str, u64> {
        &self.faults
    }

    /// Returns how often a rare state was reached.
    #[must_use]
    pub fn marked(&self, name: &str) -> u64 {
        self.marks.get(name).copied().unwrap_or(0)
    }

    /// Returns the rare states reached, by name.
    #[must_use]
    pub fn marks(&self) -> BTreeMap<&'static str, u64> {
        self.marks.iter().map(|(name, count)| (*name, *count)).collect()
    }

    /// Returns the faults of nodes, by name and the node's position.
    #[must_use]
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// Takes the lines out, with the ends of faults that were over before all of them were ended.
    pub fn take_lines(&mut self) -> Vec<Line> {
        let mut lines = self.lines.take().unwrap_or_default();
        let last = lines.iter().find(|line| line.kind == "heal").or(lines.last()).map_or(0, |line| line.at_ms);
        lines.extend(std::mem::take(&mut self.ends).into_iter().filter(|end| end.at_ms < last));
        lines.sort_by_key(|line| line.at_ms);
        lines
    }
}

/// Mixes bytes into one number, eight at a time.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    let mut hash = 0x51_7c_c1_b7_27_22_0a_95u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
        hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    for byte in chunks.remainder() {
        hash = (hash.rotate_left(23) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    hash
}
