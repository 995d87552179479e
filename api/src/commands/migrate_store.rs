//! `migrate-store`: copies the store of the settings into a store of the other kind.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use serde_json::{Value, json};
use storage::{Address, Copied, Idle, OpenError};

use super::{
    database,
    failure::Failure,
    logs,
    output::print,
    progress::ProgressBar,
    settings::{SettingsArgs, push},
    store::{print_report, report_json},
};
use crate::config::{self, Config};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The data directory of an embedded store to copy (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to copy the store: postgres://USER@HOST/DATABASE, an empty database, or embedded:DIR, a directory without a
    /// store. The password of the database may be in PGPASSWORD
    #[arg(long, value_name = "TARGET")]
    to: Target,
    /// Verify the copy and compare every record with the source; findings undo the copy
    #[arg(long)]
    verify: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Where a store is copied.
#[derive(Debug, Clone)]
enum Target {
    Database(Box<Address>),
    Embedded(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("embedded:") {
            Some("") => Err("embedded: needs a directory, such as embedded:/var/lib/hivetill".to_owned()),
            Some(path) => Ok(Self::Embedded(PathBuf::from(path))),
            None if Address::is_address(text) => {
                let address: Address = text.parse().map_err(|error: OpenError| error.to_string())?;
                Ok(Self::Database(Box::new(address)))
            }
            None => Err("it must be postgres://USER@HOST/DATABASE or embedded:DIR".to_owned()),
        }
    }
}

/// Copies the store: the database of the setting `store.url`, or the embedded store of the data directory.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = Vec::new();
    push(&mut flags, "data_dir", args.data.map(|path| path.display().to_string()));
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    match (database::address(&config)?, args.to) {
        (None, Target::Database(address)) => {
            let password = config::environment_variables().into_iter().find(|(name, _)| name == "PGPASSWORD");
            let address = match password {
                Some((_, password)) => address.with_default_password(&password),
                None => *address,
            };
            to_database(&config, &address, args.verify, args.json).await
        }
        (Some(address), Target::Embedded(data)) => to_embedded(&address, &data, args.verify, args.json).await,
        (None, Target::Embedded(_)) => {
            let reason = "the store is an embedded one already: copy it with `hivetill backup` and `hivetill restore`";
            Err(Failure::Other(reason.to_owned()))
        }
        (Some(address), Target::Database(_)) => {
            Err(Failure::Other(format!("the store is {address}: copy a database with pg_dump")))
        }
    }
}

async fn to_database(config: &Config, address: &Address, verifies: bool, as_json: bool) -> Result<(), Failure> {
    let data = PathBuf::from(config.text("data_dir"));
    let idle = Idle::take_store(&data).map_err(|source| match source {
        OpenError::Locked(path) => Failure::InUse { path, hint: "stop it first" },
        source => Failure::Store { path: data.clone(), source },
    })?;
    let mut bar = ProgressBar::new();
    let copied = storage::copy_to_postgres(&Arc::new(idle), address, verifies, &mut |p| bar.show(p)).await;
    bar.clear();
    let next = "  Every engine now needs this database in store.url, and the master key of the store. The source is unchanged: \
                never start an engine on it again\n";
    report(copied, (&data.display().to_string(), &address.to_string()), next, as_json)
}

async fn to_embedded(address: &Address, data: &Path, verifies: bool, as_json: bool) -> Result<(), Failure> {
    let mut bar = ProgressBar::new();
    let copied = storage::copy_to_embedded(address, data, verifies, &mut |p| bar.show(p)).await;
    bar.clear();
    let next = "  Clear store.url, set data_dir to the directory, and copy the master key into it. The source is unchanged: never \
                start an engine on it again\n";
    report(copied, (&address.to_string(), &data.display().to_string()), next, as_json)
}

/// Prints the result of a copy.
///
/// # Errors
/// Those of the copy; [`Failure::Inconsistent`] if its verification has findings.
fn report(
    copied: Result<Copied, OpenError>,
    (from, to): (&str, &str),
    next: &str,
    as_json: bool,
) -> Result<(), Failure> {
    let copied = match copied {
        Ok(copied) => copied,
        Err(OpenError::Unsound(report)) => return print_report(&report, as_json, ""),
        Err(source) => return Err(Failure::Copy { to: to.to_owned(), source }),
    };
    if as_json {
        let report = copied.report.as_ref().map_or(Value::Null, report_json);
        return print(&format!("{}\n", json!({"from": from, "to": to, "rows": copied.rows, "report": report})));
    }
    print(&format!("{} rows copied from {from} to {to}\n", copied.rows))?;
    if let Some(report) = &copied.report {
        print_report(report, false, "The copy has no findings and equals the source")?;
    }
    print(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_database_or_a_directory() {
        assert!(matches!("embedded:/data".parse(), Ok(Target::Embedded(path)) if path == Path::new("/data")));
        assert!(matches!("postgres://till@localhost/till".parse(), Ok(Target::Database(_))));
        for (text, reason) in [
            ("/data", "must be postgres://"),
            ("embedded:", "needs a directory"),
            ("postgres://localhost/till", "names no user"),
        ] {
            let error = text.parse::<Target>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
