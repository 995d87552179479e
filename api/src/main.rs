//! The binary `hivetill`.

fn main() {}
