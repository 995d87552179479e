//! `migrate`: creates or updates the schema of a PostgreSQL database.

use storage::PostgresStore;

use super::{database, failure::Failure, logs, output::print, settings::SettingsArgs};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Applies the migrations that the database of the setting `store.url` lacks.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let color = args.settings.color();
    let config = args.settings.load(Vec::new())?;
    logs::start(&config, color);
    let Some(address) = database::address(&config)? else {
        let reason = "it is empty: the embedded store needs no `hivetill migrate`".to_owned();
        return Err(Failure::Setting { setting: "store.url", reason });
    };
    let applied = PostgresStore::migrate(&address).await.map_err(|source| Failure::Database { source })?;
    if applied.is_empty() {
        return print(&format!("{address}: the schema is up to date\n"));
    }
    print(&format!("{address}: applied {}\n", applied.join(", ")))
}
