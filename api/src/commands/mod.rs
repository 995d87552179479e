//! The commands of the command line, one file each.

mod admin;
mod cli;
mod clock;
mod dev;
mod doctor;
mod duration;
mod export_account;
mod facade;
mod failure;
mod files;
mod inspect;
pub mod ledger;
mod load;
mod logs;
mod master_key;
mod open_files;
mod output;
mod pay;
mod running;
mod serve;
mod settings;
mod show_config;
mod shutdown;
mod signing;
mod simulate;
mod socket;
mod store;
mod target;
mod tokens;
pub mod transfer;
pub mod tx;
mod verify_merchant;

pub use cli::main;
pub use failure::Failure;
