//! Conversions of enums of the engine to protobuf enums. Each match is exhaustive, so that a new value without a protobuf
//! number does not compile.

use actors::{Condition, RegistrationMode};
use engine::{
    compliance::Window,
    merchant::Scope,
    ownership::Action,
    reconciliation,
    webhook::{DisableReason, EventType, Outcome, Warning},
};
use proto::v1::{
    self, AccountChallengeAction, ApiKeyScope, LedgerNodeCondition, LimitWindow, ReconciliationOutcome,
    WebhookDisabledReason, WebhookOutcome, WebhookWarning,
};

/// Returns the names of the enum numbers of a request; an empty name, which is never valid, for an undefined number.
pub(super) fn names<T: TryFrom<i32>>(numbers: &[i32], name: impl Fn(T) -> Option<&'static str>) -> Vec<String> {
    let name = |number: &i32| T::try_from(*number).ok().and_then(&name).unwrap_or_default().to_owned();
    numbers.iter().map(name).collect()
}

pub(super) const fn scope(scope: Scope) -> ApiKeyScope {
    match scope {
        Scope::PaymentsRead => ApiKeyScope::PaymentsRead,
        Scope::PaymentsWrite => ApiKeyScope::PaymentsWrite,
        Scope::MerchantWrite => ApiKeyScope::MerchantWrite,
        Scope::MerchantPayout => ApiKeyScope::MerchantPayout,
        Scope::Admin => ApiKeyScope::Admin,
    }
}

pub(super) const fn event_type(kind: EventType) -> v1::EventType {
    match kind {
        EventType::StatusChanged => v1::EventType::PaymentStatusChanged,
        EventType::Exception => v1::EventType::PaymentException,
        EventType::X402Settled => v1::EventType::X402Settled,
        EventType::AccountChange => v1::EventType::MerchantAccountChange,
        EventType::RefundCompleted => v1::EventType::RefundCompleted,
        EventType::TransferUnmatched => v1::EventType::TransferUnmatched,
    }
}

pub(super) const fn action(action: Action) -> AccountChallengeAction {
    match action {
        Action::Verify => AccountChallengeAction::Verify,
        Action::ChangeTo(_) => AccountChallengeAction::Change,
        Action::Cancel => AccountChallengeAction::CancelChange,
    }
}

pub(super) const fn condition(condition: Condition) -> LedgerNodeCondition {
    match condition {
        Condition::Ok => LedgerNodeCondition::Ok,
        Condition::Unknown => LedgerNodeCondition::Unknown,
        Condition::Slow => LedgerNodeCondition::Slow,
        Condition::Stale => LedgerNodeCondition::Stale,
        Condition::Disagreeing => LedgerNodeCondition::Disagreeing,
        Condition::Failing => LedgerNodeCondition::Failing,
        Condition::RateLimited => LedgerNodeCondition::RateLimited,
    }
}

pub(super) const fn window(window: Window) -> LimitWindow {
    match window {
        Window::Single => LimitWindow::Single,
        Window::Daily => LimitWindow::Daily,
        Window::Monthly => LimitWindow::Monthly,
        Window::NearSingle => LimitWindow::NearSingle,
    }
}

pub(super) const fn reconciliation(outcome: reconciliation::Outcome) -> ReconciliationOutcome {
    match outcome {
        reconciliation::Outcome::Ok => ReconciliationOutcome::Ok,
        reconciliation::Outcome::Mismatch => ReconciliationOutcome::Mismatch,
        reconciliation::Outcome::NotChecked => ReconciliationOutcome::NotChecked,
    }
}

pub(super) const fn registration(mode: RegistrationMode) -> v1::RegistrationMode {
    match mode {
        RegistrationMode::Open => v1::RegistrationMode::Open,
        RegistrationMode::Approval => v1::RegistrationMode::Approval,
        RegistrationMode::Closed => v1::RegistrationMode::Closed,
    }
}

pub(super) const fn disabled(reason: DisableReason) -> WebhookDisabledReason {
    match reason {
        DisableReason::Gone => WebhookDisabledReason::Gone,
        DisableReason::Failing => WebhookDisabledReason::Failing,
    }
}

pub(super) const fn warning(warning: Warning) -> WebhookWarning {
    match warning {
        Warning::Failing24Hours => WebhookWarning::Failing24h,
        Warning::Failing72Hours => WebhookWarning::Failing72h,
    }
}

pub(super) const fn attempt(outcome: Outcome) -> WebhookOutcome {
    match outcome {
        Outcome::Accepted { .. } => WebhookOutcome::Success,
        Outcome::Refused { .. } => WebhookOutcome::HttpError,
        Outcome::Timeout => WebhookOutcome::Timeout,
        Outcome::ConnectionRefused => WebhookOutcome::Refused,
        Outcome::ConnectionReset => WebhookOutcome::Reset,
        Outcome::Connect => WebhookOutcome::Connect,
        Outcome::Tls => WebhookOutcome::Tls,
        Outcome::Dns => WebhookOutcome::Dns,
        Outcome::Blocked => WebhookOutcome::Blocked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_names_are_the_names_of_the_engine() {
        for each in Scope::ALL {
            assert_eq!(scope(each).rest_name(), Some(each.as_str()));
        }
        for each in EventType::ALL {
            assert_eq!(event_type(each).rest_name(), Some(each.as_str()));
        }
        for each in Condition::ALL {
            assert_eq!(condition(each).rest_name(), Some(each.as_str()));
        }
        for each in Window::ALL {
            assert_eq!(window(each).rest_name(), Some(each.as_str()));
        }
        for each in reconciliation::Outcome::ALL {
            assert_eq!(reconciliation(each).rest_name(), Some(each.as_str()));
        }
        for each in [RegistrationMode::Open, RegistrationMode::Approval, RegistrationMode::Closed] {
            assert_eq!(registration(each).rest_name(), Some(each.as_str()));
        }
        for each in [DisableReason::Gone, DisableReason::Failing] {
            assert_eq!(disabled(each).rest_name(), Some(each.as_str()));
        }
        for each in [Warning::Failing24Hours, Warning::Failing72Hours] {
            assert_eq!(warning(each).rest_name(), Some(each.as_str()));
        }
        let failures =
            [Outcome::ConnectionRefused, Outcome::ConnectionReset, Outcome::Connect, Outcome::Tls, Outcome::Dns];
        for each in failures.into_iter().chain([Outcome::Timeout, Outcome::Blocked]) {
            assert_eq!(attempt(each).rest_name(), Some(each.as_str()));
        }
    }
}
