//! The PostgreSQL store against a real server: the model of the embedded store drives it, too. Without the programs of PostgreSQL
//! the tests report that and count as ignored.

// Samples and the model serve the tests of the embedded store, too, which use more of them.
#![allow(dead_code, reason = "shared with the tests of the embedded store")]

mod agreement;
mod behaviour;
mod cluster;
mod commits;
mod conversion;
mod duties;
#[path = "../filled.rs"]
mod filled;
#[path = "../model/mod.rs"]
mod model;
mod plans;
#[path = "../samples.rs"]
mod samples;
mod schema;

use std::{
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use storage::{Address, Connections, PostgresStore, Vault};

use cluster::{Cluster, Programs};

/// The cluster that most tests share, and a database with the schema, which others are copied from.
static CLUSTER: OnceLock<(Cluster, String)> = OnceLock::new();

/// Lists the tests of a module; the compiler warns of a test that is not listed.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(crate) fn tests() -> Vec<(&'static str, fn())> {
            vec![$((concat!(module_path!(), "::", stringify!($name)), $name as fn())),+]
        }
    };
}
pub(crate) use tests;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let programs = Programs::find();
    let all = [
        schema::tests(),
        duties::tests(),
        commits::tests(),
        conversion::tests(),
        plans::tests(),
        agreement::tests(),
        behaviour::tests(),
    ];
    let trials = all.into_iter().flatten().map(|(name, test)| {
        let (name, programs) = (name.trim_start_matches("postgres::"), programs.clone());
        Trial::ignorable_test(name, move || match &programs {
            Ok(_) => {
                // Its creation needs a runtime, and a runtime cannot start inside another.
                shared();
                test();
                Ok::<_, Failed>(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    conclusion.exit_code()
}

/// Returns the programs; tests run only where there are some.
fn programs() -> Programs {
    Programs::find().expect("tests are ignored without the programs")
}

/// Returns the shared cluster and the name of a database with the schema.
fn shared() -> &'static (Cluster, String) {
    CLUSTER.get_or_init(|| {
        let cluster = Cluster::start(&programs(), &[]);
        let template = cluster.create_database(None);
        let url: Address = cluster.url(&template).parse().expect("a URL");
        runtime().block_on(PostgresStore::migrate(&url)).expect("a new database");
        (cluster, template)
    })
}

/// Returns the address of a new database with the schema.
fn database() -> Address {
    let (cluster, template) = shared();
    cluster.url(&cluster.create_database(Some(template))).parse().expect("a URL")
}

/// Opens a store in a new database.
async fn store() -> Arc<PostgresStore> {
    let connections = Connections { writers: 1, readers: 2 };
    Arc::new(PostgresStore::open(&database(), connections, Vault::default()).await.expect("a store"))
}

/// Returns a runtime like the program's.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}
