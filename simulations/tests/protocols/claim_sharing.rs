//! One payment settled through two engines: an engine that broadcasts a transaction of another engine's claim first marks the claim
//! as shared, and a refusal is recorded only on a claim that is not.
//!
//! An engine broadcasts what it has claimed, or what it has marked as shared. A node refuses the transaction until its payer has the
//! money, or takes it; requests and their responses may be late or lost; engines crash, and adopt open claims when they start. A
//! refusal that no other broadcast can have overtaken is recorded by compare-and-set, and the payer gets a final refusal: the
//! transaction must never be in a block then.

use super::explorer::{Explored, Protocol, Step, explore};

/// Engines, and broadcasts of each.
const ENGINES: usize = 2;
const BROADCASTS: u8 = 2;

/// How engines share a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// The claim is marked before the second engine broadcasts; a refusal is recorded only on a claim that is not marked.
    Marked,
    /// The claim is not marked.
    Unmarked,
    /// The claim is marked after the broadcast.
    MarkedAfterwards,
    /// The claim is marked, and a refusal is recorded nevertheless.
    Ignored,
}

struct ClaimSharing {
    sharing: Sharing,
    losses: u8,
    crashes: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    claim: Claim,
    engines: [Engine; ENGINES],
    /// Broadcasts of an engine that have not reached the node, and whether it still waits for a response.
    travelling: Vec<(usize, bool)>,
    transaction: Transaction,
    /// Whether the payer has the money: only then a node accepts the transaction.
    has_money: bool,
    /// Callers that got the original receipt of the payment.
    successes: u8,
    losses: u8,
    crashes: u8,
}

/// The durable claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Claim {
    None,
    Open,
    Shared,
    Settled { is_reported: bool },
    Refused,
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Transaction {
    Nowhere,
    Waiting,
    InBlock,
    /// It has expired by an irreversible block, and is in no block.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Engine {
    /// Whether a caller waits.
    has_caller: bool,
    /// Broadcasts that it may still make.
    broadcasts: u8,
    /// Whether a node may already have the transaction.
    possibly_sent: bool,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// It has started, or waits for a caller.
    Idle,
    /// It has found another engine's open claim.
    Found,
    /// It follows the claim.
    Follows,
    Broadcasts,
    /// The node refused the transaction.
    WasRefused,
    /// It is about to record the refusal on a claim that it has read.
    Refuses {
        read: Claim,
    },
    /// It knows that the claim is decided.
    Done,
}

impl Claim {
    const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Shared)
    }
}

impl Protocol for ClaimSharing {
    type State = State;

    fn begin(&self) -> State {
        let engine = Engine { has_caller: true, broadcasts: BROADCASTS, possibly_sent: false, at: At::Idle };
        State {
            claim: Claim::None,
            engines: [engine; ENGINES],
            travelling: Vec::new(),
            transaction: Transaction::Nowhere,
            has_money: false,
            successes: 0,
            losses: self.losses,
            crashes: self.crashes,
        }
    }

    fn steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        for number in 0..ENGINES {
            self.engine_steps(state, number, steps);
            failures(state, number, steps);
        }
        for at in 0..state.travelling.len() {
            arrive(state, at, steps);
        }
        chain_steps(state, steps);
    }

    fn check(&self, state: &State, last: bool) -> Result<(), String> {
        let is_there = state.transaction == Transaction::InBlock;
        if is_there && matches!(state.claim, Claim::Refused | Claim::Expired) {
            return Err(format!("the transaction is in a block and its claim is {:?}", state.claim));
        }
        if state.successes > 1 {
            return Err(format!("{} callers made one payment", state.successes));
        }
        let is_out = is_there || state.transaction == Transaction::Waiting;
        if is_out && state.claim == Claim::None {
            return Err("a transaction is broadcast that nobody has claimed".to_owned());
        }
        if last && state.claim.is_open() {
            return Err(format!("the claim stays {:?}", state.claim));
        }
        Ok(())
    }
}

impl ClaimSharing {
    fn engine_steps(&self, state: &State, number: usize, steps: &mut Vec<(Step, State)>) {
        let engine = state.engines[number];
        let mut step = |text: &'static str, change: &dyn Fn(&mut State, usize)| {
            let mut next = state.clone();
            change(&mut next, number);
            steps.push(((text, number), next));
        };
        let is_over = state.transaction == Transaction::Over;
        match engine.at {
            At::Idle => match state.claim {
                Claim::None if engine.has_caller => step("claims", &|next, at| {
                    next.claim = Claim::Open;
                    next.engines[at].at = At::Follows;
                }),
                Claim::None => {}
                claim if claim.is_open() => step("finds an open claim", &|next, at| next.engines[at].at = At::Found),
                _ => step("reads a decided claim", &respond),
            },
            At::Found => step("adopts the claim", &|next, at| {
                if self.sharing != Sharing::Unmarked && self.sharing != Sharing::MarkedAfterwards {
                    if !next.claim.is_open() {
                        return respond(next, at);
                    }
                    next.claim = Claim::Shared;
                }
                next.engines[at].at = At::Follows;
                next.engines[at].possibly_sent = true;
            }),
            At::Follows if !state.claim.is_open() => step("reads the outcome", &respond),
            At::Follows if is_over => step("records the expiration", &|next, at| {
                next.claim = Claim::Expired;
                respond(next, at);
            }),
            At::Follows if engine.broadcasts > 0 => step("broadcasts", &|next, at| {
                let is_adopted = engine.possibly_sent && self.sharing == Sharing::MarkedAfterwards;
                if is_adopted && engine.broadcasts < BROADCASTS && next.claim == Claim::Open {
                    next.claim = Claim::Shared;
                }
                next.engines[at].broadcasts -= 1;
                next.engines[at].at = At::Broadcasts;
                next.travelling.push((at, true));
                next.travelling.sort_unstable();
            }),
            At::Follows | At::Broadcasts => {}
            At::WasRefused if engine.possibly_sent => {
                step("knows that a refusal proves nothing", &|next, at| next.engines[at].at = At::Follows);
            }
            // The nodes are queried whether one has it nevertheless.
            At::WasRefused if matches!(state.transaction, Transaction::Waiting | Transaction::InBlock) => {
                step("finds the transaction at a node", &|next, at| next.engines[at].at = At::Follows);
            }
            At::WasRefused => {
                step("reads the claim", &|next, at| next.engines[at].at = At::Refuses { read: next.claim });
            }
            At::Refuses { read } => step("records the refusal", &|next, at| {
                let is_allowed = read == Claim::Open || self.sharing == Sharing::Ignored && read == Claim::Shared;
                if is_allowed && next.claim == read {
                    next.claim = Claim::Refused;
                    return respond(next, at);
                }
                next.engines[at].possibly_sent = true;
                next.engines[at].at = At::Follows;
            }),
            At::Done => {}
        }
    }
}

