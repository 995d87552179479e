//! The command line: its commands, and the exit code of the process.

use std::{io::Write as _, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};

use super::{
    admin, completions, dev, doctor, facade,
    failure::{self, Failure},
    gate, health, ledger, listen, load, man, master_key, mcp, migrate, migrate_store, pay, serve, show_config,
    simulate, store, transfer, trigger, tx, wallet,
};

/// A self-hosted payment engine for the Hive ledger.
#[derive(Debug, Parser)]
#[command(name = "hivetill", version = crate::version::text(), after_help = failure::EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole gateway with a development ledger, a demo merchant and funded accounts
    Dev(dev::Args),
    /// Run the whole gateway on the Hive ledger
    Serve(serve::Args),
    /// Run only the engine, with its gRPC port
    Engine(serve::EngineArgs),
    /// Run only the REST API and the checkout page, in front of a separate engine
    Facade(facade::Args),
    /// Create an admin and show its API key; other admin tasks are subcommands
    Admin(Box<admin::Args>),
    /// Run only a development ledger, without real money
    Ledger(ledger::Args),
    /// Sign and broadcast a transfer
    Transfer(transfer::Args),
    /// Pay a URL that responds with 402, and print the receipt
    Pay(pay::Args),
    /// Manage an agent's wallet: budgets, approvals, and a ledger of payments
    Wallet(wallet::Args),
    /// Serve the Model Context Protocol: agents pay with a wallet, merchants accept payments
    Mcp(mcp::Args),
    /// Require x402 payments in front of any HTTP API: a reverse proxy with a price for each route
    Gate(Box<gate::Args>),
    /// Forward the events of a merchant to a local URL, signed like webhooks
    Listen(listen::Args),
    /// Produce an event with play money on a development ledger
    Trigger(Box<trigger::Args>),
    /// Load a running gateway, and report throughput, latency and errors
    Load(load::Args),
    /// Inspect transactions
    Tx(tx::Args),
    /// Simulate payment lifecycles from a seed or a scenario
    Simulate(simulate::Args),
    /// Rotate the master key that encrypts webhook secrets; stop the engine first
    RotateMasterKey(master_key::Args),
    /// Create or update the schema of the PostgreSQL database of the setting store.url
    Migrate(migrate::Args),
    /// Copy the store into PostgreSQL, or from PostgreSQL into a data directory; stop every engine first
    MigrateStore(migrate_store::Args),
    /// Back up the store to a file; the engine may run
    Backup(store::BackupArgs),
    /// Restore a backup into a data directory
    Restore(store::RestoreArgs),
    /// Verify a store or a backup, and print the totals of its payments
    Verify(store::VerifyArgs),
    /// Compact the store to release unused disk space; stop the engine first
    Compact(store::CompactArgs),
    /// Export every record as a line of JSON, without secrets
    Export(store::ExportArgs),
    /// Check settings, nodes, disk, clock and webhooks, and suggest fixes
    Doctor(doctor::Args),
    /// Check whether a running gateway is ready, for the health check of a container
    Health(health::Args),
    /// Show the settings in force and the source of each, without secrets
    Config(show_config::Args),
    /// Print the completion script of a shell
    Completions(completions::Args),
    /// Print the manual page of hivetill, or write the pages of all commands to a directory
    Man(man::Args),
}

