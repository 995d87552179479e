//! Commits whose connection breaks: two engines write to one row of a store that fails over to a synchronous standby.
//!
//! Each engine adds its own mark to the row, once, by compare-and-set of the version that it read. A commit travels to the store,
//! is executed there, is confirmed by the standby, and its response travels back; the connection may break at any of these
//! places, and a request that is still in flight may be executed later. The engine then writes the id of its commit as
//! forbidden, which waits for a commit that is being executed, and repeats what was forbidden under another id.

use super::explorer::{Explored, Protocol, Step, explore};

/// Engines, and commits that each may try.
const ENGINES: usize = 2;
const TRIES: u8 = 2;

/// How an engine resolves the outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    /// It writes the id as forbidden.
    Forbid,
    /// It writes the id as forbidden, and the store does not look at the ids of commits.
    ForbidUnchecked,
    /// It reads whether the id is there.
    Read,
    /// It does not: it repeats the commit.
    None,
}

/// The protocol, and how often each failure may happen.
struct UnknownCommits {
    resolution: Resolution,
    breaks: u8,
    failovers: u8,
    crashes: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    engines: [Engine; ENGINES],
    /// Requests in flight to the store, sorted: they arrive in any order. Several of one engine may be in flight once a
    /// connection broke.
    travelling: Vec<Request>,
    /// Requests that the store executes, in the order in which they began.
    executing: Vec<Request>,
    store: Store,
    breaks: u8,
    failovers: u8,
    crashes: u8,
}

/// Confirmed commits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Store {
    version: u8,
    /// How often each engine's mark was added.
    marks: [u8; ENGINES],
    ids: Vec<(Id, bool)>,
}

/// The engine and the number of its commit.
type Id = (usize, u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Request {
    id: Id,
    kind: Kind,
    /// Whether its engine still waits on this connection.
    is_connected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Commit { expected: u8 },
    Resolve,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Engine {
    /// It has read the row, and is about to commit; with the number of the attempt.
    Ready {
        tries: u8,
    },
    Commits {
        tries: u8,
    },
    /// It does not know the outcome of its commit.
    Unsure {
        tries: u8,
    },
    Resolves {
        tries: u8,
    },
    /// It reported success to its caller.
    Succeeded,
    /// It reported to its caller that nothing was written.
    Refused,
    /// It crashed, or exited without knowing.
    Gone,
}

/// A response of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Applied,
    Conflict,
    Forbidden,
}

impl Protocol for UnknownCommits {
    type State = State;

    fn begin(&self) -> State {
        State {
            engines: [Engine::Ready { tries: 0 }; ENGINES],
            travelling: Vec::new(),
            executing: Vec::new(),
            store: Store { version: 0, marks: [0; ENGINES], ids: Vec::new() },
            breaks: self.breaks,
            failovers: self.failovers,
            crashes: self.crashes,
        }
    }

    fn steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        for number in 0..ENGINES {
            self.engine_steps(state, number, steps);
        }
        for at in 0..state.travelling.len() {
            let mut next = state.clone();
            let request = next.travelling.remove(at);
            next.executing.push(request);
            steps.push((("a request reaches the store", request.id.0), next));
        }
        for at in 0..state.executing.len() {
            self.confirm(state, at, steps);
        }
        if state.failovers > 0 && !state.executing.is_empty() {
            fail_over(state, self.resolution, steps);
        }
    }

    fn check(&self, state: &State, last: bool) -> Result<(), String> {
        for (number, engine) in state.engines.iter().enumerate() {
            let marks = state.store.marks[number];
            if marks > 1 {
                return Err(format!("the mark of engine {number} was added {marks} times"));
            }
            match engine {
                Engine::Succeeded if marks == 0 => {
                    return Err(format!("engine {number} reported success, and its mark is not there"));
                }
                Engine::Refused if marks > 0 => {
                    return Err(format!("engine {number} reported that nothing was written, and its mark is there"));
                }
                Engine::Succeeded | Engine::Refused | Engine::Gone => {}
                waiting if last => return Err(format!("engine {number} waits for ever: {waiting:?}")),
                _ => {}
            }
        }
        Ok(())
    }
}

