//! Log lines: to the standard error, as text or JSON. Keys and secrets never reach them.

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::Config;

/// Starts logging. Our own crates log at the chosen level, others only what is wrong with them.
pub(super) fn start(config: &Config, color: bool) {
    let level = config.text("log.level");
    let ours = ["api", "actors", "storage", "simulations", "engine", "proto", "hivetill"];
    let ours: Vec<String> = ours.iter().map(|name| format!("{name}={level}")).collect();
    let filter = EnvFilter::new(format!("warn,{}", ours.join(",")));
    let subscriber = fmt().with_env_filter(filter).with_ansi(color).with_writer(std::io::stderr);
    // A second start in one process finds the first at work; that is as good.
    let _ = if config.text("log.format") == "json" {
        subscriber.json().flatten_event(true).try_init()
    } else {
        subscriber.with_target(false).try_init()
    };
}
