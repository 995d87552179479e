//! One question to the nodes as a state machine: whom to ask, when to wait, when it is decided. It has no clock and no
//! network, so that every order of answers can be tried.

/// A question that is put to some nodes at once and to the others only if those do not decide it.
#[derive(Debug, Clone)]
pub(crate) struct Round<T> {
    /// How many nodes decide.
    needed: usize,
    /// How many nodes can be asked; the driver knows which they are.
    nodes: usize,
    /// How many were asked, in the driver's order.
    asked: usize,
    /// What was answered, with the node's place, in order of arrival.
    answers: Vec<(usize, T)>,
    /// How many that were asked gave no answer.
    absent: usize,
    /// Whether slower nodes are no longer waited for.
    is_timed_out: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<R> {
    /// It is decided.
    Done(R),
    /// Put the question to every node that was not asked yet.
    QueryOthers,
    /// Wait for an answer, or for the end of the patience.
    Wait,
    /// Everybody was asked, and it cannot be decided.
    Undecided,
}

/// How far a round has come, for who judges its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundStatus {
    /// How many nodes decide.
    pub(crate) needed: usize,
    /// Whether no further answer can come.
    pub(crate) is_over: bool,
    /// Whether slower nodes are no longer waited for.
    pub(crate) is_timed_out: bool,
    /// Whether everyone asked so far has answered or failed.
    pub(crate) is_complete: bool,
}

impl RoundStatus {
    /// Says whether more answers are worth waiting for.
    pub(crate) const fn may_end(&self) -> bool {
        self.is_over || self.is_timed_out
    }
}

impl<T> Round<T> {
    /// Returns a round of `nodes` nodes of which `needed` decide and the first `first` are asked at once.
    pub(crate) fn new(nodes: usize, first: usize, needed: usize) -> Self {
        Self { needed, nodes, asked: first.min(nodes), answers: Vec::new(), absent: 0, is_timed_out: false }
    }

    /// Returns how many nodes are asked by now.
    pub(crate) const fn asked(&self) -> usize {
        self.asked
    }

    /// Returns the answers, in order of arrival, each with the node's place.
    pub(crate) fn into_answers(self) -> Vec<(usize, T)> {
        self.answers
    }

    /// Says whether a timer is worth starting: the others can be asked, or enough answered that the rest is a courtesy.
    pub(crate) const fn needs_timeout(&self) -> bool {
        !self.is_timed_out && (self.asked < self.nodes || self.answers.len() >= self.needed)
    }

    /// Takes the answer of a node; none where it is absent.
    pub(crate) fn answered(&mut self, place: usize, answer: Option<T>) {
        match answer {
            Some(answer) => self.answers.push((place, answer)),
            None => self.absent += 1,
        }
    }

    /// Ends the patience with slow nodes: the others are asked, or the slow ones are no longer waited for.
    pub(crate) fn timed_out(&mut self) {
        if self.asked < self.nodes {
            self.asked = self.nodes;
        } else {
            self.is_timed_out = self.answers.len() >= self.needed;
        }
    }

    /// Says what to do next. `decide` returns the decision, if the answers make one.
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
