//! The store as a file: `backup` while the engine runs, `restore`, `verify`, `compact`, `export`.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use engine::payment::State;
use proto::{Engine, Transport, v1};
use serde_json::{Value, json};
use storage::{Books, Idle, Line, NewStore, OpenError, Report, Row};

use super::{
    facade::remote,
    failure::Failure,
    local, logs, master_key,
    output::say,
    settings::{SettingsArgs, push},
};
use crate::{config::Config, facade::currency};

/// Which store a command is about.
#[derive(Debug, clap::Args)]
struct Which {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The data directory (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Which {
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
    which: Which,
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

/// What a backup says besides its report.
const NO_KEY_IN_IT: &str = "  The master key is not in the backup: keep a separate copy of it; webhook secrets cannot be decrypted without it\n";

/// Copies the store of an engine, running or not, into a file that is verified before it has its name.
pub(super) async fn backup(args: BackupArgs) -> Result<(), Failure> {
    let (config, data) = args.which.load(args.engine_url)?;
    let mut copy = NewStore::create(&args.to).map_err(|error| match error {
        OpenError::Exists(path) => Failure::Other(format!(
            "{} already exists, and a backup does not overwrite files: use another name with --to, or move the file",
            path.display()
        )),
        error => of(&args.to)(error),
    })?;
    read(&config, &data, false, |row| copy.put(row), &args.to).await?;
    copy.mark_as_copy().map_err(of(&args.to))?;
    let report = copy.finish(false).map_err(of(&args.to))?;
    tell(&report, args.json, &format!("Store backed up to {}", args.to.display()))?;
    if args.json { Ok(()) } else { say(NO_KEY_IN_IT) }
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    which: Which,
    /// Backup file
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Replace an existing store, which is kept under another name
    #[arg(long)]
    replace: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Puts a backup into a data directory that no engine has open.
pub(super) async fn restore(args: RestoreArgs) -> Result<(), Failure> {
    let (config, data) = args.which.load(None)?;
    let idle = Idle::take(&data).map_err(of(&data))?;
    let (report, kept) = idle.restore(&args.from, args.replace).map_err(|error| match error {
        OpenError::Exists(path) => Failure::Other(format!(
            "{} already exists: --replace restores the backup and keeps that store under another name",
            path.display()
        )),
        error => of(&args.from)(error),
    })?;
    let kept = kept.map(|path| format!("; the previous store is {}", path.display())).unwrap_or_default();
    tell(&report, args.json, &format!("Backup restored to {}{kept}", data.display()))?;
    if args.json || master_key::file_in_force(&config, &data).is_some() || config.optional("master_key").is_some() {
        return Ok(());
    }
    say(&format!(
        "  The master key is not in a backup: put that of its gateway into {} before the start, or name it in \
         master_key_file\n",
        data.join(master_key::FILE_NAME).display()
    ))
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    which: Which,
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

/// Reads a whole store, of an engine that runs or does not, and says whether anything in it is wrong.
pub(super) async fn verify(args: VerifyArgs) -> Result<(), Failure> {
    let (config, data) = args.which.load(args.engine_url)?;
    let report = match (&args.file, remote(&config)?) {
        (Some(file), _) => storage::verify_file(file).map_err(of(file))?,
        (None, Some(transport)) => ask_for_report(transport).await?,
        (None, None) => match Idle::take_store(&data) {
            Ok(idle) => idle.verify().map_err(of(&data))?,
            Err(OpenError::Locked(_)) => ask_for_report(of_this_machine(&config, &data)?).await?,
            Err(error) => return Err(of(&data)(error)),
        },
    };
    let what = args.file.unwrap_or(data);
    tell(&report, args.json, &format!("{} has no findings", what.display()))
}

#[derive(Debug, clap::Args)]
pub(super) struct CompactArgs {
    #[command(flatten)]
    which: Which,
}

/// Writes the store anew, without the room that was freed in it.
pub(super) async fn compact(args: CompactArgs) -> Result<(), Failure> {
    let (_, data) = args.which.load(None)?;
    let (before, after) = Idle::take_store(&data).and_then(|idle| idle.compact()).map_err(of(&data))?;
    say(&format!("Compacted from {before} to {after} bytes\n"))
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    which: Which,
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
    let (config, data) = args.which.load(args.engine_url)?;
    let unwritable = |error: &std::io::Error| match &args.to {
        Some(path) => Failure::File { path: path.clone(), why: error.to_string() },
        None => Failure::Other(format!("cannot write to the standard output: {error}")),
    };
    let out: Box<dyn Write> = match &args.to {
        Some(path) => Box::new(File::create_new(path).map_err(|error| unwritable(&error))?),
        None => Box::new(std::io::stdout().lock()),
    };
    let mut out = BufWriter::new(out);
    let mut damaged = 0_u64;
    let mut broken = None;
    let write = |row: Row| {
        let line = match storage::export_record(&row) {
            Ok(Some(record)) => format!("{record}\n"),
            Ok(None) => return Ok(()),
            Err(error) => {
                damaged += 1;
                tracing::error!(%error, "{error}");
                return Ok(());
            }
        };
        out.write_all(line.as_bytes()).map_err(|error| {
            let refused = OpenError::Failed(error.to_string());
            broken = Some(error);
            refused
        })
    };
    let outcome = match &args.file {
        Some(file) => storage::read_file(file, write).map_err(of(file)),
        None => read(&config, &data, true, write, &data).await,
    };
    match broken {
        Some(error) => return Err(unwritable(&error)),
        None => outcome?,
    }
    out.flush().map_err(|error| unwritable(&error))?;
    if damaged > 0 {
        return Err(Failure::Unsound(format!("{damaged} damaged records were omitted")));
    }
    Ok(())
}

/// Hands on every row: of the engine that is named, of the one that has the data directory open, or of the directory.
async fn read(
    config: &Config,
    data: &Path,
    salvage: bool,
    take: impl FnMut(Row) -> Result<(), OpenError>,
    what: &Path,
) -> Result<(), Failure> {
    if let Some(transport) = remote(config)? {
        return copy(transport, take, what).await;
    }
    match Idle::take_store(data) {
        Ok(idle) => idle.read(salvage, take).map_err(of(data)),
        Err(OpenError::Locked(_)) => copy(of_this_machine(config, data)?, take, what).await,
        Err(error) => Err(of(data)(error)),
    }
}

/// Returns the way to the engine that has a data directory of this machine open.
fn of_this_machine(config: &Config, data: &Path) -> Result<Transport, Failure> {
    let hint = "it has no socket in that directory: use --engine-url URL";
    local::running(config, data)?.ok_or_else(|| Failure::InUse { path: data.to_owned(), hint })
}

/// Has a running engine verify its store.
async fn ask_for_report(transport: Transport) -> Result<Report, Failure> {
    let answer = Engine::new(transport).maintenance().verify_store(v1::VerifyStoreRequest {}).await?.into_inner();
    let table = |name: &str| storage::TABLE_NAMES.into_iter().find(|known| *known == name);
    let unknown =
        |what: &str| Failure::Other(format!("the engine's report has an unknown {what}; use its own version"));
    let currency = |wire: i32| currency(wire).map_err(|_| unknown("currency"));
    let state = |wire: i32| match v1::PaymentStatus::try_from(wire) {
        Ok(v1::PaymentStatus::Pending) => Ok(State::Pending),
        Ok(v1::PaymentStatus::Processing) => Ok(State::Processing),
        Ok(v1::PaymentStatus::Completed) => Ok(State::Completed),
        Ok(v1::PaymentStatus::Failed) => Ok(State::Failed),
        Ok(v1::PaymentStatus::UserCancelled) => Ok(State::UserCancelled),
        Ok(v1::PaymentStatus::SystemCancelled) => Ok(State::SystemCancelled),
        Ok(v1::PaymentStatus::Unspecified) | Err(_) => Err(unknown("state")),
    };
    let units = |text: &str| text.parse().map_err(|_| unknown("amount"));
    let line = |line: &v1::BookLine| {
        let sums = Line {
            payments: line.payments,
            asked_units: units(&line.asked_units)?,
            paid_units: units(&line.paid_units)?,
            received_units: units(&line.received_units)?,
            refunded_units: units(&line.refunded_units)?,
        };
        Ok::<_, Failure>(((currency(line.currency)?, state(line.status)?), sums))
    };
    let lines = answer.books.iter().map(line).collect::<Result<_, _>>()?;
    let unmatched = answer.unmatched.iter().map(|l| Ok((currency(l.currency)?, (l.transfers, units(&l.units)?))));
    let unmatched = unmatched.collect::<Result<_, Failure>>()?;
    Ok(Report {
        schema: answer.schema,
        tables: answer.tables.iter().filter_map(|length| Some((table(&length.table)?, length.rows))).collect(),
        findings: answer.findings.iter().map(|finding| finding.to_string()).collect(),
        finding_count: answer.finding_count,
        books: Books { lines, unmatched },
        scanned_block: answer.scanned_block,
    })
}

/// Takes the rows of a running engine. What ends too early ends with an error, never as a whole.
async fn copy(
    transport: Transport,
    mut take: impl FnMut(Row) -> Result<(), OpenError>,
    what: &Path,
) -> Result<(), Failure> {
    let mut client = Engine::new(transport).maintenance().max_decoding_message_size(usize::MAX);
    let mut messages = client.copy_store(v1::CopyStoreRequest {}).await?.into_inner();
    while let Some(message) = messages.message().await? {
        for row in message.rows {
            take(Row { table: row.table, key: row.key.into(), value: row.value.into() }).map_err(of(what))?;
        }
    }
    Ok(())
}

fn of(path: &Path) -> impl FnOnce(OpenError) -> Failure {
    move |source| Failure::Store { path: path.to_owned(), source }
}

/// Tells what a verification found; what is wrong is a failure.
fn tell(report: &Report, as_json: bool, done: &str) -> Result<(), Failure> {
    if as_json {
        say(&format!("{}\n", report_json(report)))?;
    } else {
        let rows: u64 = report.tables.iter().map(|(_, rows)| rows).sum();
        let mut text = String::new();
        if report.is_sound() {
            text = format!("{done}: {rows} rows in {} tables, schema {}\n", report.tables.len(), report.schema);
        }
        for ((currency, status), line) in &report.books.lines {
            text.push_str(&format!(
                "  {:>9} {:<4} {:<16} asked {:>20}  paid {:>20}\n",
                line.payments,
                currency.code(),
                status.as_str(),
                decimal(line.asked_units),
                decimal(line.paid_units)
            ));
        }
        for finding in &report.findings {
            text.push_str(&format!("  wrong: {finding}\n"));
        }
        say(&text)?;
    }
    if report.is_sound() {
        return Ok(());
    }
    Err(Failure::Unsound(format!("{} findings in the store", report.finding_count)))
}

/// Writes thousandths as a decimal.
fn decimal(units: u128) -> String {
    format!("{}.{:03}", units / 1_000, units % 1_000)
}

fn report_json(report: &Report) -> Value {
    let lines = report.books.lines.iter().map(|((currency, status), line)| {
        json!({
            "currency": currency.code(), "status": status.as_str(), "payments": line.payments,
            "askedUnits": line.asked_units.to_string(), "paidUnits": line.paid_units.to_string(),
            "receivedUnits": line.received_units.to_string(), "refundedUnits": line.refunded_units.to_string(),
        })
    });
    let unmatched = report.books.unmatched.iter().map(
        |(currency, (count, units))| json!({"currency": currency.code(), "transfers": count, "units": units.to_string()}),
    );
    let tables: serde_json::Map<_, _> =
        report.tables.iter().map(|(name, rows)| ((*name).to_owned(), json!(rows))).collect();
    json!({
        "sound": report.is_sound(), "schema": report.schema, "tables": tables, "findings": report.findings,
        "findingCount": report.finding_count, "scannedBlock": report.scanned_block,
        "books": lines.collect::<Vec<_>>(), "unmatched": unmatched.collect::<Vec<_>>(),
        "containsMasterKey": false,
    })
}
