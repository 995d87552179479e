//! Operations that a hard fork added and this version does not support: skipped, counted by name, and each logged once.

use std::collections::BTreeMap;

use crate::context::Context;

/// Records the unknown operations of an irreversible block, or its unknown virtual ones.
pub(crate) fn note(context: &Context, block_num: u32, kinds: &BTreeMap<String, u32>) {
    for (kind, count) in kinds {
        if context.metrics.unknown_operation(kind, *count) {
            tracing::warn!(
                kind,
                block_num,
                "block {block_num} has an operation of the unknown kind {kind}: skipped, like all further ones of this \
                 kind; check for a newer release, and what the last hard fork changed"
            );
        }
    }
}
