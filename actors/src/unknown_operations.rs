//! Operations that a hard fork added and this program does not know: skipped, counted by name, and logged once for each.

use engine::ledger::Block;

use crate::context::Context;

/// Notes the unknown operations of irreversible blocks.
pub(crate) fn note(context: &Context, blocks: &[Block]) {
    for block in blocks {
        for (kind, count) in &block.unknown_operations {
            if context.metrics.unknown_operation(kind, *count) {
                let block_num = block.number();
                tracing::warn!(
                    kind,
                    block_num,
                    "block {block_num} has an operation of the unknown kind {kind}: it is skipped, as are all further \
                     ones; look for a newer release, and at what the last hard fork changed"
                );
            }
        }
    }
}
