//! One attempt to commit a group: read, decide, write.

use std::collections::BTreeSet;

use crate::{
    batch::{CommitError, CommitId, Write},
    postgres::{
        commit::{
            business, claims, duties, merchants,
            outbox::{self, DeliveryChange},
            payments,
            prepared::{Prepared, Step},
            sums,
            wanted::Wanted,
            working::{Checked, Working},
        },
        connection::Connection,
        fault::Fault,
        statement::Statement,
        table::Table,
        tables::business::AuditRow,
        values::{Cell, Columns, Id, Kind},
    },
    record::vault::Vault,
};

/// The outcome of each batch of a group, if its statement is committed.
pub(crate) type Outcomes = Vec<Result<(), CommitError>>;

/// The outcomes of a group and the statement that writes it.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) outcomes: Outcomes,
    /// None if nothing is written.
    pub(crate) statement: Option<Statement>,
}

/// Reads what a group needs and decides its batches one after the other.
///
/// # Errors
/// See [`Fault`]; [`Fault::Outdated`] where the group must be read carefully, [`Fault::Damaged`] where a row that one of its
/// batches needs cannot be read.
pub(crate) async fn decide(
    connection: &Connection,
    batches: &[Prepared],
    commit: Id,
    context: &Context<'_>,
) -> Result<Decided, Fault> {
    let mut working = Working::default();
    working.is_careful = context.is_careful;
    let wanted = Wanted::of(batches, context.is_careful, &mut working);
    Box::pin(wanted.load(connection, &mut working)).await?;
    let outcomes =
        batches.iter().map(|batch| apply(&mut working, batch, context)).collect::<Result<Outcomes, Fault>>()?;
    let statement = (!working.is_unchanged()).then(|| write(&working, commit, context.slot));
    Ok(Decided { outcomes, statement })
}

/// The context of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'c> {
    pub(crate) vault: &'c Vault,
    /// The rows of sums that this engine adds to.
    pub(crate) slot: i16,
    /// Whether rows that should be absent are loaded.
    pub(crate) is_careful: bool,
}

/// Applies a batch, or returns the reason for its rejection and undoes it.
fn apply(working: &mut Working, batch: &Prepared, context: &Context<'_>) -> Result<Result<(), CommitError>, Fault> {
    let is_known = |id: &u128| working.known_commits.contains(id) || working.applied.contains(id);
    if let Some(id) = batch.id.filter(is_known) {
        return Ok(Err(CommitError::Conflict { what: format!("commit {}", CommitId::from_bits(id)) }));
    }
    for step in &batch.steps {
        let checked = match step {
            Step::Payment(step) => payments::payment(working, step),
            Step::Other(write) => self::step(working, write, context.vault),
        };
        match checked {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) => {
                working.refuse();
                // Rows that were assumed to be absent may be the reason that an earlier step gives.
                let is_final = context.is_careful || refusal_is_final(batch);
                return if is_final { Ok(Err(refusal)) } else { Err(Fault::Outdated(refusal.to_string())) };
            }
            Err(fault) => {
                working.refuse();
                return Err(fault);
            }
        }
    }
    working.accept();
    working.applied.extend(batch.id);
    Ok(Ok(()))
}

/// Returns whether a batch inserts nothing that was assumed to be absent.
fn refusal_is_final(batch: &Prepared) -> bool {
    batch.id.is_none() && batch.steps.iter().all(|step| !step.is_insertion())
}

