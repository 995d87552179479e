//! Scans the chain: every irreversible block once and in order, and the reversible ones above it for display.
//!
//! The cursor moves when every credit of a range is durable, so that a crash repeats blocks and never skips one;
//! repeated transfers are recognized by transaction id and operation index.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use engine::{
    ids::{MerchantId, PaymentId},
    ledger::{Block, BlockId, Head, TxId},
    mutant,
    payment::{Command, Credit, Finality, Rejection, Route},
    time::Timestamp,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, CommitError, Cursor, Duty, ReadError, Unmatched, UnmatchedReason, Write};

use crate::{
    chain::{
        ledger::Ledger,
        nodes::{blocks::Depth, pool::NodesError},
        notes,
    },
    context::Context,
    duties::Term,
    merchants::{handle::Merchants, ownership},
    payments::{
        handle::Payments,
        messages::{Order, OrderResult, RegistryMsg, SessionError},
        transfer_log::{self, OtherAccountLog},
    },
    scanner::{
        classification::{Classification, ClassifiedTransfer, Classifier, is_sale},
        failures::{Failures, PollError},
        unknown_operations,
    },
    timer::Timer,
    webhooks::{announcements::unmatched_events, notifier::Notifier},
};

/// Blocks per request when catching up.
const RANGE: u32 = 100;
/// Maximum number of reversible blocks read above the irreversible one.
const MAX_REVERSIBLE: u32 = 60;
/// Uneventful blocks after which the cursor is stored, so that a restart reads few blocks again: five minutes of
/// blocks, one request to a node.
const STORE_CURSOR_EVERY: u32 = 100;
/// Polls after which the list of watched accounts is read again: another engine may have added some.
const REFRESH_WATCHED_EVERY: u64 = 60;
/// Polls after which an engine that does not scan requests the head once, for its clock and its health.
const FOLLOWER_POLLS: u64 = 10;
/// Transfers of one payment read at once at start.
const ROWS_PAGE: usize = 500;

#[derive(Debug)]
pub(crate) enum Msg {
    /// Poll the chain.
    Poll,
}

pub(crate) struct Scanner {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) payments: Payments,
    pub(crate) merchants: Merchants,
    pub(crate) notifier: Arc<Notifier>,
    /// The counter of log lines about unrelated accounts; it survives a restart of the scanner.
    pub(crate) other_accounts: Arc<OtherAccountLog>,
}

pub(crate) struct ScanState {
    /// The term in which this engine scans the ledger; `None` while another engine does.
    term: Option<Term>,
    /// The last scanned irreversible block; its credits are durable.
    read: Option<Cursor>,
    /// The stored cursor; it may lag behind by uneventful blocks.
    stored: Option<Cursor>,
    /// The reversible blocks above, oldest first.
    recent: VecDeque<Recent>,
    /// Sightings without a block in `recent`: those of an earlier scanner, and those after an error.
    unconfirmed: BTreeSet<Sighting>,
    polls: u64,
    was_reachable: bool,
    failures: Failures,
    next_poll: Option<Timer>,
}

struct Recent {
    id: BlockId,
    sighted: Vec<Sighting>,
}

/// A transfer of a reversible block that was reported to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sighting {
    block_num: u32,
    payment: PaymentId,
    tx_id: TxId,
    op_in_tx: u32,
}

impl Actor for Scanner {
    type Msg = Msg;
    type State = ScanState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<ScanState, ActorProcessingErr> {
        let mut state = ScanState {
            term: None,
            read: None,
            stored: None,
            recent: VecDeque::new(),
            unconfirmed: BTreeSet::new(),
            polls: 0,
            was_reachable: true,
            failures: Failures::default(),
            next_poll: None,
        };
        self.ledger.watch_all().await?;
        self.follow(&mut state).await?;
        if let Some(term) = self.context.duties.held(Duty::Scanner) {
            self.take_over(&mut state, term).await?;
        }
        myself.cast(Msg::Poll)?;
        Ok(state)
    }

