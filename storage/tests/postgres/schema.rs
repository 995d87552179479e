//! Opening and migrating: every refusal has its own error.

use std::{fs, net::TcpListener, path::Path};

use storage::{Address, Connections, OpenError, PostgresStore, Vault};

use crate::{cluster::Cluster, programs, runtime, samples::*, shared};

crate::tests!(
    a_database_is_migrated_once_and_then_opens,
    every_refusal_states_its_cause,
    a_newer_schema_is_refused_unless_it_allows_this_program,
    an_open_store_is_unavailable_once_a_migration_excludes_it,
    hosts_of_different_clusters_are_refused,
    a_wrong_password_is_refused,
    a_standby_is_refused,
    the_standbys_of_a_database_are_inspected,
    the_certificate_of_the_server_is_verified,
    every_engine_of_a_database_needs_the_same_master_key,
);

fn open(address: &Address) -> Result<PostgresStore, OpenError> {
    let one = Connections { writers: 1, readers: 1 };
    runtime().block_on(PostgresStore::open(address, one, Vault::default()))
}

fn address(text: &str) -> Address {
    text.parse().expect("a URL")
}

fn a_database_is_migrated_once_and_then_opens() {
    let (cluster, _) = shared();
    let address = address(&cluster.url(&cluster.create_database(None)));
    assert!(matches!(open(&address), Err(OpenError::SchemaOlder { found: 0, known: 1 })));
    // Several at once: one of them migrates, and all of them return when that is done.
    let migrated = runtime().block_on(async {
        let migrate = || PostgresStore::migrate(&address);
        futures_util::future::try_join3(migrate(), migrate(), migrate()).await.expect("it migrates")
    });
    let applied = [migrated.0, migrated.1, migrated.2].concat();
    assert_eq!(applied, ["initial"]);
    assert!(open(&address).is_ok());
    assert!(runtime().block_on(PostgresStore::migrate(&address)).expect("nothing to do").is_empty());
}

