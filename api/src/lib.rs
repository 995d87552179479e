//! The library of the binary: the REST facade with checkout and dashboard, the gRPC services, settings, commands.

pub mod commands;
pub mod config;
pub mod facade;
pub mod in_process;
mod ip_connections;
pub mod metrics;
pub mod service;
pub mod store;
pub mod version;
