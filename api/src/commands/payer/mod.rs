//! The parts of a payer that `hivetill pay` and the wallet share: key, request or tool call, price, submission and ledger
//! access.

pub(super) mod account;
pub(super) mod exchange;
pub(super) mod failure;
pub(super) mod key;
pub(super) mod ledger;
pub(super) mod quote;
pub(super) mod request;
pub(super) mod submission;
pub(super) mod target;
pub(super) mod tool_call;
