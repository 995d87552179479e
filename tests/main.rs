//! Black-box tests: real processes, real HTTP, gRPC and JSON-RPC. One test binary, run by `cargo test`.

// Tests use `harness` only. Nothing here depends on the implementation, except `tidy`, which reads the sources.

mod admin;
mod agents;
mod billing;
mod browser;
mod checkout;
mod compliance;
mod dashboard;
mod dashboard_operations;
mod deliveries;
mod documentation;
mod endpoints;
mod events;
mod gate;
mod golden;
mod grpc;
mod grpc_access;
mod grpc_port;
mod hardfork;
mod harness;
mod hbd_peg;
mod idempotency;
mod interop;
mod keys;
mod ledgers;
mod limits;
mod listen;
mod load;
mod merchants;
mod modes;
mod openapi;
mod operations;
mod operator;
mod ownership;
mod packages;
mod payments;
mod postgres;
mod reconciliation;
mod recovery;
mod reliability;
mod restart;
mod simulate;
mod spec;
mod tidy;
mod tutorials;
mod two_processes;
mod unmatched;
mod wallet;
mod webhooks;
mod x402;

use std::{cmp::Reverse, num::NonZero, process::ExitCode, sync::Mutex, time::Duration};

/// Lists the tests of a module under their full names; the compiler warns of unlisted tests.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(crate) fn tests() -> Vec<libtest_mimic::Trial> {
            vec![$(crate::trial(module_path!(), stringify!($name), $name)),+]
        }
    };
}
pub(crate) use tests;

/// The duration of each test.
static DURATIONS: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());
/// Number of slowest tests to print.
const SLOWEST: usize = 12;

fn trial(module: &str, name: &str, test: fn()) -> libtest_mimic::Trial {
    let title = title(module, name);
    libtest_mimic::Trial::test(title.clone(), move || {
        let watch = harness::Stopwatch::start();
        test();
        DURATIONS.lock().expect("nothing panics with the lock").push((watch.elapsed(), title));
        Ok(())
    })
}

/// Replaces a test that does not run on the store of this run with one that reports why.
fn on_this_store(trial: libtest_mimic::Trial) -> libtest_mimic::Trial {
    match harness::reason_to_skip(trial.name()) {
        Some(why) => libtest_mimic::Trial::ignorable_test(trial.name().to_owned(), move || {
            Ok(libtest_mimic::Completion::ignored_with(why))
        }),
        None => trial,
    }
}

#[allow(clippy::print_stdout, reason = "a report of the tests")]
fn print_slowest() {
    let mut durations = DURATIONS.lock().expect("nothing panics with the lock");
    durations.sort_by_key(|(took, _)| Reverse(*took));
    for (took, title) in durations.iter().take(SLOWEST).filter(|_| durations.len() > SLOWEST) {
        println!("{:>6.1} s  {title}", took.as_secs_f64());
    }
}

/// Returns the name of a test as the standard harness prints it, without the crate.
fn title(module: &str, name: &str) -> String {
    let module = module.split_once("::").map_or(module, |(_, inner)| inner);
    format!("{module}::{name}")
}

fn main() -> ExitCode {
    let mut arguments = libtest_mimic::Arguments::from_args();
    // Tests mostly wait for processes, blocks and deadlines: three run per core.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    arguments.test_threads.get_or_insert(cores * 3);
    let all = [
        tidy::all(),
        spec::all(),
        merchants::tests(),
        modes::tests(),
        keys::tests(),
        openapi::tests(),
        operations::all(),
        admin::tests(),
        payments::all(),
        postgres::tests(),
        hbd_peg::tests(),
        unmatched::tests(),
        reconciliation::tests(),
        ownership::tests(),
        packages::tests(),
        compliance::tests(),
        billing::tests(),
        idempotency::tests(),
        checkout::tests(),
        restart::tests(),
        dashboard::tests(),
        operator::tests(),
        dashboard_operations::tests(),
        webhooks::tests(),
        deliveries::tests(),
        endpoints::tests(),
        documentation::tests(),
        events::tests(),
        ledgers::tests(),
        hardfork::tests(),
        limits::tests(),
        listen::tests(),
        load::tests(),
        recovery::tests(),
        reliability::all(),
        simulate::tests(),
        tutorials::all(),
        two_processes::tests(),
        grpc::tests(),
        grpc_access::tests(),
        grpc_port::tests(),
        golden::tests(),
        agents::tests(),
        interop::tests(),
        x402::all(),
        wallet::all(),
        gate::all(),
        browser::all(),
    ];
    let all = all.into_iter().flatten().map(on_this_store);
    let conclusion = libtest_mimic::run(&arguments, all.collect());
    print_slowest();
    browser::end();
    harness::end();
    conclusion.exit_code()
}
