//! State that facades share: dashboard sessions, and lockouts after invalid API keys.

pub(crate) mod handle;
pub(crate) mod lockouts;
pub(crate) mod sessions;
mod shards;
