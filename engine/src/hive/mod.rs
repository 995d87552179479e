//! The Hive codec.
