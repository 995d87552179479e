//! Queries over one snapshot.

pub(crate) mod days;
pub(crate) mod deliveries;
pub(crate) mod delivery_list;
pub(crate) mod listed;
pub(crate) mod payments;
pub(crate) mod postings;
pub(crate) mod queries;
pub(crate) mod search;
