//! What operations do to balances: evaluated first, applied as one set of changes, undone as one.

use std::{collections::BTreeMap, time::Duration};

use engine::{
    account::AccountName,
    hive::{AccountCreate, Asset, Authorities, Authority, Operation, RecurrentTransfer, Role, Transaction},
    time::Timestamp,
};

use super::{
    account::{Account, BalanceKind},
    block::VirtualOperation,
    refused::Refused,
};

/// A transfer out of savings takes three days.
const SAVINGS_DELAY: Duration = Duration::from_secs(3 * 86_400);
/// Failures in a row that end a recurrent transfer.
const MAX_FAILURES: u16 = 10;
/// VESTS units for one unit of HIVE: a fixed price, since this chain pays no rewards.
const VESTS_PER_HIVE_UNIT: i64 = 1_000_000;
/// Transfers to it burn money.
const BURNT: &str = "null";

/// Accounts and scheduled transfers.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) accounts: BTreeMap<AccountName, Account>,
    pub(super) schedule: Schedule,
    /// The sum of each balance.
    pub(super) supply: [i64; BalanceKind::COUNT],
}

type Schedule = BTreeMap<ScheduleKey, Scheduled>;

/// The id of a scheduled transfer: a recurrent transfer between two accounts, or a transfer out of savings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScheduleKey {
    Recurrent { from: AccountName, to: AccountName, pair: u8 },
    Savings { from: AccountName, request_id: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheduled {
    Recurrent { due: Timestamp, amount: Asset, memo: String, recurrence: u16, remaining: u16, failures: u16 },
    Savings { due: Timestamp, to: AccountName, amount: Asset, memo: String },
}

impl Scheduled {
    const fn due(&self) -> Timestamp {
        match self {
            Self::Recurrent { due, .. } | Self::Savings { due, .. } => *due,
        }
    }
}

/// The changes of a transaction or a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Changes {
    deltas: BTreeMap<(AccountName, BalanceKind), i64>,
    created: Vec<Account>,
    burnt: [i64; BalanceKind::COUNT],
    /// The new schedule, if it changes.
    schedule: Option<Schedule>,
}

impl Changes {
    pub(super) fn merge(&mut self, later: Self) {
        for (place, delta) in later.deltas {
            *self.deltas.entry(place).or_default() += delta;
        }
        self.created.extend(later.created);
        for (burnt, more) in self.burnt.iter_mut().zip(later.burnt) {
            *burnt += more;
        }
        self.schedule = later.schedule.or(self.schedule.take());
    }

    fn delta(&self, account: &AccountName, kind: BalanceKind) -> i64 {
        self.deltas.get(&(*account, kind)).copied().unwrap_or(0)
    }
}

impl Authorities for State {
    fn authority(&self, role: Role, account: &AccountName) -> Option<&Authority> {
        self.accounts.get(account).map(|account| match role {
            Role::Owner => &account.authorities.owner,
            Role::Active => &account.authorities.active,
            Role::Posting => &account.authorities.posting,
        })
    }
}

impl State {
    /// Returns what the transaction would change after `done`, or why it cannot.
    pub(super) fn evaluate(
        &self,
        done: &Changes,
        transaction: &Transaction,
        now: Timestamp,
    ) -> Result<Changes, Refused> {
        let mut scope = Scope { state: self, done, own: Changes::default(), now };
        for operation in &transaction.operations {
            scope.operation(operation)?;
        }
        Ok(scope.own)
    }

    /// Returns the scheduled transfers that are due by `now`, after `done`, and their changes.
    pub(super) fn due(&self, done: &Changes, now: Timestamp) -> (Vec<VirtualOperation>, Changes) {
        let mut scope = Scope { state: self, done, own: Changes::default(), now };
        let due: Vec<ScheduleKey> =
            scope.schedule().iter().filter(|(_, item)| item.due() <= now).map(|(key, _)| key.clone()).collect();
        let happened = due.into_iter().filter_map(|key| scope.fall_due(&key)).collect();
        (happened, scope.own)
    }

    /// Applies changes and returns what undoes them.
    pub(super) fn apply(&mut self, mut changes: Changes) -> Changes {
        for account in &changes.created {
            self.accounts.insert(account.name, account.clone());
        }
        self.adjust(&changes, 1);
        if let Some(schedule) = changes.schedule.take() {
            changes.schedule = Some(std::mem::replace(&mut self.schedule, schedule));
        }
        changes
    }

