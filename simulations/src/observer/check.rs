//! What an invariant is: a name, a rule, and the check of an observation.

use super::*;

/// The result of an invariant: it holds, or what was observed instead.
pub type Verdict = Result<(), String>;
/// The same for an invariant over all sessions.
pub type FinalVerdict = Result<(), (String, Option<PaymentId>)>;

/// An invariant.
pub struct Invariant {
    /// Its name in reports and scenario files.
    pub name: &'static str,
    /// Where it comes from: S and L as in the fault model, G as in the gateway's list.
    pub code: &'static str,
    /// The rule as a sentence.
    pub description: &'static str,
    /// When and how it is checked.
    pub check: Check,
}

/// When an invariant is checked, and by which function.
pub enum Check {
    /// When a payment's snapshot became durable.
    Payment(fn(&PaymentWrite<'_>) -> Verdict),
    /// When the scanner's cursor became durable.
    Cursor(fn(&CursorWrite<'_>) -> Verdict),
    /// When the reconciliation of a day is stored.
    Reconciliation(fn(&ReconciliationWrite<'_>) -> Verdict),
    /// When a receiver gets a webhook.
    Webhook(fn(&ReceivedWebhook<'_>) -> Verdict),
    /// When an attempt is recorded.
    Attempt(fn(&Attempted<'_>) -> Verdict),
    /// When the engine broadcasts a transaction to a node.
    Broadcast(fn(&Broadcast<'_>) -> Verdict),
    /// When a response reaches its caller.
    Response(fn(&Observer, &Response<'_>) -> Verdict),
    /// When faults have ended and everything should have recovered.
    End(fn(&End<'_>) -> FinalVerdict),
    /// By the simulation itself, at starts and during the run.
    Simulation,
}
