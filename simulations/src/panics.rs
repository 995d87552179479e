//! Detects panics that were not injected: a bug, even where a supervisor restarts the actor.

use std::{
    cell::{Cell, RefCell},
    sync::Once,
};

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

static INSTALL: Once = Once::new();

/// Watches this thread until dropped.
pub(crate) struct Watch;

/// Begins to watch this thread: its panics are kept and not printed. Injected panics resume unwinding without a hook and
/// are not seen here.
pub(crate) fn watch() -> Watch {
    INSTALL.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_WATCHED.get() {
                SEEN.with_borrow_mut(|seen| {
                    seen.get_or_insert_with(|| info.to_string());
                });
            } else {
                before(info);
            }
        }));
    });
    SEEN.take();
    IS_WATCHED.set(true);
    Watch
}

impl Drop for Watch {
    fn drop(&mut self) {
        IS_WATCHED.set(false);
    }
}

/// Takes the first panic since the last call.
pub(crate) fn take() -> Option<String> {
    SEEN.take()
}
