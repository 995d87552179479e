//! Webhooks: what is said, how it is signed, and when it is said again.

mod body;
mod delivery;
mod signature;

pub use body::status_changed;
pub use delivery::{Attempt, Delivery, Next, Outcome, SCHEDULE};
pub use signature::{Headers, Secret, Secrets};
