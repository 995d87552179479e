//! Reads the actions of merchants, customers, payers and agents.

use engine::money::{Currency, Money};

use super::{super::values::find_keyword, *};
use crate::{
    plan::{AGENTS, PAYERS},
    script::{AgentBehavior, FacadeCall, ManagementAction, Memo, MerchantChange, OwnershipAction, SessionAction},
};

pub(super) fn create(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let (merchant, money, lifetime_seconds) = (step.merchant()?, step.money()?, lifetime(step.raw)?);
    let session = step.new_session()?;
    Ok(Action::Create { session, merchant, units: money.units, currency: money.currency, lifetime_seconds })
}

pub(super) fn create_elsewhere(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let (merchant, money, lifetime_seconds) = (step.merchant()?, step.money()?, lifetime(step.raw)?);
    if money.currency != Currency::Hbd {
        return Err("`amount` of a session of another engine must be in HBD".to_owned());
    }
    let session = step.new_session()?;
    Ok(Action::CreateElsewhere { session, merchant, units: money.units, lifetime_seconds })
}

fn lifetime(raw: &RawStep) -> Result<Option<u64>, Problem> {
    let lifetime = raw.lifetime.as_deref().map(|text| duration("lifetime", text)).transpose()?;
    match lifetime.map(|ms| ms / 1_000) {
        Some(seconds) if !(60..=86_400).contains(&seconds) => Err("`lifetime` must be from 60s to 24h".to_owned()),
        seconds => Ok(seconds),
    }
}

pub(super) fn hand_over(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    Ok(Action::HandOver { session: step.session()? })
}

pub(super) fn payer_pays(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let (payer, money) = (Some(step.number_below(PAYERS)?), step.money()?);
    pay(step.raw, step.session()?, payer, money)
}

pub(super) fn merchant_pays(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    pay(step.raw, step.session()?, None, step.money()?)
}

fn pay(raw: &RawStep, session: u32, payer: Option<usize>, money: Money) -> Result<Action, Problem> {
    let memo = raw.memo.as_deref().map_or(Ok(Memo::Exact), |word| find_keyword("memo", word, &Memo::ALL))?;
    Ok(Action::Pay { session, payer, units: money.units, currency: money.currency, memo })
}

pub(super) fn pay_again(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let (payer, money, session) = (step.number_below(PAYERS)?, step.money()?, step.session()?);
    let hours = duration("every", required("every", &step.raw.every)?)? / 3_600_000;
    let every_hours = u16::try_from(hours).unwrap_or(u16::MAX);
    let times = step.raw.times.ok_or("`times` is missing")?;
    if every_hours < 24 {
        return Err("`every` must be at least 24h, and counts in hours".to_owned());
    }
    if times < 2 || u32::from(every_hours) * u32::from(times) > 730 * 24 {
        return Err("`times` must be at least 2, and the last within 730 days".to_owned());
    }
    Ok(Action::PayAgain { session, payer, units: money.units, currency: money.currency, every_hours, times })
}

pub(super) fn customer_cancels(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    Ok(Action::Cancel { session: step.session()?, by_merchant: false })
}

pub(super) fn merchant_cancels(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    Ok(Action::Cancel { session: step.session()?, by_merchant: true })
}

pub(super) fn assign(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    Ok(Action::Assign { session: step.session()? })
}

pub(super) fn act_on_session(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let action = find_keyword("does", &step.raw.does, &SessionAction::ALL)?;
    Ok(Action::ActOnSession { session: step.session()?, action })
}

pub(super) fn manage(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let action = find_keyword("does", &step.raw.does, &ManagementAction::ALL)?;
    let merchant = if action.is_operators() { 0 } else { step.merchant()? };
    Ok(Action::Manage { merchant, action })
}

pub(super) fn rotate_secret(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let grace = step.raw.grace.as_deref().map_or(Ok(0), |text| duration("grace", text))?;
    let change = MerchantChange::RotateSecret { grace_seconds: grace / 1_000 };
    Ok(Action::ChangeMerchant { merchant: step.merchant()?, change })
}

pub(super) fn change_merchant(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let change = find_keyword("does", &step.raw.does, &MerchantChange::ALL)?;
    Ok(Action::ChangeMerchant { merchant: step.merchant()?, change })
}

pub(super) fn ownership(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let action = find_keyword("does", &step.raw.does, &OwnershipAction::ALL)?;
    Ok(Action::Ownership { merchant: step.merchant()?, action })
}

pub(super) fn settle(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let agent = step.number_below(AGENTS)?;
    let behavior = match step.raw.trick.as_deref() {
        None => AgentBehavior::Honest,
        Some("replay") => AgentBehavior::Replay { of: step.names.find(required("of", &step.raw.of)?)? },
        Some(word) => find_keyword("trick", word, &AgentBehavior::ALL)?,
    };
    Ok(Action::Settle { session: step.session()?, agent, behavior })
}

pub(super) fn facilitate(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let (agent, units) = (step.number_below(AGENTS)?, step.money()?.units);
    Ok(Action::Facilitate { agent, resource: step.raw.resource.unwrap_or(0), units })
}

pub(super) fn pay_with_wallet(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    // One agent has a wallet.
    step.number_below(1)?;
    Ok(Action::PayWithWallet { request: step.raw.resource.unwrap_or(0), units: step.money()?.units })
}

pub(super) fn purchase(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let (agent, units) = (step.number_below(AGENTS)?, step.money()?.units);
    let (raw, merchants) = (step.raw, step.setup.merchants);
    let resource = raw.resource.unwrap_or(0);
    if let Some(seller) = raw.seller.filter(|seller| *seller >= merchants) {
        return Err(format!("`seller` {seller}: there are {merchants}, numbered from 0"));
    }
    let shown = raw.shown.unwrap_or(resource);
    Ok(Action::Purchase { agent, resource, shown, seller: *raw.seller, key: *raw.key, units })
}

pub(super) fn call_facade(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let call = find_keyword("does", &step.raw.does, &FacadeCall::ALL)?;
    Ok(Action::CallFacade { session: step.session()?, call })
}