    async fn handle(&self, myself: ActorRef<Msg>, _poll: Msg, state: &mut ScanState) -> Result<(), ActorProcessingErr> {
        state.polls += 1;
        self.context.watch_clock();
        let more = match self.poll_on_duty(state).await {
            Ok(more) => {
                state.failures.forget_obstacle();
                more
            }
            Err(error) => {
                self.record_failure(&error, state);
                false
            }
        };
        if more {
            myself.cast(Msg::Poll)?;
        } else {
            let times = if mutant!("scanner-polls-rarely") { 20 } else { 1 };
            let wait = self.context.settings.poll_interval * times;
            state.next_poll = Some(Timer::send(&myself, wait, Msg::Poll));
        }
        Ok(())
    }

    async fn post_stop(&self, _myself: ActorRef<Msg>, state: &mut ScanState) -> Result<(), ActorProcessingErr> {
        if state.read != state.stored
            && let (Some(read), Some(_)) = (state.read, state.term)
        {
            // Optional: otherwise the next start reads some empty blocks again.
            let _ = self.store_cursor(state, read, Batch::default()).await;
        }
        Ok(())
    }
}

impl Scanner {
    fn record_failure(&self, error: &PollError, state: &mut ScanState) {
        match error {
            PollError::Nodes(error) => {
                self.ledger.view.record_unreachable();
                self.context.duties.record_nodes(false);
                if state.was_reachable {
                    tracing::warn!(%error, "cannot read the ledger: {error}");
                }
                state.was_reachable = false;
            }
            PollError::Commit(error) => {
                self.context.commit_failed(error);
                tracing::warn!(%error, "scanner cannot store its progress: {error}");
                // Another engine may have moved the cursor or taken the duty: reload the stored state.
                (state.read, state.term) = (state.stored, None);
            }
            PollError::Read(error) => self.context.read_failed(error),
            PollError::Session(SessionError::Unavailable) => {}
            error => state.failures.stopped_by(error, &self.ledger.view, self.context.env.clock.monotonic()),
        }
    }

    fn record_reached(&self, state: &mut ScanState) {
        self.context.duties.record_nodes(true);
        if !std::mem::replace(&mut state.was_reachable, true) {
            tracing::info!("ledger reachable again");
        }
    }

    /// Continues if this engine scans the ledger; returns whether more is due at once.
    async fn poll_on_duty(&self, state: &mut ScanState) -> Result<bool, PollError> {
        if state.polls.is_multiple_of(REFRESH_WATCHED_EVERY) {
            self.ledger.watch_all().await?;
        }
        match self.context.duties.held(Duty::Scanner) {
            Some(term) => {
                if state.term != Some(term) {
                    self.take_over(state, term).await?;
                }
                let more = self.poll(state).await?;
                self.record_reached(state);
                Ok(more)
            }
            None => {
                state.term = None;
                self.follow(state).await?;
                // The engine that scans the ledger compares the chain.
                state.failures.chain_matches(&self.ledger.view);
                self.ledger.watch_added().await?;
                if !state.was_reachable || state.polls.is_multiple_of(FOLLOWER_POLLS) {
                    self.ledger.record_head(self.ledger.nodes.head().await?);
                    self.record_reached(state);
                }
                Ok(false)
            }
        }
    }

    /// Adopts the progress of the engine that scans the ledger.
    async fn follow(&self, state: &mut ScanState) -> Result<(), ReadError> {
        let stored = self.context.env.store.cursor().await?;
        if let Some(cursor) = stored {
            self.ledger.view.read_up_to(cursor.block_id.number(), cursor.time);
        }
        (state.read, state.stored) = (stored, stored);
        Ok(())
    }

    /// Starts scanning from the stored cursor.
    async fn take_over(&self, state: &mut ScanState, term: Term) -> Result<(), ReadError> {
        self.follow(state).await?;
        state.recent.clear();
        state.unconfirmed = self.load_reversible_sightings().await?;
        state.term = Some(term);
        Ok(())
    }