/// Runs the command line. Returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    #[cfg(unix)]
    if matches!(cli.command, Command::Simulate(_)) {
        simulate::keep_memory();
    }
    let is_silent = matches!(&cli.command, Command::Pay(args) if args.is_silent());
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        // The line of JSON on standard output contains the message.
        Err(failure) if is_silent => ExitCode::from(failure.exit_code()),
        Err(failure) => {
            // A closed standard error does not change the exit code.
            let _ = writeln!(std::io::stderr(), "hivetill: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    // Fails if another library of the process has installed a provider; any provider works.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        match command {
            Command::Dev(args) => Box::pin(dev::run(args)).await,
            Command::Serve(args) => Box::pin(serve::run(args)).await,
            Command::Engine(args) => Box::pin(serve::run_engine(args)).await,
            Command::Facade(args) => Box::pin(facade::run(args)).await,
            Command::Admin(args) => Box::pin(admin::run(*args)).await,
            Command::Ledger(args) => Box::pin(ledger::run(args)).await.map_err(|failure| match failure {
                ledger::Failure::Start(error) => failure::of_ledger(error),
                other => Failure::Other(other.to_string()),
            }),
            Command::Transfer(args) => Box::pin(transfer::run(args)).await.map_err(|e| Failure::Other(e.to_string())),
            Command::Pay(args) => Ok(Box::pin(pay::run(args)).await?),
            Command::Wallet(args) => Box::pin(wallet::run(args)).await,
            Command::Mcp(args) => Box::pin(mcp::run(args)).await,
            Command::Gate(args) => Box::pin(gate::run(*args)).await,
            Command::Listen(args) => Box::pin(listen::run(args)).await,
            Command::Trigger(args) => Box::pin(trigger::run(*args)).await,
            Command::Load(args) => Box::pin(load::run(args)).await,
            Command::Tx(args) => Box::pin(tx::run(args)).await.map_err(|e| Failure::Other(e.to_string())),
            Command::Simulate(args) => Box::pin(simulate::run(args)).await,
            Command::RotateMasterKey(args) => Box::pin(master_key::run(args)).await,
            Command::Migrate(args) => Box::pin(migrate::run(args)).await,
            Command::MigrateStore(args) => Box::pin(migrate_store::run(args)).await,
            Command::Backup(args) => Box::pin(store::backup(args)).await,
            Command::Restore(args) => Box::pin(store::restore(args)).await,
            Command::Verify(args) => Box::pin(store::verify(args)).await,
            Command::Compact(args) => Box::pin(store::compact(args)).await,
            Command::Export(args) => Box::pin(store::export(args)).await,
            Command::Doctor(args) => Box::pin(doctor::run(args)).await,
            Command::Health(args) => Box::pin(health::run(args)).await,
            Command::Config(args) => show_config::run(args),
            Command::Completions(args) => completions::run(args, Cli::command()),
            Command::Man(args) => man::run(args, Cli::command()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn command_lines_are_parsed() {
        for line in [
            "hivetill dev --listen 127.0.0.1:0 --ledger-listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --data d --block-interval 250ms --limits production --json",
            "hivetill serve --config f.toml --set session.max_active=1 --listen 127.0.0.1:0 --data d --node http://a --node http://b",
            "hivetill engine --grpc-listen 127.0.0.1:0 --data d",
            "hivetill facade --listen 127.0.0.1:0 --engine-url http://127.0.0.1:1 --base-url https://pay.example",
            "hivetill admin --name Operator --account alice --data d --json",
            "hivetill migrate --set store.url=postgres://till@127.0.0.1/till",
            "hivetill migrate-store --data d --to postgres://till@127.0.0.1/till --verify --json",
            "hivetill migrate-store --set store.url=postgres://till@127.0.0.1/till --to embedded:d",
            "hivetill backup --to b.redb --data d --json",
            "hivetill restore --from b.redb --data d --replace",
            "hivetill verify --file b.redb --json",
            "hivetill compact --data d",
            "hivetill export --data d --to e.jsonl",
            "hivetill doctor --data d --node http://a --node http://b --network dev --webhook https://a --json",
            "hivetill health --config f.toml --set listen=127.0.0.1:1 --url http://127.0.0.1:1 --live",
            "hivetill config --reference",
            "hivetill completions zsh",
            "hivetill man --to d",
            "hivetill load mixed --url http://127.0.0.1:1 --api-key k --connections 4 --duration 5s --rate 100 --json",
            "hivetill ledger --listen 127.0.0.1:0 --state f",
            "hivetill listen --forward-to http://127.0.0.1:9000/hook --api-key k --events payment.exception,x402.settled --after 0 --json",
            "hivetill trigger payment.overpaid --api-key k --control http://127.0.0.1:1 --metadata orderId=A-1 --json",
            "hivetill admin payment pay_01k --data d --json",
            "hivetill admin rotate-receipt-key --data d --json",
            "hivetill tx inspect --chain-id beeab0de00000000000000000000000000000000000000000000000000000000",
        ] {
            Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
