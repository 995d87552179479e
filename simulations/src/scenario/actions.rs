//! The actions of scenario files: one table of who does what, which reads a step and lists the keywords in errors.

mod clients;
mod faults;

use engine::money::Money;

use self::{clients::*, faults::*};
use super::{
    Names, Problem,
    file::RawStep,
    values::{amount, duration, one_of, required},
};
use crate::{options::Setup, script::Action};

/// Reads the fields of one action.
type ReadAction = fn(&mut StepReader<'_>) -> Result<Action, Problem>;

/// Who can act, and the actions of each. Errors list them in this order.
pub(super) static ACTORS: [(&str, &[(&str, ReadAction)]); 16] = [
    (
        "merchant",
        &[
            ("create", create),
            ("create elsewhere", create_elsewhere),
            ("pay", merchant_pays),
            ("cancel", merchant_cancels),
            ("assign", assign),
            ("resolve", act_on_session),
            ("refund", act_on_session),
            ("redeliver", act_on_session),
            ("replay", act_on_session),
            ("call with another's ids", act_on_session),
            ("delete its metadata", act_on_session),
            ("delete its note", act_on_session),
            ("rotate secret", rotate_secret),
            ("be deactivated", change_merchant),
            ("be activated", change_merchant),
            ("use its other account", change_merchant),
            ("remove its endpoint", change_merchant),
            ("set its endpoint", change_merchant),
            ("refuse agents", change_merchant),
            ("roll its key", change_merchant),
            ("prove its account", ownership),
            ("prove its account too late", ownership),
            ("prove its account and replace its keys", ownership),
            ("have a third party prove its account", ownership),
            ("use another's account", ownership),
            ("be registered by a third party", ownership),
            ("change its account often", ownership),
            ("ignore unmatched money", ownership),
            ("send a test event", manage),
            ("change its subscription", manage),
            ("manage a second endpoint", manage),
            ("read its records", manage),
            ("watch its events", manage),
            ("create a key", manage),
            ("revoke a key", manage),
            ("roll a key with an overlap", manage),
            ("use all its keys", manage),
            ("prove its account by a signature", manage),
            ("cancel its account change", manage),
            ("have its invoice paid", manage),
            ("be cleared", manage),
            ("be given limits of its own", manage),
        ],
    ),
    ("other engine", &[("hand over", hand_over)]),
    ("payer", &[("pay", payer_pays), ("start a recurrent transfer", pay_again)]),
    ("operator", &[("set the fee tiers", manage), ("make invoices", manage)]),
    (
        "customer",
        &[("cancel", customer_cancels), ("report a wallet", act_on_session), ("watch its payment", act_on_session)],
    ),
    (
        "agent",
        &[
            ("settle", settle),
            ("pay elsewhere", facilitate),
            ("pay a seller", purchase),
            ("pay with a wallet", pay_with_wallet),
        ],
    ),
    (
        "node",
        &[
            ("be unreachable", node_down),
            ("lag", node_lags),
            ("stall", node_stalls),
            ("respond late", node_is_slow),
            ("fork alone", node_forks),
            ("withhold transactions", node_keeps_transactions),
            ("lie", node_lies),
            ("serve another chain", node_serves_other_chain),
            ("lack APIs", node_lacks_apis),
            ("limit the rate", node_limits_rate),
            ("lack the price of HBD", node_has_no_price),
        ],
    ),
    (
        "ledger",
        &[
            ("fork", fork),
            ("hold finality", hold_finality),
            ("hold transactions", hold_transactions),
            ("hold blocks", hold_blocks),
            ("drop pending transactions", forget_mempool),
        ],
    ),
    (
        "disk",
        &[
            ("power-cut", power_cut),
            ("fail", disk_error),
            ("fill up", disk_full),
            ("be slow", disk_slow),
            ("damage a row", damage_row),
            ("damage the log", damage_log),
            ("fail to read", read_error),
        ],
    ),
    (
        "process",
        &[
            ("be killed", kill),
            ("restart", restart),
            ("restart with other settings", restart_with_settings),
            ("restart with another master key", rotate_master_key),
            ("pause", pause),
            ("be backed up", back_up),
            ("be restored", restore),
            ("lose the store", lose_store),
            ("lose a node", lose_node),
        ],
    ),
    ("store", &[("fail over", fail_over), ("break a commit", break_commit)]),
    ("actor", &[("panic", panic)]),
    ("market", &[("price HBD", price_hbd)]),
    ("receiver", &[("fail", receiver_fails)]),
    ("clock", &[("step", clock_steps)]),
    (
        "client",
        &[
            ("lose a response", lose_reply),
            ("read", call_facade),
            ("list", call_facade),
            ("open the checkout", call_facade),
            ("repeat its request", call_facade),
            ("reuse its idempotency key", call_facade),
            ("send invalid requests", call_facade),
            ("request another's data", call_facade),
            ("forge forms", call_facade),
            ("use the dashboard", call_facade),
            ("exceed the rate limit", call_facade),
            ("call by gRPC", call_facade),
            ("watch", call_facade),
        ],
    ),
];

/// Reads the action of a step.
pub(super) fn read_action(raw: &RawStep, names: &mut Names, setup: &Setup) -> Result<Action, Problem> {
    let (who, number) = actor_of(raw)?;
    let Some((_, actions)) = ACTORS.iter().find(|(known, _)| *known == who) else {
        return Err(one_of("who", who, ACTORS.iter().map(|(known, _)| *known)));
    };
    let Some((_, read)) = actions.iter().find(|(known, _)| *known == raw.does) else {
        return Err(one_of("does", &raw.does, actions.iter().map(|(known, _)| *known)));
    };
    read(&mut StepReader { raw, number, names, setup })
}

/// Returns the keyword and the number of `who`; 0 without a number.
fn actor_of(raw: &RawStep) -> Result<(&str, usize), Problem> {
    match raw.who.split_once(' ') {
        Some(("other", "engine")) => Ok(("other engine", 0)),
        Some((who, digits)) => {
            let number = digits.parse().map_err(|_| format!("`who` {:?} ends in no number", raw.who))?;
            Ok((who, number))
        }
        None => Ok((&raw.who, 0)),
    }
}

/// A step whose action is read, with what its fields refer to.
pub(super) struct StepReader<'a> {
    raw: &'a RawStep,
    /// The number of `who`.
    number: usize,
    names: &'a mut Names,
    setup: &'a Setup,
}

impl StepReader<'_> {
    /// Returns the number of `who`, which must be below a count.
    fn number_below(&self, count: usize) -> Result<usize, Problem> {
        if self.number < count {
            Ok(self.number)
        } else {
            Err(format!("`who` {:?}: there are {count}, numbered from 0", self.raw.who))
        }
    }

    fn merchant(&self) -> Result<usize, Problem> {
        self.number_below(self.setup.merchants)
    }

    fn money(&self) -> Result<Money, Problem> {
        amount("amount", required("amount", &self.raw.amount)?)
    }

    fn for_ms(&self) -> Result<u64, Problem> {
        duration("for", required("for", &self.raw.r#for)?)
    }

    fn by_ms(&self) -> Result<u64, Problem> {
        duration("by", required("by", &self.raw.by)?)
    }

    /// Returns the session that the step names.
    fn session(&self) -> Result<u32, Problem> {
        self.names.find_at(required("session", &self.raw.session)?, duration("at", &self.raw.at)?)
    }

    /// Returns the number of the session that the step creates.
    fn new_session(&mut self) -> Result<u32, Problem> {
        Ok(self.names.create(required("session", &self.raw.session)?, duration("at", &self.raw.at)?))
    }
}