/// Responds to a caller with the outcome of the payment: a success once, by compare-and-set.
fn respond(next: &mut State, number: usize) {
    if std::mem::take(&mut next.engines[number].has_caller)
        && let Claim::Settled { is_reported } = &mut next.claim
        && !std::mem::replace(is_reported, true)
    {
        next.successes += 1;
    }
    next.engines[number].at = At::Done;
}

/// A caller's engine crashes and restarts, or gets no response to its broadcast, which may still arrive.
fn failures(state: &State, number: usize, steps: &mut Vec<(Step, State)>) {
    let disconnect = |next: &mut State| {
        next.travelling.iter_mut().filter(|(of, _)| *of == number).for_each(|(_, waits)| *waits = false);
        next.travelling.sort_unstable();
    };
    if state.crashes > 0 {
        let mut next = state.clone();
        next.crashes -= 1;
        disconnect(&mut next);
        let broadcasts = next.engines[number].broadcasts.max(1);
        next.engines[number] = Engine { has_caller: false, broadcasts, possibly_sent: false, at: At::Idle };
        steps.push((("crashes and starts again", number), next));
    }
    if state.losses > 0 && state.engines[number].at == At::Broadcasts {
        let mut next = state.clone();
        next.losses -= 1;
        disconnect(&mut next);
        next.engines[number].at = At::Follows;
        next.engines[number].possibly_sent = true;
        let mut lost = next.clone();
        lost.travelling.retain(|(of, _)| *of != number);
        steps.push((("gets no answer", number), next));
        steps.push((("loses its broadcast", number), lost));
    }
}

/// A broadcast reaches the node.
fn arrive(state: &State, at: usize, steps: &mut Vec<(Step, State)>) {
    let mut next = state.clone();
    let (number, waits) = next.travelling.remove(at);
    let is_taken = match next.transaction {
        Transaction::Nowhere if next.has_money => {
            next.transaction = Transaction::Waiting;
            true
        }
        // A duplicate is accepted.
        Transaction::Waiting | Transaction::InBlock => true,
        Transaction::Nowhere | Transaction::Over => false,
    };
    if waits {
        next.engines[number].possibly_sent |= is_taken;
        next.engines[number].at = if is_taken { At::Follows } else { At::WasRefused };
    }
    let text = if is_taken { "has its broadcast taken" } else { "has its broadcast refused" };
    steps.push(((text, number), next));
}

/// Steps of the ledger, and of the engine that reads it.
fn chain_steps(state: &State, steps: &mut Vec<(Step, State)>) {
    let mut step = |text: &'static str, change: &dyn Fn(&mut State)| {
        let mut next = state.clone();
        change(&mut next);
        steps.push(((text, 0), next));
    };
    if !state.has_money {
        step("the payer gets money", &|next| next.has_money = true);
    }
    match state.transaction {
        Transaction::Waiting => {
            step("a block includes the transaction", &|next| next.transaction = Transaction::InBlock);
        }
        Transaction::Nowhere => step("the transaction expires", &|next| next.transaction = Transaction::Over),
        Transaction::InBlock if state.claim.is_open() => {
            step("the scanner settles the claim", &|next| next.claim = Claim::Settled { is_reported: false });
        }
        Transaction::InBlock | Transaction::Over => {}
    }
}

fn explored(sharing: Sharing) -> Explored {
    explore(&ClaimSharing { sharing, losses: 2, crashes: 2 })
}

#[test]
#[allow(clippy::print_stdout, reason = "the number of states is the result")]
fn a_refused_payment_is_never_in_a_block_and_a_settled_one_succeeds_once() {
    let explored = explored(Sharing::Marked);
    println!("claim sharing: {} states, {} steps, {} ends", explored.states, explored.steps, explored.ends);
    assert_eq!(explored.wrong, None);
    assert!(explored.states > 1_000, "{} states", explored.states);
}

#[test]
fn every_weaker_way_of_sharing_is_wrong() {
    for sharing in [Sharing::Unmarked, Sharing::MarkedAfterwards, Sharing::Ignored] {
        let (way, why) = explored(sharing).wrong.unwrap_or_else(|| panic!("{sharing:?} is right"));
        assert!(why.contains("its claim is Refused"), "{sharing:?}: {why}: {way:#?}");
    }
}
