//! The binary's rooms: the REST facade and checkout page, the gRPC service, settings, commands.

mod addresses;
pub mod commands;
pub mod config;
pub mod facade;
pub mod in_process;
pub mod metrics;
pub mod service;
pub mod version;
