//! One quorum query as a state machine: which nodes to query, when to wait, when the result is decided. It has no clock
//! and no network, so that tests can try every order of responses.

/// A query that is sent to some nodes at once, and to the others only if the first do not decide it.
#[derive(Debug, Clone)]
pub(crate) struct Round<T> {
    /// How many nodes decide.
    needed: usize,
    /// Number of nodes that can be queried; the driver knows which they are.
    nodes: usize,
    /// Number of nodes queried so far, in the driver's order.
    asked: usize,
    /// Responses with the index of their node, in order of arrival.
    answers: Vec<(usize, T)>,
    /// Number of queried nodes that failed.
    absent: usize,
    /// Whether the timeout for slower nodes has passed.
    is_timed_out: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<R> {
    /// The result is decided.
    Done(R),
    /// Query every node that was not queried yet.
    QueryOthers,
    /// Wait for a response or the timeout.
    Wait,
    /// Every node was queried, and their responses do not decide.
    Undecided,
}

/// The state of a round, as its `decide` function sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundStatus {
    /// How many nodes decide.
    pub(crate) needed: usize,
    /// Whether every node has responded or failed.
    pub(crate) is_over: bool,
    /// Whether the timeout for slower nodes has passed.
    pub(crate) is_timed_out: bool,
    /// Whether every node queried so far has responded or failed.
    pub(crate) is_complete: bool,
}

impl RoundStatus {
    /// Returns whether the round may end with the present responses.
    pub(crate) const fn may_end(&self) -> bool {
        self.is_over || self.is_timed_out
    }
}

impl<T> Round<T> {
    /// Returns a round of `nodes` nodes, of which `needed` decide and the first `first` are queried at once.
    pub(crate) fn new(nodes: usize, first: usize, needed: usize) -> Self {
        Self { needed, nodes, asked: first.min(nodes), answers: Vec::new(), absent: 0, is_timed_out: false }
    }

    /// Returns the number of nodes to have queried by now.
    pub(crate) const fn asked(&self) -> usize {
        self.asked
    }

    /// Returns the responses in order of arrival, each with the index of its node.
    pub(crate) fn into_answers(self) -> Vec<(usize, T)> {
        self.answers
    }

    /// Returns whether the driver must start a timer: other nodes can be queried, or a majority has responded and
    /// slower nodes need not be awaited.
    pub(crate) const fn needs_timeout(&self) -> bool {
        !self.is_timed_out && (self.asked < self.nodes || self.answers.len() >= self.needed)
    }

    /// Records the response of a node; `None` if it failed.
    pub(crate) fn answered(&mut self, place: usize, answer: Option<T>) {
        match answer {
            Some(answer) => self.answers.push((place, answer)),
            None => self.absent += 1,
        }
    }

    /// Handles the timeout: queries the remaining nodes, or stops waiting for slow ones.
    pub(crate) fn timed_out(&mut self) {
        if self.asked < self.nodes {
            self.asked = self.nodes;
        } else {
            self.is_timed_out = self.answers.len() >= self.needed;
        }
    }

    /// Returns the next step. `decide` returns the decision, if the responses permit one.
    pub(crate) fn step<R>(&mut self, decide: impl Fn(&[(usize, T)], RoundStatus) -> Option<R>) -> Step<R> {
        let is_complete = self.answers.len() + self.absent >= self.asked;
        let has_all = self.asked >= self.nodes;
        let status = RoundStatus {
            needed: self.needed,
            is_over: is_complete && has_all,
            is_timed_out: self.is_timed_out,
            is_complete,
        };
        if let Some(decision) = decide(&self.answers, status) {
            return Step::Done(decision);
        }
        if !has_all && (is_complete || self.absent > 0) {
            self.asked = self.nodes;
            return Step::QueryOthers;
        }
        if status.is_over { Step::Undecided } else { Step::Wait }
    }
}
