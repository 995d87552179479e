//! Exhaustive exploration of the two protocols that several engines depend on, in small cases: commits of unknown outcome, and
//! claims whose transaction two engines broadcast.

#[path = "protocols/claim_sharing.rs"]
mod claim_sharing;
#[path = "protocols/explorer.rs"]
mod explorer;
#[path = "protocols/unknown_commits.rs"]
mod unknown_commits;