    /// Continues scanning; returns whether more is due at once.
    async fn poll(&self, state: &mut ScanState) -> Result<bool, PollError> {
        let head = self.ledger.nodes.head().await?;
        self.ledger.record_head(head);
        let Some(read) = state.read else {
            // A new chain without irreversible blocks.
            if head.irreversible_num == 0 {
                return Ok(false);
            }
            self.start_at(head, state).await?;
            return Ok(true);
        };
        let read_num = read.block_id.number();
        if head.irreversible_num > read_num {
            let count = (head.irreversible_num - read_num).min(RANGE);
            self.read_irreversible(state, read, count).await?;
            let now_at = state.read.map_or(0, |cursor| cursor.block_id.number());
            if now_at < head.irreversible_num && now_at > read_num {
                return Ok(true);
            }
        }
        self.read_reversible(state, head).await?;
        Ok(false)
    }

    /// Starts with the last irreversible block: no payment can be older than the engine.
    async fn start_at(&self, head: Head, state: &mut ScanState) -> Result<(), PollError> {
        let wanted = head.irreversible_num;
        let blocks = self.ledger.nodes.blocks(wanted, 1, Depth::Irreversible).await?;
        let Some(block) = blocks.first() else { return Err(PollError::BrokenChain(wanted)) };
        let cursor = Cursor { block_id: block.id, time: block.time };
        self.store_cursor(
            state,
            cursor,
            Batch::of(notes::virtual_transfers_read_to(wanted, None)).and(notes::reconcile_after(block.time)),
        )
        .await?;
        state.read = Some(cursor);
        tracing::info!(block_num = wanted, "scanning the ledger from block {wanted}");
        self.advanced(cursor.block_id.number(), cursor.time);
        Ok(())
    }

    /// Fetches blocks, and only then reads the watched accounts: a merchant that registered through another engine may
    /// be paid in them.
    async fn watched_blocks(&self, from: u32, count: u32, depth: Depth) -> Result<Vec<Block>, PollError> {
        let blocks = self.ledger.nodes.blocks(from, count, depth).await?;
        self.ledger.watch_added().await?;
        Ok(blocks)
    }

