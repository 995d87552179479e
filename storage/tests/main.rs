//! The store through its interface: what is written is read, what is refused leaves no trace, what is lost was never
//! promised.

mod behaviour;
mod billing;
mod commits;
mod compliance;
mod crashes;
mod damage;
mod disk;
mod epochs;
mod groups;
mod keeping;
mod lists;
mod log;
mod model;
mod opening;
mod quota;
mod raw;
mod sales;
mod samples;
mod search;
