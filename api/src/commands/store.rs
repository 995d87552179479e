//! Commands for the store: `backup`, `restore`, `verify`, `compact`, `export`.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use engine::payment::State;
use proto::{Engine, Transport, v1};
use serde_json::{Value, json};
use storage::{Idle, Line, NewStore, OpenError, PostgresStore, Report, Row, Totals};

use super::{
    database,
    facade::remote,
    failure::Failure,
    logs, master_key,
    output::print,
    settings::{SettingsArgs, push},
    socket,
};
use crate::{config::Config, facade::currency};

/// Flags that select a store.
#[derive(Debug, clap::Args)]
struct StoreFlags {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The data directory (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl StoreFlags {
    /// Loads the settings of a command that works only on an embedded store.
    fn load_embedded(self, engine_url: Option<String>, alternative: &str) -> Result<(Config, PathBuf), Failure> {
        let (config, data) = self.load(engine_url)?;
        database::refuse(&config, alternative)?;
        Ok((config, data))
    }

    /// Loads the settings and starts logging. Returns the settings and the data directory.
    fn load(self, engine_url: Option<String>) -> Result<(Config, PathBuf), Failure> {
        let mut flags = Vec::new();
        push(&mut flags, "data_dir", self.data.map(|path| path.display().to_string()));
        push(&mut flags, "engine_url", engine_url);
        let color = self.settings.color();
        let config = self.settings.load(flags)?;
        logs::start(&config, color);
        let data = PathBuf::from(config.text("data_dir"));
        Ok((config, data))
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    #[command(flatten)]
    store: StoreFlags,
    /// File to create; must not exist (exit code 1)
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// URL of the gRPC port of an engine on another host (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The notice printed after a backup.
const MASTER_KEY_NOTICE: &str = "  The master key is not in the backup: keep a separate copy of it; webhook secrets cannot be decrypted without it\n";

/// Copies the store, of a running engine or of the data directory, into a file. The copy is verified before it is renamed to
/// its final name.
pub(super) async fn backup(args: BackupArgs) -> Result<(), Failure> {
    let alternative = "back it up with the tools of PostgreSQL, such as pg_dump or pg_basebackup";
    let (config, data) = args.store.load_embedded(args.engine_url, alternative)?;
    let mut copy = NewStore::create(&args.to).map_err(|error| match error {
        OpenError::Exists(path) => Failure::Other(format!(
            "{} already exists, and a backup does not overwrite files: use another name with --to, or move the file",
            path.display()
        )),
        error => store_failure(&args.to)(error),
    })?;
    read(&config, &data, false, |row| copy.put(row), &args.to).await?;
    copy.mark_as_copy().map_err(store_failure(&args.to))?;
    let report = copy.finish(false).map_err(store_failure(&args.to))?;
    print_report(&report, args.json, &format!("Store backed up to {}", args.to.display()))?;
    if args.json { Ok(()) } else { print(MASTER_KEY_NOTICE) }
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    store: StoreFlags,
    /// Backup file
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Replace an existing store; the previous store is renamed, not deleted
    #[arg(long)]
    replace: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Restores a backup into a data directory that no engine uses.
pub(super) async fn restore(args: RestoreArgs) -> Result<(), Failure> {
    let alternative = "restore it with the tools of PostgreSQL, such as pg_restore";
    let (config, data) = args.store.load_embedded(None, alternative)?;
    let idle = Idle::take(&data).map_err(store_failure(&data))?;
    let (report, previous) = idle.restore(&args.from, args.replace).map_err(|error| match error {
        OpenError::Exists(path) => Failure::Other(format!(
            "{} already exists: use --replace to restore the backup and rename the existing store",
            path.display()
        )),
        error => store_failure(&args.from)(error),
    })?;
    let previous = previous.map(|path| format!("; the previous store is {}", path.display())).unwrap_or_default();
    print_report(&report, args.json, &format!("Backup restored to {}{previous}", data.display()))?;
    if args.json || master_key::key_file(&config, &data).is_some() || config.optional("master_key").is_some() {
        return Ok(());
    }
    print(&format!(
        "  The master key is not in the backup: copy it to {} before you start the engine, or set master_key_file\n",
        data.join(master_key::FILE_NAME).display()
    ))
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    store: StoreFlags,
    /// Read this backup instead of the data directory
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// URL of the gRPC port of an engine on another host (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Verifies a whole store, of a running engine, of the data directory or of a backup, and prints the report.
pub(super) async fn verify(args: VerifyArgs) -> Result<(), Failure> {
    let (config, data) = args.store.load(args.engine_url)?;
    let (report, place) = match (&args.file, remote(&config)?, database::address(&config)?) {
        (Some(file), ..) => (storage::verify_file(file).map_err(store_failure(file))?, file.display().to_string()),
        (None, Some(transport), _) => (verify_running(transport).await?, "the engine's store".to_owned()),
        (None, None, Some(address)) => {
            let report = PostgresStore::verify_database(&address).await;
            (report.map_err(|source| Failure::Database { source })?, address.to_string())
        }
        (None, None, None) => {
            let report = match Idle::take_store(&data) {
                Ok(idle) => idle.verify().map_err(store_failure(&data))?,
                Err(OpenError::Locked(_)) => verify_running(socket_transport(&config, &data)?).await?,
                Err(error) => return Err(store_failure(&data)(error)),
            };
            (report, data.display().to_string())
        }
    };
    print_report(&report, args.json, &format!("{place} has no findings"))
}

#[derive(Debug, clap::Args)]
pub(super) struct CompactArgs {
    #[command(flatten)]
    store: StoreFlags,
}

/// Compacts the store: rewrites it without free pages.
pub(super) async fn compact(args: CompactArgs) -> Result<(), Failure> {
    let alternative = "PostgreSQL releases space by itself, or by VACUUM FULL";
    let (_, data) = args.store.load_embedded(None, alternative)?;
    let (before, after) = Idle::take_store(&data).and_then(|idle| idle.compact()).map_err(store_failure(&data))?;
    print(&format!("Compacted from {before} to {after} bytes\n"))
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    store: StoreFlags,
    /// Read this backup instead of the data directory
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// File to create; must not exist. By default standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// URL of the gRPC port of an engine on another host (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
}

/// Writes every record as a line of JSON, without secrets.
pub(super) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let (config, data) = args.store.load(args.engine_url)?;
    let write_failed = |error: &std::io::Error| match &args.to {
        Some(path) => Failure::File { path: path.clone(), reason: error.to_string() },
        None => Failure::Other(format!("cannot write to standard output: {error}")),
    };
    let out: Box<dyn Write + Send> = match &args.to {
        Some(path) => Box::new(File::create_new(path).map_err(|error| write_failed(&error))?),
        None => Box::new(std::io::stdout()),
    };
    let mut out = BufWriter::new(out);
    let mut damaged = 0_u64;
    let mut write_error = None;
    let mut write = |row: Result<Row, OpenError>| {
        let exported = row.map_err(|error| error.to_string());
        let exported = exported.and_then(|row| storage::export_record(&row).map_err(|error| error.to_string()));
        let line = match exported {
            Ok(Some(record)) => format!("{record}\n"),
            Ok(None) => return Ok(()),
            Err(error) => {
                damaged += 1;
                tracing::error!(error, "{error}");
                return Ok(());
            }
        };
        out.write_all(line.as_bytes()).map_err(|error| {
            let aborted = OpenError::Failed(error.to_string());
            write_error = Some(error);
            aborted
        })
    };
    let database = database::address(&config)?.filter(|_| config.optional("engine_url").is_none());
    let result = match (&args.file, database) {
        (Some(file), _) => storage::read_file(file, |row| write(Ok(row))).map_err(store_failure(file)),
        (None, Some(address)) => {
            storage::read_database(&address, write).await.map_err(|source| Failure::Database { source })
        }
        (None, None) => read(&config, &data, true, |row| write(Ok(row)), &data).await,
    };
    match write_error {
        Some(error) => return Err(write_failed(&error)),
        None => result?,
    }
    out.flush().map_err(|error| write_failed(&error))?;
    if damaged > 0 {
        return Err(Failure::Inconsistent(format!("{damaged} damaged records were omitted")));
    }
    Ok(())
}

/// Reads every row of a store: of the engine at `engine_url`, of the engine that uses the data directory, or of the data
/// directory itself. `destination` is the path in errors of `put`.
async fn read(
    config: &Config,
    data: &Path,
    salvage: bool,
    put: impl FnMut(Row) -> Result<(), OpenError>,
    destination: &Path,
) -> Result<(), Failure> {
    if let Some(transport) = remote(config)? {
        return read_running(transport, put, destination).await;
    }
    match Idle::take_store(data) {
        Ok(idle) => idle.read(salvage, put).map_err(store_failure(data)),
        Err(OpenError::Locked(_)) => read_running(socket_transport(config, data)?, put, destination).await,
        Err(error) => Err(store_failure(data)(error)),
    }
}

/// Returns the transport to the engine that uses a data directory on this host.
///
/// # Errors
/// [`Failure::InUse`] if the engine has no socket.
fn socket_transport(config: &Config, data: &Path) -> Result<Transport, Failure> {
    let hint = "it has no socket in that directory: use --engine-url URL";
    socket::transport(config, data)?.ok_or_else(|| Failure::InUse { path: data.to_owned(), hint })
}

/// Verifies the store of a running engine.
async fn verify_running(transport: Transport) -> Result<Report, Failure> {
    let response = Engine::new(transport).maintenance().verify_store(v1::VerifyStoreRequest {}).await?.into_inner();
    let known = || storage::TABLE_NAMES.into_iter().chain(storage::DATABASE_TABLE_NAMES);
    let table = |name: &str| known().find(|known| *known == name);
    let unknown =
        |what: &str| Failure::Other(format!("the engine's report has an unknown {what}; use the engine's version"));
    let currency = |number: i32| currency(number).map_err(|_| unknown("currency"));
    let state = |number: i32| match v1::PaymentStatus::try_from(number) {
        Ok(v1::PaymentStatus::Pending) => Ok(State::Pending),
        Ok(v1::PaymentStatus::Processing) => Ok(State::Processing),
        Ok(v1::PaymentStatus::Completed) => Ok(State::Completed),
        Ok(v1::PaymentStatus::Failed) => Ok(State::Failed),
        Ok(v1::PaymentStatus::UserCancelled) => Ok(State::UserCancelled),
        Ok(v1::PaymentStatus::SystemCancelled) => Ok(State::SystemCancelled),
        Ok(v1::PaymentStatus::Unspecified) | Err(_) => Err(unknown("state")),
    };
    let units = |text: &str| text.parse().map_err(|_| unknown("amount"));
    let line = |line: &v1::PaymentTotals| {
        let sums = Line {
            payments: line.payments,
            requested_units: units(&line.requested_units)?,
            paid_units: units(&line.paid_units)?,
            received_units: units(&line.received_units)?,
            refunded_units: units(&line.refunded_units)?,
        };
        Ok::<_, Failure>(((currency(line.currency)?, state(line.status)?), sums))
    };
    let lines = response.payments.iter().map(line).collect::<Result<_, _>>()?;
    let unmatched = response.unmatched.iter().map(|l| Ok((currency(l.currency)?, (l.transfers, units(&l.units)?))));
    let unmatched = unmatched.collect::<Result<_, Failure>>()?;
    Ok(Report {
        schema: response.schema,
        tables: response.tables.iter().filter_map(|size| Some((table(&size.table)?, size.rows))).collect(),
        findings: response.findings.iter().map(|finding| finding.to_string()).collect(),
        finding_count: response.finding_count,
        totals: Totals { lines, unmatched },
        scanned_block: response.scanned_block,
    })
}

/// Reads every row of a running engine. A stream that ends early is an error.
async fn read_running(
    transport: Transport,
    mut put: impl FnMut(Row) -> Result<(), OpenError>,
    destination: &Path,
) -> Result<(), Failure> {
    let mut client = Engine::new(transport).maintenance().max_decoding_message_size(usize::MAX);
    let mut messages = client.copy_store(v1::CopyStoreRequest {}).await?.into_inner();
    while let Some(message) = messages.message().await? {
        for row in message.rows {
            let row = Row { table: row.table, key: row.key.into(), value: row.value.into() };
            put(row).map_err(store_failure(destination))?;
        }
    }
    Ok(())
}

fn store_failure(path: &Path) -> impl FnOnce(OpenError) -> Failure {
    move |source| Failure::Store { path: path.to_owned(), source }
}

/// Prints the report of a verification; `success` starts the text of a report without findings.
///
/// # Errors
/// [`Failure::Inconsistent`] if there are findings.
pub(super) fn print_report(report: &Report, as_json: bool, success: &str) -> Result<(), Failure> {
    if as_json {
        print(&format!("{}\n", report_json(report)))?;
    } else {
        let rows: u64 = report.tables.iter().map(|(_, rows)| rows).sum();
        let mut text = String::new();
        if report.is_sound() {
            text = format!("{success}: {rows} rows in {} tables, schema {}\n", report.tables.len(), report.schema);
        }
        for ((currency, status), line) in &report.totals.lines {
            text.push_str(&format!(
                "  {:>9} {:<4} {:<16} requested {:>20}  paid {:>20}\n",
                line.payments,
                currency.code(),
                status.as_str(),
                decimal(line.requested_units),
                decimal(line.paid_units)
            ));
        }
        for finding in &report.findings {
            text.push_str(&format!("  finding: {finding}\n"));
        }
        print(&text)?;
    }
    if report.is_sound() {
        return Ok(());
    }
    Err(Failure::Inconsistent(format!("{} findings in the store", report.finding_count)))
}

/// Formats smallest units, 1/1000, as a decimal number.
fn decimal(units: u128) -> String {
    format!("{}.{:03}", units / 1_000, units % 1_000)
}

pub(super) fn report_json(report: &Report) -> Value {
    let lines = report.totals.lines.iter().map(|((currency, status), line)| {
        json!({
            "currency": currency.code(), "status": status.as_str(), "payments": line.payments,
            "requestedUnits": line.requested_units.to_string(), "paidUnits": line.paid_units.to_string(),
            "receivedUnits": line.received_units.to_string(), "refundedUnits": line.refunded_units.to_string(),
        })
    });
    let unmatched = report.totals.unmatched.iter().map(
        |(currency, (count, units))| json!({"currency": currency.code(), "transfers": count, "units": units.to_string()}),
    );
    let tables: serde_json::Map<_, _> =
        report.tables.iter().map(|(name, rows)| ((*name).to_owned(), json!(rows))).collect();
    json!({
        "sound": report.is_sound(), "schema": report.schema, "tables": tables, "findings": report.findings,
        "findingCount": report.finding_count, "scannedBlock": report.scanned_block,
        "payments": lines.collect::<Vec<_>>(), "unmatched": unmatched.collect::<Vec<_>>(),
        "containsMasterKey": false,
    })
}