    fn classifier(&self) -> Classifier<'_> {
        Classifier { context: &self.context, ledger: &self.ledger }
    }

    async fn read_irreversible(&self, state: &mut ScanState, read: Cursor, count: u32) -> Result<(), PollError> {
        let from = read.block_id.number() + 1;
        let blocks = self.watched_blocks(from, count, Depth::Irreversible).await?;
        let mut last = read.block_id;
        for (block, wanted) in blocks.iter().zip(from..) {
            if block.number() != wanted && !mutant!("skipped-blocks-unseen") {
                return Err(PollError::WrongBlock { wanted, given: block.number() });
            }
            if block.previous != last && !mutant!("skipped-blocks-unseen") {
                return Err(PollError::BrokenChain(wanted));
            }
            last = block.id;
        }
        let Some(newest) = blocks.last() else { return Ok(()) };
        state.failures.chain_matches(&self.ledger.view);
        self.discard_decided(state, &blocks).await?;
        let classified = self.classifier().transfers(&blocks).await?;
        for classified in classified.iter().filter(|classified| classified.classification == Classification::Proof) {
            ownership::record_proof_transfer(&self.merchants, classified.transfer).await?;
        }
        let mut unmatched = self.credit(&classified, Finality::Irreversible).await?;
        let released = blocks.iter().flat_map(|block| &block.escrow_releases);
        let released = released.filter(|released| self.ledger.watched.contains(&released.to)).cloned();
        let reason = UnmatchedReason::UnsupportedOperation;
        unmatched.extend(released.map(|transfer| Unmatched::open(transfer, reason)));
        self.discard_unconfirmed(state, newest.number()).await?;
        let unknown: Vec<_> = unmatched.iter().filter(|one| !is_sale(&classified, &one.transfer)).collect();
        // Read before the position moves: after a failed read the blocks are read again.
        let events = unmatched_events(&self.context, &unknown, self.context.now()).await?;
        let cursor = Cursor { block_id: newest.id, time: newest.time };
        state.read = Some(cursor);
        self.context.metrics.blocks.inc_by(blocks.len() as u64);
        for block in &blocks {
            unknown_operations::note(&self.context, block.number(), &block.unknown_operations);
        }
        let stored_num = state.stored.map_or(0, |stored| stored.block_id.number());
        let is_relevant = |classified: &ClassifiedTransfer<'_>| {
            classified.classification != Classification::Nobody || classified.refunds.is_some()
        };
        if !unmatched.is_empty()
            || classified.iter().any(is_relevant)
            || cursor.block_id.number() - stored_num >= STORE_CURSOR_EVERY
            // Other engines read the progress from the store.
            || !self.context.duties.is_alone()
        {
            let unmatched = unmatched.into_iter().filter(|_| !mutant!("unmatched-not-stored"));
            let unmatched: Vec<_> = unmatched.collect();
            self.store_unmatched(state, cursor, (&unmatched, events), &classified).await?;
        }
        self.advanced(cursor.block_id.number(), cursor.time);
        Ok(())
    }

    /// Stores the cursor with the transfers that pay no session and the events of those that are no sale.
    async fn store_unmatched(
        &self,
        state: &mut ScanState,
        cursor: Cursor,
        (unmatched, events): (&[Unmatched], Vec<(MerchantId, Write)>),
        classified: &[ClassifiedTransfer<'_>],
    ) -> Result<(), CommitError> {
        let (merchants, events): (Vec<_>, Vec<_>) = events.into_iter().unzip();
        let batch = unmatched.iter().cloned().map(Write::Unmatched).chain(events).collect();
        self.context.env.probe.reach("scanner: credited, cursor not moved");
        self.store_cursor(state, cursor, batch).await?;
        merchants.into_iter().for_each(|merchant| self.notifier.announced(merchant));
        for unmatched in unmatched {
            if is_sale(classified, &unmatched.transfer) {
                transfer_log::sale(&unmatched.transfer);
            } else {
                transfer_log::unmatched(unmatched);
                self.context.metrics.unmatched.inc();
            }
        }
        Ok(())
    }

    async fn store_cursor(&self, state: &mut ScanState, cursor: Cursor, batch: Batch) -> Result<(), CommitError> {
        let expected = if mutant!("cursor-without-expected") {
            self.context.env.store.cursor().await.unwrap_or(state.stored)
        } else {
            state.stored
        };
        let batch = batch.and(Write::Cursor { cursor, expected });
        let batch = match state.term.filter(|_| !mutant!("cursor-without-expected")) {
            Some(term) => term.guarding(batch),
            None => batch,
        };
        let committed = self.context.env.store.commit(batch).await;
        if matches!(committed, Err(CommitError::Conflict { .. })) {
            // Another engine scans the same chain and was first; continue from its progress.
            let stored = self.context.env.store.cursor().await.inspect_err(|error| self.context.read_failed(error));
            state.stored = stored.ok().flatten().or(state.stored);
        }
        committed?;
        if mutant!("cursor-not-remembered") {
            return Ok(());
        }
        state.stored = Some(cursor);
        Ok(())
    }

    fn advanced(&self, num: u32, time: Timestamp) {
        self.ledger.view.read_up_to(num, time);
        self.payments.advanced(time);
    }

    /// Drops the reversible blocks that are decided now; sightings of orphaned blocks are removed with them.
    async fn discard_decided(&self, state: &mut ScanState, blocks: &[Block]) -> Result<(), PollError> {
        while let Some(oldest) = state.recent.front() {
            let Some(decided) = blocks.iter().find(|block| block.number() >= oldest.id.number()) else { break };
            if decided.id == oldest.id || decided.number() > oldest.id.number() {
                state.recent.pop_front();
            } else {
                self.roll_back(state).await?;
            }
        }
        Ok(())
    }

    /// Reads the reversible blocks, for display: they complete nothing.
    async fn read_reversible(&self, state: &mut ScanState, head: Head) -> Result<(), PollError> {
        let Some(read) = state.read else { return Ok(()) };
        let top = state.recent.back().map_or(read.block_id, |recent| recent.id);
        if head.block_id.number() < top.number() || head.block_id == top {
            // No new block, or a lagging node.
            return Ok(());
        }
        if head.block_id.number() == top.number() {
            return self.roll_back(state).await;
        }
        let count = (head.block_id.number() - top.number()).min(MAX_REVERSIBLE);
        let blocks = match self.watched_blocks(top.number() + 1, count, Depth::Reversible).await {
            // Nodes on different sides of a fork: neither side is shown.
            Err(PollError::Nodes(NodesError::Disagree { .. })) => return Ok(()),
            blocks => blocks?,
        };
        let mut last = top;
        for block in blocks {
            if block.previous != last {
                // A fork removed the last block. Step back one block; the next poll continues from there.
                return if state.recent.is_empty() { Ok(()) } else { self.roll_back(state).await };
            }
            last = block.id;
            let classified = self.classifier().transfers(std::slice::from_ref(&block)).await?;
            let sighting = |classified: &ClassifiedTransfer<'_>| match classified.classification {
                Classification::Session(payment, _) => {
                    let (tx_id, op_in_tx) = (classified.transfer.tx_id, classified.transfer.position.op_in_tx);
                    Some(Sighting { block_num: block.number(), payment, tx_id, op_in_tx })
                }
                Classification::Account(_) | Classification::Sale | Classification::Proof | Classification::Nobody => {
                    None
                }
            };
            let sighted: Vec<_> = classified.iter().filter_map(sighting).collect();
            // Until all sessions are notified, it is unknown which of them have the sighting.
            state.unconfirmed.extend(&sighted);
            self.credit(&classified, Finality::Reversible).await?;
            for sighting in &sighted {
                state.unconfirmed.remove(sighting);
            }
            state.recent.push_back(Recent { id: block.id, sighted });
        }
        Ok(())
    }

    /// Removes the sightings of the last reversible block.
    async fn roll_back(&self, state: &mut ScanState) -> Result<(), PollError> {
        let Some(removed) = state.recent.pop_back() else { return Ok(()) };
        tracing::info!(block_num = removed.id.number(), "a fork removed block {}", removed.id.number());
        let sighted = if mutant!("forks-not-rolled-back") { Vec::new() } else { removed.sighted };
        state.unconfirmed.extend(&sighted);
        for sighting in sighted {
            self.orphan(sighting).await?;
            state.unconfirmed.remove(&sighting);
        }
        Ok(())
    }

    async fn orphan(&self, sighting: Sighting) -> Result<(), PollError> {
        let Sighting { payment, tx_id, op_in_tx, .. } = sighting;
        match self.send_order(payment, Command::Orphan { tx_id, op_in_tx })?.await.unwrap_or(Err(SessionError::Unknown))
        {
            Ok(_) | Err(SessionError::Rejected { .. } | SessionError::NotFound(_) | SessionError::Damaged { .. }) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns undecided sightings of an earlier scanner: a fork may have removed them meanwhile.
    async fn load_reversible_sightings(&self) -> Result<BTreeSet<Sighting>, ReadError> {
        let mut sighted = BTreeSet::new();
        for id in self.context.env.store.in_flight().await? {
            let read = self.context.sound(self.context.env.store.payment(id).await)?;
            let Some(payment) = read.flatten() else { continue };
            let mut add = |credit: &Credit| {
                if let Some(block) = credit.block.filter(|_| credit.finality == Finality::Reversible) {
                    let (block_num, tx_id, op_in_tx) = (block.position.block_num, credit.tx_id, credit.op_in_tx);
                    sighted.insert(Sighting { block_num, payment: id, tx_id, op_in_tx });
                }
            };
            payment.transfers.iter().for_each(&mut add);
            let mut left = payment.unlisted.as_ref().map_or(0, |unlisted| unlisted.reversible);
            let mut before = None;
            // Reversible transfers are among the newest, and their number is stored.
            while left > 0 {
                let read = self.context.sound(self.context.env.store.transfers(id, before, ROWS_PAGE).await)?;
                let rows = read.unwrap_or_default();
                let Some(oldest) = rows.last() else { break };
                before = Some(oldest.seq);
                for row in rows.iter().filter(|row| payment.listed(row.tx_id, row.op_in_tx).is_none()) {
                    left = left.saturating_sub(u64::from(row.finality == Finality::Reversible));
                    add(row);
                }
            }
        }
        Ok(sighted)
    }

    /// Removes sightings at or below an irreversible block that were not credited with it.
    async fn discard_unconfirmed(&self, state: &mut ScanState, final_num: u32) -> Result<(), PollError> {
        while let Some(sighting) = state.unconfirmed.first().copied().filter(|sighting| sighting.block_num <= final_num)
        {
            let is_same = |other: &Sighting| {
                (other.payment, other.tx_id, other.op_in_tx) == (sighting.payment, sighting.tx_id, sighting.op_in_tx)
            };
            // A transfer sighted again in a later block is decided with that block. A final one cannot be removed.
            let is_higher = state.recent.iter().any(|recent| recent.sighted.iter().any(is_same));
            if !is_higher {
                self.orphan(sighting).await?;
            }
            state.unconfirmed.remove(&sighting);
        }
        Ok(())
    }

    /// Credits every transfer to its session, in order, and waits until all are durable. Returns those that pay no
    /// session.
    async fn credit(
        &self,
        classified: &[ClassifiedTransfer<'_>],
        finality: Finality,
    ) -> Result<Vec<Unmatched>, PollError> {
        let mut waiting = Vec::new();
        let mut unmatched = Vec::new();
        for &ClassifiedTransfer { transfer, classification, refunds } in classified {
            if let Some(id) = refunds
                && finality == Finality::Irreversible
                && !mutant!("refund-not-recorded")
            {
                let command = Command::Refund(transfer.clone());
                match self.send_order(id, command)?.await.unwrap_or(Err(SessionError::Unknown)) {
                    Ok(_) => continue,
                    Err(SessionError::Rejected { rejection: Rejection::Unchanged { .. }, .. }) => continue,
                    Err(SessionError::Rejected { .. } | SessionError::NotFound(_) | SessionError::Damaged { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            match classification {
                Classification::Nobody | Classification::Proof => {}
                Classification::Account(reason) => unmatched.push(Unmatched::open(transfer.clone(), reason)),
                // Stored with the transfers that pay no session; its claim determines its kind.
                Classification::Sale => unmatched.push(Unmatched::open(transfer.clone(), UnmatchedReason::NoSession)),
                Classification::Session(id, memo_normalized) => {
                    let command =
                        Command::Credit { transfer: transfer.clone(), finality, route: Route::Wallet, memo_normalized };
                    waiting.push((transfer, self.send_order(id, command)?));
                }
            }
        }
        for (transfer, response) in waiting {
            // A session that crashed drops the result: the block is read again.
            let reason = match response.await.unwrap_or(Err(SessionError::Unknown)) {
                Ok(_) => continue,
                Err(SessionError::Rejected { rejection, .. }) => match rejection {
                    Rejection::ForeignTransfer { .. } => UnmatchedReason::OtherAccount,
                    _ => continue,
                },
                // A transfer for a damaged session waits, and is assigned to it once it is readable again.
                Err(SessionError::NotFound(_) | SessionError::Damaged { .. }) => UnmatchedReason::UnknownSession,
                Err(_) if mutant!("cursor-passes-failures") => continue,
                Err(error) => return Err(error.into()),
            };
            if self.ledger.watched.contains(&transfer.to) {
                unmatched.push(Unmatched::open(transfer.clone(), reason));
            } else if finality == Finality::Irreversible {
                self.other_accounts.log(transfer, reason);
            }
        }
        Ok(unmatched)
    }

    fn send_order(&self, id: PaymentId, command: Command) -> Result<OrderResult, SessionError> {
        let (order, response) = Order::awaited(command);
        self.payments.registry().cast(RegistryMsg::Order(id, order)).map_err(|_| SessionError::Unknown)?;
        Ok(response)
    }
}
