//! The pages in a real Chromium: journeys of customers and merchants, accessibility, and screenshots of every state.
//! Without Chromium, or without npm to install the accessibility checker, the tests are ignored with a reason.

mod checkout;
mod chrome;
mod dashboard;
mod references;
mod screenshots;

use std::sync::OnceLock;

use libtest_mimic::{Completion, Failed, Trial};

/// Returns every test of this module.
pub(crate) fn all() -> Vec<Trial> {
    [checkout::tests(), screenshots::tests(), dashboard::tests()].into_iter().flatten().collect()
}

/// Stops the browser.
pub(crate) fn end() {
    chrome::end();
}

/// Creates a test of a journey, which runs if there is a browser.
fn journey<F>(title: String, journey: impl Fn() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    Trial::ignorable_test(title, move || match missing() {
        Some(why) => Ok::<_, Failed>(Completion::ignored_with(why)),
        None => {
            chrome::runtime().block_on(journey());
            Ok(Completion::Completed)
        }
    })
}

/// Collects the journeys of a module under their full names.
macro_rules! journeys {
    ($($name:ident),+ $(,)?) => {
        pub(super) fn tests() -> Vec<libtest_mimic::Trial> {
            vec![$(super::journey(crate::title(module_path!(), stringify!($name)), $name)),+]
        }
    };
}
use journeys;

/// Returns what is missing to run them, if anything.
fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING
        .get_or_init(|| match chrome::program() {
            None => Some("no chromium in PATH".to_owned()),
            Some(_) => crate::interop::prepare_clients(),
        })
        .as_deref()
}