    /// Undoes what [`apply`](Self::apply) returned, newest first.
    pub(super) fn undo(&mut self, changes: Changes) {
        self.adjust(&changes, -1);
        for account in &changes.created {
            self.accounts.remove(&account.name);
        }
        if let Some(schedule) = changes.schedule {
            self.schedule = schedule;
        }
    }

    fn adjust(&mut self, changes: &Changes, sign: i64) {
        for ((name, kind), delta) in &changes.deltas {
            let account = self.accounts.get_mut(name).expect("only accounts that exist are changed");
            account.balances[*kind as usize] += sign * delta;
            self.supply[*kind as usize] += sign * delta;
        }
    }
}

/// A transaction being evaluated: the state, what was done before it, and what it does.
struct Scope<'a> {
    state: &'a State,
    done: &'a Changes,
    own: Changes,
    now: Timestamp,
}

impl Scope<'_> {
    fn operation(&mut self, operation: &Operation) -> Result<(), Refused> {
        match operation {
            Operation::Transfer(op) => {
                let from = self.account(&op.from)?;
                let to = self.account(&op.to)?;
                let kind = BalanceKind::liquid(op.amount.symbol);
                self.debit(&from, kind, op.amount)?;
                self.credit(&to, kind, op.amount.units);
            }
            Operation::TransferToSavings(op) => {
                let from = self.account(&op.from)?;
                let to = self.account(&op.to)?;
                self.debit(&from, BalanceKind::liquid(op.amount.symbol), op.amount)?;
                self.credit(&to, BalanceKind::savings(op.amount.symbol), op.amount.units);
            }
            Operation::TransferFromSavings(op) => {
                let from = self.account(&op.from)?;
                let to = self.account(&op.to)?;
                self.debit(&from, BalanceKind::savings(op.amount.symbol), op.amount)?;
                let due = self.now + SAVINGS_DELAY;
                let scheduled = Scheduled::Savings { due, to, amount: op.amount, memo: op.memo.clone() };
                self.put(ScheduleKey::Savings { from, request_id: op.request_id }, scheduled);
            }
            Operation::TransferToVesting(op) => {
                let from = self.account(&op.from)?;
                let to = if op.to.is_empty() { from } else { self.account(&op.to)? };
                self.debit(&from, BalanceKind::Hive, op.amount)?;
                self.credit(&to, BalanceKind::Vests, op.amount.units.saturating_mul(VESTS_PER_HIVE_UNIT));
            }
            Operation::RecurrentTransfer(op) => self.agree(op)?,
            Operation::AccountCreate(op) => self.create(op)?,
            // These move no money; the chain accepts them for the sake of wallets.
            Operation::Vote(_)
            | Operation::Comment(_)
            | Operation::WithdrawVesting(_)
            | Operation::FeedPublish(_)
            | Operation::AccountWitnessVote(_)
            | Operation::AccountWitnessProxy(_)
            | Operation::CustomJson(_) => {}
        }
        Ok(())
    }

    fn agree(&mut self, op: &RecurrentTransfer) -> Result<(), Refused> {
        let from = self.account(&op.from)?;
        let to = self.account(&op.to)?;
        let key = ScheduleKey::Recurrent { from, to, pair: op.extensions.first().map_or(0, |pair| pair.0) };
        let before = self.schedule().get(&key).cloned();
        if op.amount.units == 0 {
            let Some(_) = before else { return Err(Refused::UnknownAccount { account: op.to.clone() }) };
            self.remove(&key);
            return Ok(());
        }
        let kind = BalanceKind::liquid(op.amount.symbol);
        let available = self.balance(&from, kind);
        if available < op.amount.units {
            return Err(self.short(&from, kind, op.amount));
        }
        // A recurrent transfer with a new interval restarts it; another keeps its next date.
        let due = match before {
            Some(Scheduled::Recurrent { due, recurrence, .. }) if recurrence == op.recurrence => due,
            Some(_) => self.now + hours(op.recurrence),
            None => self.now,
        };
        let (amount, memo) = (op.amount, op.memo.clone());
        let (recurrence, remaining) = (op.recurrence, op.executions);
        self.put(key, Scheduled::Recurrent { due, amount, memo, recurrence, remaining, failures: 0 });
        Ok(())
    }

    fn create(&mut self, op: &AccountCreate) -> Result<(), Refused> {
        let creator = self.account(&op.creator)?;
        let name = AccountName::parse(&op.new_account_name)
            .map_err(|_| Refused::UnknownAccount { account: op.new_account_name.clone() })?;
        if self.account(&op.new_account_name).is_ok() {
            return Err(Refused::AccountExists { account: name });
        }
        self.debit(&creator, BalanceKind::Hive, op.fee)?;
        let (owner, active, posting) = (op.owner.clone(), op.active.clone(), op.posting.clone());
        let made_before = self.state.accounts.len() + self.done.created.len() + self.own.created.len();
        self.own.created.push(Account {
            id: u32::try_from(made_before).unwrap_or(u32::MAX),
            name,
            authorities: engine::hive::AccountAuthorities { owner, active, posting },
            memo_key: op.memo_key,
            created: self.now,
            updated: self.now,
            has_rc: true,
            balances: [0; BalanceKind::COUNT],
        });
        Ok(())
    }

    fn fall_due(&mut self, key: &ScheduleKey) -> Option<VirtualOperation> {
        let item = self.schedule().get(key)?.clone();
        self.remove(key);
        match (key, item) {
            (ScheduleKey::Savings { from, request_id }, Scheduled::Savings { to, amount, memo, .. }) => {
                self.credit(&to, BalanceKind::liquid(amount.symbol), amount.units);
                let (from, request_id) = (*from, *request_id);
                Some(VirtualOperation::FillTransferFromSavings { from, to, amount, request_id, memo })
            }
            (
                ScheduleKey::Recurrent { from, to, .. },
                Scheduled::Recurrent { due, amount, memo, recurrence, remaining, failures },
            ) => {
                let kind = BalanceKind::liquid(amount.symbol);
                let paid = self.debit(from, kind, amount).is_ok();
                let (remaining, failures) = (remaining - 1, if paid { 0 } else { failures + 1 });
                if paid {
                    self.credit(to, kind, amount.units);
                }
                if remaining > 0 && failures < MAX_FAILURES {
                    let due = due + hours(recurrence);
                    let next =
                        Scheduled::Recurrent { due, amount, memo: memo.clone(), recurrence, remaining, failures };
                    self.put(key.clone(), next);
                }
                let (from, to) = (*from, *to);
                Some(if paid {
                    VirtualOperation::FillRecurrentTransfer { from, to, amount, memo, remaining_executions: remaining }
                } else {
                    VirtualOperation::FailedRecurrentTransfer {
                        from,
                        to,
                        amount,
                        memo,
                        remaining_executions: remaining,
                        consecutive_failures: failures,
                    }
                })
            }
            _ => None,
        }
    }

    fn account(&self, name: &str) -> Result<AccountName, Refused> {
        let unknown = || Refused::UnknownAccount { account: name.to_owned() };
        let parsed = AccountName::parse(name).map_err(|_| unknown())?;
        let created = self.done.created.iter().chain(&self.own.created).any(|account| account.name == parsed);
        if created || self.state.accounts.contains_key(&parsed) { Ok(parsed) } else { Err(unknown()) }
    }

    fn balance(&self, account: &AccountName, kind: BalanceKind) -> i64 {
        let before = self.state.accounts.get(account).map_or(0, |account| account.balances[kind as usize]);
        before + self.done.delta(account, kind) + self.own.delta(account, kind)
    }

    fn short(&self, account: &AccountName, kind: BalanceKind, required: Asset) -> Refused {
        let available = Asset { units: self.balance(account, kind), symbol: kind.symbol() };
        Refused::Funds { account: *account, required, available }
    }

    fn debit(&mut self, account: &AccountName, kind: BalanceKind, amount: Asset) -> Result<(), Refused> {
        if self.balance(account, kind) < amount.units {
            return Err(self.short(account, kind, amount));
        }
        *self.own.deltas.entry((*account, kind)).or_default() -= amount.units;
        Ok(())
    }

    fn credit(&mut self, account: &AccountName, kind: BalanceKind, units: i64) {
        if account.as_str() == BURNT {
            self.own.burnt[kind as usize] += units;
        } else {
            *self.own.deltas.entry((*account, kind)).or_default() += units;
        }
    }

    fn schedule(&self) -> &Schedule {
        self.own.schedule.as_ref().or(self.done.schedule.as_ref()).unwrap_or(&self.state.schedule)
    }

    fn put(&mut self, key: ScheduleKey, item: Scheduled) {
        let mut schedule = self.schedule().clone();
        schedule.insert(key, item);
        self.own.schedule = Some(schedule);
    }

    fn remove(&mut self, key: &ScheduleKey) {
        let mut schedule = self.schedule().clone();
        schedule.remove(key);
        self.own.schedule = Some(schedule);
    }
}

fn hours(hours: u16) -> Duration {
    Duration::from_secs(u64::from(hours) * 3_600)
}
