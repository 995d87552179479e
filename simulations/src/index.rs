//! What is looked up much and listed seldom: by hash, listed in the order it came, the same in every run.

use foldhash::fast::FixedState;

/// Values by their keys.
pub type Index<K, V> = indexmap::IndexMap<K, V, FixedState>;

/// Keys.
pub type IndexSet<K> = indexmap::IndexSet<K, FixedState>;
