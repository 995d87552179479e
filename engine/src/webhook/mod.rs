//! Webhooks: bodies, signatures, deliveries and endpoint health.

mod body;
mod delivery;
mod endpoint;
mod endpoints;
mod event_type;
mod signature;

pub use body::{
    AccountChange, SettledSale, UnmatchedTransfer, account_change, exception, refund_completed, sale_event_id, settled,
    status_changed, test_event, transfer_unmatched, unmatched_event_id,
};
pub use delivery::{
    Attempt, Delivery, DeliveryRecord, DeliveryState, Outcome, RetryDecision, SCHEDULE, Trigger, body_digest,
};
pub use endpoint::{DisableReason, EndpointHealth, Warning};
pub use endpoints::{
    Endpoint, EndpointDraft, EndpointRejection, EndpointUpdate, EventTypes, MAX_ENDPOINTS, RawEndpointUpdate, Target,
};
pub use event_type::{EventType, Subscriptions};
pub use signature::{Headers, MAX_PREVIOUS, Secret, Secrets, TooManySecrets};