impl UnknownCommits {
    fn engine_steps(&self, state: &State, number: usize, steps: &mut Vec<(Step, State)>) {
        let mut step = |text: &'static str, engine: Engine, request: Option<Request>| {
            let mut next = state.clone();
            next.engines[number] = engine;
            next.travelling.extend(request);
            next.travelling.sort_unstable();
            steps.push(((text, number), next));
        };
        let send = |tries: u8, kind: Kind| Some(Request { id: (number, tries), kind, is_connected: true });
        match state.engines[number] {
            Engine::Ready { tries } => {
                let commit = Kind::Commit { expected: state.store.version };
                step("commits", Engine::Commits { tries }, send(tries, commit));
            }
            Engine::Unsure { tries } => match self.resolution {
                Resolution::Forbid | Resolution::ForbidUnchecked => {
                    step("resolves its commit", Engine::Resolves { tries }, send(tries, Kind::Resolve));
                }
                Resolution::Read => {
                    let is_there = state.store.ids.contains(&((number, tries), true));
                    let engine = if is_there { Engine::Succeeded } else { again(tries) };
                    step("reads whether its commit is there", engine, None);
                }
                Resolution::None => step("repeats its commit", again(tries), None),
            },
            Engine::Commits { .. } | Engine::Resolves { .. } | Engine::Succeeded | Engine::Refused | Engine::Gone => {}
        }
        let (Engine::Commits { tries } | Engine::Resolves { tries }) = state.engines[number] else { return };
        if state.breaks > 0 {
            let mut next = disconnected(state, number);
            next.breaks -= 1;
            next.engines[number] = Engine::Unsure { tries };
            // What was in flight may be lost with the connection, or arrive nevertheless.
            let mut lost = next.clone();
            lost.travelling.retain(|request| request.id.0 != number);
            steps.push((("loses its connection", number), next));
            steps.push((("loses its connection and what it sent", number), lost));
        }
        if state.crashes > 0 {
            let mut next = disconnected(state, number);
            next.crashes -= 1;
            next.engines[number] = Engine::Gone;
            steps.push((("crashes", number), next));
        }
    }

    /// The standby confirms what the store executes: it becomes visible, and its response is sent.
    fn confirm(&self, state: &State, at: usize, steps: &mut Vec<(Step, State)>) {
        let mut next = state.clone();
        let request = next.executing.remove(at);
        // A second write of one id waits for the first.
        if state.executing[..at].iter().any(|other| other.id == request.id) {
            return;
        }
        let answer = next.store.execute(request, self.resolution);
        if request.is_connected {
            let engine = &mut next.engines[request.id.0];
            *engine = match (*engine, answer) {
                (Engine::Commits { .. } | Engine::Resolves { .. }, Answer::Applied) => Engine::Succeeded,
                // The row has changed: it is read again.
                (Engine::Commits { tries } | Engine::Resolves { tries }, _) => again(tries),
                (other, _) => other,
            };
        }
        let text = match answer {
            Answer::Applied => "its request is confirmed as applied",
            Answer::Conflict => "its request is confirmed as a conflict",
            Answer::Forbidden => "its request is confirmed as forbidden",
        };
        steps.push(((text, request.id.0), next));
    }
}

impl Store {
    fn execute(&mut self, request: Request, resolution: Resolution) -> Answer {
        let known = self.ids.iter().find(|(id, _)| *id == request.id).map(|(_, is_applied)| *is_applied);
        let is_unchecked = resolution == Resolution::ForbidUnchecked;
        match request.kind {
            Kind::Commit { expected } if (known.is_none() || is_unchecked) && expected == self.version => {
                self.version += 1;
                self.marks[request.id.0] += 1;
                self.ids.push((request.id, true));
                self.ids.sort_unstable();
                Answer::Applied
            }
            Kind::Commit { .. } => Answer::Conflict,
            Kind::Resolve if known == Some(true) => Answer::Applied,
            Kind::Resolve => {
                if known.is_none() {
                    self.ids.push((request.id, false));
                    self.ids.sort_unstable();
                }
                Answer::Forbidden
            }
        }
    }
}

/// Returns the state of an engine after nothing was written: it retries, or reports that.
fn again(tries: u8) -> Engine {
    if tries + 1 < TRIES { Engine::Ready { tries: tries + 1 } } else { Engine::Refused }
}

/// Returns the state in which an engine gets no more responses to what it has sent.
fn disconnected(state: &State, number: usize) -> State {
    let mut next = state.clone();
    let own = next.travelling.iter_mut().chain(&mut next.executing).filter(|request| request.id.0 == number);
    own.for_each(|request| request.is_connected = false);
    next.travelling.sort_unstable();
    next
}

/// The standby takes over, and every connection breaks. Executed commits without a confirmation are dropped, from some commit on.
fn fail_over(state: &State, resolution: Resolution, steps: &mut Vec<(Step, State)>) {
    for kept in 0..=state.executing.len() {
        let mut next = state.clone();
        next.failovers -= 1;
        let executed: Vec<Request> = next.executing.drain(..).take(kept).collect();
        for request in executed {
            next.store.execute(request, resolution);
        }
        for number in 0..ENGINES {
            next = disconnected(&next, number);
            if let Engine::Commits { tries } | Engine::Resolves { tries } = next.engines[number] {
                next.engines[number] = Engine::Unsure { tries };
            }
        }
        steps.push((("the store fails over, and keeps so many commits", kept), next));
    }
}

fn explored(resolution: Resolution) -> Explored {
    explore(&UnknownCommits { resolution, breaks: 2, failovers: 1, crashes: 1 })
}

#[test]
#[allow(clippy::print_stdout, reason = "the number of states is the result")]
fn a_commit_is_applied_once_and_its_engine_is_right_about_it() {
    let explored = explored(Resolution::Forbid);
    println!("unknown commits: {} states, {} steps, {} ends", explored.states, explored.steps, explored.ends);
    assert_eq!(explored.wrong, None);
    assert!(explored.states > 10_000, "{} states", explored.states);
}

#[test]
fn every_weaker_resolution_is_wrong() {
    for resolution in [Resolution::None, Resolution::Read, Resolution::ForbidUnchecked] {
        let (way, why) = explored(resolution).wrong.unwrap_or_else(|| panic!("{resolution:?} is right"));
        let is_about_marks = why.contains("was added 2 times") || why.contains("its mark is there");
        assert!(is_about_marks, "{resolution:?}: {why}: {way:#?}");
    }
}
