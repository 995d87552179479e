//! The store through its interface: what is written is read, what is refused leaves no trace, what is lost was never
//! promised.

mod commits;
mod samples;
