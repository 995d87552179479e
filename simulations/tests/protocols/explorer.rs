//! Visits every reachable state of a protocol, breadth first, and checks each.

use std::{collections::VecDeque, hash::Hash};

use simulations::index::Index;

/// What happens in a step, and to which participant.
pub(crate) type Step = (&'static str, usize);

/// A protocol with few participants, few requests and few failures.
pub(crate) trait Protocol {
    /// The state.
    type State: Clone + Eq + Hash;

    /// Returns the initial state.
    fn begin(&self) -> Self::State;

    /// Adds every possible next step, with the state that it leads to.
    fn steps(&self, state: &Self::State, steps: &mut Vec<(Step, Self::State)>);

    /// Checks a state; one without a next step is `last`.
    fn check(&self, state: &Self::State, last: bool) -> Result<(), String>;
}

/// The result of an exploration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Explored {
    /// Distinct states.
    pub(crate) states: usize,
    /// Steps from one of them to another.
    pub(crate) steps: usize,
    /// States without a next step.
    pub(crate) ends: usize,
    /// The shortest way to a state that is wrong, and what is wrong with it.
    pub(crate) wrong: Option<(Vec<Step>, String)>,
}

/// Visits the states of a protocol, all of them unless one is wrong.
pub(crate) fn explore<P: Protocol>(protocol: &P) -> Explored {
    // Each state with the step that led to it, and where from.
    let mut known: Index<P::State, (usize, Step)> = Index::default();
    known.insert(protocol.begin(), (0, ("begins", 0)));
    let (mut explored, mut next, mut steps) = (Explored::default(), VecDeque::from([0]), Vec::new());
    while let Some(at) = next.pop_front() {
        let state = known.get_index(at).expect("it is known").0.clone();
        protocol.steps(&state, &mut steps);
        explored.ends += usize::from(steps.is_empty());
        if let Err(why) = protocol.check(&state, steps.is_empty()) {
            explored.wrong = Some((way_to(&known, at), why));
            break;
        }
        for (step, to) in steps.drain(..) {
            explored.steps += 1;
            let place = known.len();
            known.entry(to).or_insert_with(|| {
                next.push_back(place);
                (at, step)
            });
        }
    }
    explored.states = known.len();
    explored
}

/// Returns the steps that lead to a state.
fn way_to<S>(known: &Index<S, (usize, Step)>, mut at: usize) -> Vec<Step> {
    let mut way = Vec::new();
    while at != 0 {
        let (_, (from, step)) = known.get_index(at).expect("it is known");
        way.push(*step);
        at = *from;
    }
    way.reverse();
    way
}