fn every_refusal_states_its_cause() {
    let (cluster, template) = shared();
    let url = cluster.url(template);
    let nowhere = address("postgres://till@127.0.0.1:1/till?connect_timeout=1");
    assert!(matches!(open(&nowhere), Err(OpenError::Unreachable(why)) if why.contains("refused")));
    let other = address(&cluster.url("nothing_like_it"));
    assert!(matches!(open(&other), Err(OpenError::NoDatabase { .. })));
    let stranger = address(&url.replace("till@", "stranger@"));
    assert!(matches!(open(&stranger), Err(OpenError::Authentication { .. })));
    let demanding = address(&format!("{url}?sslmode=require"));
    assert!(open(&demanding).is_ok(), "a Unix socket is never encrypted");
    cluster.sql("postgres", "CREATE ROLE reader LOGIN");
    cluster.sql(template, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    let reader = address(&url.replace("till@", "reader@"));
    match open(&reader) {
        Err(OpenError::Privilege(what)) => assert!(what.contains("INSERT") && what.contains("more"), "{what}"),
        other => panic!("{other:?}"),
    }
    let foreign = cluster.create_database(None);
    cluster.sql(&foreign, "CREATE TABLE payments (id integer)");
    let foreign = address(&cluster.url(&foreign));
    let migrated = runtime().block_on(PostgresStore::migrate(&foreign));
    assert!(matches!(migrated, Err(OpenError::Foreign)), "{migrated:?}");
    let frozen = cluster.create_database(Some(template));
    cluster.sql("postgres", &format!("ALTER DATABASE {frozen} SET default_transaction_read_only = on"));
    assert!(matches!(open(&address(&cluster.url(&frozen))), Err(OpenError::ReadOnly(_))));
    let lax = cluster.create_database(Some(template));
    cluster.sql("postgres", &format!("ALTER DATABASE {lax} SET synchronous_commit = off"));
    match open(&address(&cluster.url(&lax))) {
        Err(OpenError::NotDurable(why)) => assert!(why.starts_with("synchronous_commit "), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn a_newer_schema_is_refused_unless_it_allows_this_program() {
    let (cluster, template) = shared();
    let name = cluster.create_database(Some(template));
    let address = address(&cluster.url(&name));
    let next = |oldest: u32, level: u32| {
        let values = format!("({level}, 'later', {oldest})");
        cluster.sql(&name, &format!("INSERT INTO schema_migrations (level, name, oldest_program) VALUES {values}"));
    };
    next(1, 2);
    assert!(open(&address).is_ok(), "the migration only adds");
    next(3, 3);
    assert!(matches!(open(&address), Err(OpenError::SchemaNewer { found: 3, known: 1 })));
    let migrated = runtime().block_on(PostgresStore::migrate(&address));
    assert!(matches!(migrated, Err(OpenError::SchemaNewer { .. })));
}

fn an_open_store_is_unavailable_once_a_migration_excludes_it() {
    use storage::{ReadError, prelude::*};

    let (cluster, template) = shared();
    let name = cluster.create_database(Some(template));
    let address = address(&cluster.url(&name));
    runtime().block_on(async {
        let one = Connections { writers: 1, readers: 1 };
        let store = PostgresStore::open(&address, one, Vault::default()).await.expect("a store");
        let before = store.epoch().await.expect("the level of this program");
        let add = "INSERT INTO schema_migrations (level, name, oldest_program)";
        cluster.sql(&name, &format!("{add} VALUES (2, 'expand', 1)"));
        assert_eq!(store.epoch().await.expect("the migration only adds"), before);
        cluster.sql(&name, &format!("{add} VALUES (3, 'contract', 3)"));
        let refused = store.epoch().await;
        assert!(matches!(&refused, Err(ReadError::Unavailable(why)) if why.contains("newer version")), "{refused:?}");
        store.close().await;
    });
}

fn hosts_of_different_clusters_are_refused() {
    // A reconnection that reaches another database than before, as behind a list of hosts or a name that moved.
    let (cluster, _) = shared();
    let name = cluster.create_database(Some(&shared().1));
    let address = address(&cluster.url(&name));
    runtime().block_on(async {
        let store = PostgresStore::open(&address, Connections { writers: 1, readers: 1 }, Vault::default()).await.unwrap();
        cluster.sql(&name, "UPDATE single_values SET value = '\\x00' WHERE name = 'installation'");
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        cluster.sql(&name, end);
        use storage::prelude::*;
        let read = store.note("a").await;
        let error = read.expect_err("another database").to_string();
        assert!(error.contains("different databases"), "{error}");
    });
}

fn a_wrong_password_is_refused() {
    let mut cluster = Cluster::start(&programs(), &[]);
    let name = cluster.create_database(None);
    cluster.sql("postgres", "CREATE ROLE locked LOGIN SUPERUSER PASSWORD 'right'");
    let rules = cluster.data().join("pg_hba.conf");
    let before = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, format!("local all locked scram-sha-256\n{before}")).unwrap();
    cluster.stop();
    cluster.run(&[]);
    let url = cluster.url(&name);
    for (password, fits) in [("wrong", false), ("right", true)] {
        let address = address(&url.replace("till@", &format!("locked:{password}@")));
        let migrated = runtime().block_on(PostgresStore::migrate(&address));
        match migrated {
            Ok(applied) => assert!(fits && !applied.is_empty()),
            Err(error) => {
                assert!(!fits && matches!(error, OpenError::Authentication { .. }), "{error}");
                assert!(!error.to_string().contains(password), "{error}");
            }
        }
    }
}

fn a_standby_is_refused() {
    let mut cluster = Cluster::start(&programs(), &[]);
    let name = cluster.create_database(None);
    let address = address(&cluster.url(&name));
    runtime().block_on(PostgresStore::migrate(&address)).unwrap();
    cluster.stop();
    fs::write(cluster.data().join("standby.signal"), "").unwrap();
    cluster.run(&[]);
    assert!(matches!(open(&address), Err(OpenError::ReadOnly(_))), "{:?}", open(&address));
    let migrated = runtime().block_on(PostgresStore::migrate(&address));
    assert!(matches!(migrated, Err(OpenError::ReadOnly(_))), "{migrated:?}");
}

fn the_standbys_of_a_database_are_inspected() {
    let cluster = Cluster::start(&programs(), &[]);
    let address = address(&cluster.url(&cluster.create_database(None)));
    let runtime = runtime();
    runtime.block_on(PostgresStore::migrate(&address)).unwrap();
    let inspect = || runtime.block_on(PostgresStore::inspect(&address)).expect("a report");
    let alone = inspect();
    assert_eq!((alone.standbys, alone.is_synchronous, alone.has_fsync), (0, false, true));
    assert!(alone.version.starts_with(|digit: char| digit.is_ascii_digit()), "{alone:?}");
    let _standby = cluster.standby();
    let until = |expected: (u64, bool)| {
        let is_reached = || {
            let report = inspect();
            (report.standbys, report.is_synchronous) == expected
        };
        assert!((0..6_000).any(|_| is_reached() || pause()), "{expected:?}: {:?}", inspect());
    };
    until((1, false));
    cluster.wait_for_standby();
    until((1, true));
}

/// Waits before the next look; returns false.
fn pause() -> bool {
    runtime().block_on(tokio::time::sleep(std::time::Duration::from_millis(10)));
    false
}

fn every_engine_of_a_database_needs_the_same_master_key() {
    use storage::{MasterKey, prelude::*};

    let (cluster, template) = shared();
    let address = address(&cluster.url(&cluster.create_database(Some(template))));
    let one = Connections { writers: 1, readers: 1 };
    let open = async |byte: Option<u8>| {
        let key = byte.map(|byte| MasterKey::new([byte; 32]));
        PostgresStore::open(&address, one, Vault::new(key, None)).await
    };
    runtime().block_on(async {
        let plain = open(None).await.unwrap();
        plain.commit(register(&merchant(1))).await.unwrap();
        assert_eq!(plain.secrets().await.unwrap().plain, 1);
        plain.close().await;
        let sealed = open(Some(1)).await.unwrap();
        let secrets = sealed.secrets().await.unwrap();
        assert_eq!((secrets.plain, secrets.sealed), (0, 1));
        let stored = sealed.merchant(merchant_id(1)).await.unwrap().unwrap();
        assert_eq!(stored.secrets.current.reveal(), merchant(1).secrets.current.reveal());
        for (key, is_given) in [(None, false), (Some(2), true)] {
            let refused = open(key).await;
            assert!(
                matches!(&refused, Err(OpenError::MasterKey { is_given: given }) if *given == is_given),
                "{refused:?}"
            );
        }
        open(Some(1)).await.unwrap().close().await;
        sealed.close().await;
    });
}

fn the_certificate_of_the_server_is_verified() {
    let mut cluster = Cluster::start(&programs(), &[]);
    let name = cluster.create_database(None);
    cluster.sql("postgres", "CREATE ROLE remote LOGIN SUPERUSER PASSWORD 'right'");
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/certificates");
    for file in ["server.pem", "server.key"] {
        cluster.add_file(file, &fs::read(certificates.join(file)).unwrap());
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    cluster.stop();
    let (listen, port_setting) = ("listen_addresses=127.0.0.1", format!("port={port}"));
    cluster.run(&[listen, &port_setting, "ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key"]);
    let open = |host: &str, parameters: &str| {
        let url = format!("postgres://remote:right@{host}:{port}/{name}?{parameters}");
        runtime().block_on(PostgresStore::migrate(&address(&url)))
    };
    let root = |file: &str| format!("sslrootcert={}", certificates.join(file).display());
    for mode in ["verify-full", "verify-ca", "require"] {
        let trusted = format!("sslmode={mode}&{}", root("authority.pem"));
        let opened = open("localhost", &trusted);
        assert!(opened.is_ok(), "{mode}: {opened:?}");
        let foreign = open("localhost", &format!("sslmode={mode}&{}", root("foreign-authority.pem")));
        assert!(matches!(foreign, Err(OpenError::Tls(_))), "{mode}: {foreign:?}");
    }
    assert!(open("localhost", "sslmode=prefer").is_ok());
    let unknown = open("localhost", "sslmode=verify-full");
    assert!(matches!(unknown, Err(OpenError::Tls(_))), "{unknown:?}");
}
