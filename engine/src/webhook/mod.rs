//! Webhooks: what is said, how it is signed, and when it is said again.

mod body;
mod delivery;
mod endpoint;
mod kind;
mod signature;

pub use body::{
    AccountChange, SettledSale, account_change, exception, sale_event_id, settled, status_changed, test_event,
};
pub use delivery::{Attempt, Delivery, DeliveryState, Logged, Next, Outcome, SCHEDULE, Trigger, body_digest};
pub use endpoint::{DisableReason, Endpoint, Warning};
pub use kind::{EventType, Subscriptions};
pub use signature::{Headers, Secret, Secrets};
