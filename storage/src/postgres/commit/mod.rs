//! The commit path: batches of one writer form a group, whose rows are read in one round trip, changed in memory by the rules that
//! all stores share, and written in one statement. Guards make the statement fail as a whole where a row is not as it was read.

pub(crate) mod business;
pub(crate) mod claims;
pub(crate) mod duties;
pub(crate) mod group;
pub(crate) mod load;
pub(crate) mod merchants;
pub(crate) mod outbox;
pub(crate) mod payments;
pub(crate) mod prepared;
pub(crate) mod sums;
pub(crate) mod wanted;
pub(crate) mod working;
pub(crate) mod writers;
