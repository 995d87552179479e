//! Tests of the store through its public interface.

mod behaviour;
mod billing;
mod commits;
mod compliance;
mod crashes;
mod damage;
mod disk;
mod duties;
mod endpoints;
mod epochs;
mod filled;
mod groups;
mod keeping;
mod lists;
mod log;
mod model;
mod opening;
mod quota;
mod raw;
mod resolution;
mod sales;
mod samples;
mod search;