fn step(working: &mut Working, write: &Write, vault: &Vault) -> Checked {
    match write {
        Write::Merchant { merchant, expected } => merchants::merchant(working, merchant, *expected, vault),
        Write::Payment { .. } => unreachable!("payments have a step of their own"),
        Write::Transfer { payment, merchant, credit } => payments::transfer(working, *payment, *merchant, credit),
        Write::Remember { remembered, most } => business::remember(working, remembered, *most),
        Write::Forget { made_before } => done(|| business::forget(working, *made_before)),
        Write::Event(event) => outbox::insert_event(working, event),
        Write::Claim(claim) => claims::claim(working, claim),
        Write::ClaimOutcome { tx_id, expected, outcome } => claims::outcome(working, *tx_id, expected, outcome),
        Write::Attempt { delivery, attempt } => {
            outbox::change_delivery(working, delivery, DeliveryChange::Attempt(attempt))
        }
        Write::Undeliverable(delivery) => outbox::change_delivery(working, delivery, DeliveryChange::GiveUp),
        Write::Hold { delivery, reason } => outbox::hold(working, delivery, *reason),
        Write::Redeliver(delivery) => outbox::change_delivery(working, delivery, DeliveryChange::Redeliver),
        Write::Replay { delivery, at } => outbox::change_delivery(working, delivery, DeliveryChange::Replay(*at)),
        Write::EnableEndpoint { endpoint, .. } => done(|| outbox::enable(working, *endpoint)),
        Write::Unwatch(account) => done(|| merchants::unwatch(working, *account)),
        Write::Prune { happened_before } => done(|| outbox::prune(working, *happened_before)),
        Write::ForgetClaims(tx_ids) => claims::forget(working, tx_ids),
        Write::Cursor { cursor, expected } => business::cursor(working, cursor, expected.as_ref()),
        Write::Unmatched(unmatched) => done(|| claims::insert_unmatched(working, unmatched)),
        Write::Handle { account, place, handling } => claims::handle(working, *account, *place, handling),
        Write::Invoice(invoicing) => business::invoice(working, invoicing),
        Write::FeeTiers { schedule, expected } => business::tiers(working, schedule, *expected),
        Write::ReceiptKeys { keys, expected } => business::receipt_keys(working, keys, *expected, vault),
        Write::Audit(entry) => done(|| business::audit(working, entry)),
        Write::CheckCompliance(check) => business::comply(working, check),
        Write::Admit { payment, merchant, quota } => business::admit(working, *payment, *merchant, *quota),
        Write::Compliance { merchant, change } => business::change_compliance(working, *merchant, change),
        Write::Reconciliation { day, expected } => business::reconcile(working, day, *expected),
        Write::Rate { rate, expected } => business::rate(working, *rate, *expected),
        Write::BeginEpoch(epoch) => business::begin_epoch(working, *epoch),
        Write::Note { name, value, expected } => business::note(working, name, value, expected.as_deref()),
        Write::Lease { engine, is_new, duration, .. } => duties::lease(working, *engine, *is_new, *duration),
        Write::EndLease { engine, by, .. } => duties::end_lease(working, *engine, *by),
        Write::Duty { duty, engine, is_taken, expected } => duties::take(working, *duty, *engine, *is_taken, *expected),
        Write::OnDuty { duty, term } => duties::on_duty(working, *duty, *term),
    }
}

/// Applies a step that is never rejected.
fn done(step: impl FnOnce()) -> Checked {
    step();
    Ok(Ok(()))
}

/// Returns the statement that writes what is different.
fn write(working: &Working, commit: Id, slot: i16) -> Statement {
    let mut statement = Statement::default();
    let created = sums::created(working);
    let mut commits = Columns::of([Kind::Uuid]);
    if !working.applied.is_empty() {
        let mut applied = Columns::of([Kind::Uuid]);
        working.applied.iter().for_each(|id| applied.push([Cell::from(*id)]));
        statement.add(format_args!("commits_named"), INSERT_COMMITS, applied, None);
    }
    commits.push([Cell::from(commit.0)]);
    if created.is_empty() {
        statement.add(format_args!("commits_new"), INSERT_COMMITS, commits, None);
    } else {
        let mut payments = Columns::of([Kind::Uuid]);
        created.into_iter().for_each(|payment| payments.push([Cell::from(payment)]));
        commits.lists.extend(payments.lists);
        statement.add_with(format_args!("commits_new"), COMMIT, commits);
    }
    working.write_rows(&mut statement);
    sums::write_usage(working, slot, &mut statement);
    sums::write_days(working, slot, &mut statement);
    outbox::write_heads(working, &mut statement);
    write_audit(working, &mut statement);
    touch_unindexed(working, &mut statement);
    statement
}

/// Writes the rows of commits whose payments lose words before they are indexed, so that a concurrent indexer fails.
fn touch_unindexed(working: &Working, statement: &mut Statement) {
    let losing = working.words.changes().filter(|(_, before, now)| before.is_some() && now.is_none());
    let commits: BTreeSet<u128> = losing.filter_map(|(key, ..)| working.unindexed.get(&key.2).copied()).collect();
    let mut touched = Columns::of([Kind::Uuid]);
    commits.into_iter().for_each(|commit| touched.push([Cell::from(commit)]));
    if touched.rows > 0 {
        let expected = touched.rows;
        statement.add(format_args!("commits_touched"), TOUCH, touched, Some(expected));
    }
}

const INSERT_COMMITS: &str = "INSERT INTO commits (id) SELECT * FROM {unnest}";

const COMMIT: &str = "INSERT INTO commits (id, unindexed_payments) SELECT ({0})[1], {1}";

const TOUCH: &str = "UPDATE commits AS t SET committed_at = t.committed_at FROM {unnest} AS u (id) \
     WHERE t.id = u.id AND t.unindexed_payments IS NOT NULL";

fn write_audit(working: &Working, statement: &mut Statement) {
    let mut rows = Columns::of(AuditRow::VALUES.iter().map(|(_, kind)| *kind));
    for entry in &working.audit {
        rows.push(AuditRow(entry.clone()).cells());
    }
    if rows.rows > 0 {
        statement.add(format_args!("audit_log_new"), AUDIT, rows, None);
    }
}

const AUDIT: &str = "INSERT INTO audit_log (merchant_id, actor_id, action, happened_at, record) SELECT * FROM {unnest}";
