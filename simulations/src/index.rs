//! A hash index whose iteration order is the insertion order, the same in every run.

use foldhash::fast::FixedState;

/// Values by their keys.
pub type Index<K, V> = indexmap::IndexMap<K, V, FixedState>;

/// Keys.
pub type IndexSet<K> = indexmap::IndexSet<K, FixedState>;
