//! Wallets: transfers of every kind to a session's account.

use engine::{
    hive::{Asset, Operation, PairId, RecurrentTransfer},
    ledger::refund_memo_of,
};

use super::*;

/// Transfers of a flood: more than a payment lists, and as many long memos as a transaction can hold.
const FLOOD: u64 = 25;

pub(super) fn pay(
    sim: &Arc<Simulation>,
    session: u32,
    from: Option<usize>,
    money: Money,
    memo: Memo,
    action: &Action,
    tries: u32,
) {
    let (known, other) = {
        let clients = sim.clients();
        let other = clients.sessions.range(..session).next_back().map(|(_, other)| other.id);
        (clients.sessions.get(&session).cloned(), other)
    };
    let Some(known) = known else {
        if tries < 5 {
            sim.act_later(2_000, action.clone(), tries + 1);
        }
        return;
    };
    let mut to = known.pay_to.to_string();
    let mut from = from.map_or_else(|| to.clone(), payer);
    if memo == Memo::Refund {
        let shops = (0..sim.script.setup.merchants).map(|number| account(number, false));
        let Some(other) = shops.into_iter().find(|name| *name != to) else { return };
        (from, to) = (other, from);
        sim.mark("a shop refunds a payment of another shop");
    }
    let mut money = money;
    if memo == Memo::Fee {
        let Some((collector, units)) = known.fee.clone() else { return };
        (to, money) = (collector, Money::new(units, known.amount.currency));
        sim.mark("only the fee is paid");
    }
    let text = memo_text(memo, known.id, other);
    let outcome = {
        let mut hive = sim.hive();
        let count = match memo {
            Memo::TwoTransfers => 2,
            Memo::Flood => FLOOD.min(money.units),
            _ => 1,
        };
        let last = money.units - money.units / count * (count - 1);
        let parts = (1..count).map(|_| money.units / count).chain([last]).filter(|units| *units > 0);
        let transfer = |units| Hive::transfer(&from, &to, units, money.currency, &text);
        let transaction = hive.transaction(&from, parts.map(transfer).collect(), Duration::from_secs(60));
        (hive.id_of(&transaction), hive.chain.broadcast(transaction))
    };
    let (tx_id, sent) = outcome;
    let intent = memo.names_session().then_some(known.id);
    sim.observe(|observer| {
        observer.intents.insert(tx_id, intent);
        if memo == Memo::Fee {
            observer.fee_intents.insert((tx_id, 0), known.id);
        }
        observer.own_broadcasts.insert(tx_id);
        observer.ever_accepted.insert(tx_id);
    });
    match sent {
        Ok(_) => sim.event(Source::Payer, "pays", Some(session), money.units, || {
            format!("{from} pays {money} for session {session} ({memo:?} memo)")
        }),
        Err(refused) => sim.event(Source::Payer, "pay_refused", Some(session), money.units, || {
            format!("{from} pays {money} for session {session}: the chain refuses: {refused}")
        }),
    }
}

/// Returns the text of a memo for a session; `other` is an earlier session, if there is one.
fn memo_text(memo: Memo, id: PaymentId, other: Option<PaymentId>) -> String {
    let plain = memo_of(id);
    match memo {
        Memo::Exact | Memo::TwoTransfers => plain,
        Memo::Flood => format!("{plain} {}", "\u{1}".repeat(1_900)),
        Memo::Noisy => format!("Order 7: {} thank you", plain.to_uppercase()),
        Memo::Empty => String::new(),
        Memo::Words => "for the mug".to_owned(),
        Memo::Encrypted => format!("#{plain}"),
        Memo::Two => match other {
            Some(other) => format!("{plain} {}", memo_of(other)),
            None => "for two mugs".to_owned(),
        },
        Memo::Refund => refund_memo_of(id),
        Memo::Fee => format!("fee-{id}"),
        Memo::Unknown => memo_of(PaymentId::from_bits(id.bits() ^ (1 << 5))),
    }
}

/// The terms of a recurrent transfer.
pub(super) struct Agreement {
    pub(super) payer: usize,
    pub(super) money: Money,
    pub(super) every_hours: u16,
    pub(super) times: u16,
}

pub(super) fn pay_again(sim: &Arc<Simulation>, session: u32, agreement: &Agreement, action: &Action, tries: u32) {
    let known = sim.clients().sessions.get(&session).cloned();
    let Some(known) = known else {
        if tries < 5 {
            sim.act_later(2_000, action.clone(), tries + 1);
        }
        return;
    };
    let Agreement { payer: number, money, every_hours, times } = *agreement;
    let from = payer(number);
    let operation = Operation::RecurrentTransfer(RecurrentTransfer {
        from: from.clone(),
        to: known.pay_to.to_string(),
        amount: Asset::from(money),
        memo: memo_of(known.id),
        recurrence: every_hours,
        executions: times,
        // One payer may have a recurrent transfer for each of many sessions.
        extensions: vec![PairId(u8::try_from(session % 256).unwrap_or(0))],
    });
    let sent = {
        let mut hive = sim.hive();
        let transaction = hive.operations(&from, vec![operation], Duration::from_secs(60));
        let tx_id = hive.id_of(&transaction);
        hive.chain.broadcast(transaction).map(|_| tx_id)
    };
    match sent {
        Ok(tx_id) => {
            sim.observe(|observer| {
                observer.own_broadcasts.insert(tx_id);
                observer.ever_accepted.insert(tx_id);
            });
            sim.event(Source::Payer, "agrees", Some(session), money.units, || {
                format!("{from} agrees to pay {money} every {every_hours} hours, {times} times, for session {session}")
            });
        }
        Err(refused) => sim.event(Source::Payer, "pay_refused", Some(session), money.units, || {
            format!("{from} agrees to pay {money} for session {session}: the chain refuses: {refused}")
        }),
    }
}
