//! What a run is worth: a page for people, a line of JSON for programs.
#![expect(clippy::float_arithmetic, reason = "rates and shares of a measurement")]

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::{Args, workers::Tally};

/// The figures of one run.
#[derive(Debug)]
pub(super) struct Report {
    workload: &'static str,
    url: String,
    connections: u32,
    rate: Option<u32>,
    warmup: Duration,
    measured: Duration,
    answers: u64,
    statuses: Vec<(u16, u64)>,
    lost: Vec<(String, u64)>,
    waits_us: Waits,
    server: Option<Server>,
    limits: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Waits {
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

#[derive(Debug, Clone, Copy)]
struct Server {
    pid: u32,
    cpu: Duration,
    resident_bytes: u64,
}

impl Report {
    pub(super) fn new(args: &Args, tally: &Tally) -> Self {
        let at = |quantile| tally.waits.value_at_quantile(quantile);
        Self {
            workload: args.workload.word(),
            url: args.url.to_string().trim_end_matches('/').to_owned(),
            connections: args.connections,
            rate: args.rate.map(std::num::NonZeroU32::get),
            warmup: args.warmup,
            measured: tally.measured,
            answers: tally.waits.len(),
            statuses: tally.statuses.iter().map(|(status, count)| (*status, *count)).collect(),
            lost: tally.lost.iter().map(|(why, count)| (why.clone(), *count)).collect(),
            waits_us: Waits { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: tally.waits.max() },
            server: tally.usage.map(|usage| Server {
                pid: usage.pid,
                cpu: usage.cpu,
                resident_bytes: usage.resident_bytes,
            }),
            limits: tally.limits.clone(),
        }
    }

    pub(super) const fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the share of answers that rate limits turned away.
    pub(super) fn limited_share(&self) -> f64 {
        let limited = self.statuses.iter().find(|(status, _)| *status == 429).map_or(0, |(_, count)| *count);
        share(limited, self.answers)
    }

    /// Returns the share of requests without an answer, or with one that says no.
    pub(super) fn failed_share(&self) -> f64 {
        share(self.failed(), self.answers + self.unanswered())
    }

    fn unanswered(&self) -> u64 {
        self.lost.iter().map(|(_, count)| count).sum()
    }

    fn failed(&self) -> u64 {
        let refused = self.statuses.iter().filter(|(status, _)| *status >= 400).map(|(_, count)| count);
        refused.sum::<u64>() + self.unanswered()
    }

    fn per_second(&self) -> f64 {
        as_float(self.answers) / self.measured.as_secs_f64().max(f64::EPSILON)
    }

    /// Microseconds of the server's CPU that an answer took.
    fn cpu_us(&self, server: Server) -> f64 {
        server.cpu.as_secs_f64() * 1e6 / as_float(self.answers.max(1))
    }

    fn cores(&self, server: Server) -> f64 {
        server.cpu.as_secs_f64() / self.measured.as_secs_f64().max(f64::EPSILON)
    }

    /// Returns the page.
    pub(super) fn text(&self) -> String {
        let mut page = String::new();
        let mut row = |name: &str, text: &str| {
            let _ = writeln!(page, "{name:<10}  {text}");
        };
        let rate = self.rate.map(|rate| format!(", target {rate} a second")).unwrap_or_default();
        let seconds = self.measured.as_secs_f64();
        row(self.workload, &format!("{}, {} connections, {seconds:.1} s{rate}", self.url, self.connections));
        row("responses", &format!("{}, {:.0} a second", self.answers, self.per_second()));
        let Waits { p50, p90, p99, max } = self.waits_us;
        row("latency", &format!("p50 {}   p90 {}   p99 {}   max {}", wait(p50), wait(p90), wait(p99), wait(max)));
        let statuses: Vec<_> = self.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        row("statuses", &if statuses.is_empty() { "none".to_owned() } else { statuses.join("   ") });
        row("errors", &self.failed().to_string());
        for (why, count) in &self.lost {
            row("", &format!("{count} times: {why}"));
        }
        match self.server {
            Some(server) => {
                let (cpu, cores) = (self.cpu_us(server), self.cores(server));
                let megabytes = server.resident_bytes / 1_000_000;
                let pid = server.pid;
                row(
                    "server",
                    &format!("process {pid}: {cpu:.1} us of CPU per response, {cores:.2} cores, {megabytes} MB"),
                );
            }
            None => row("server", "not a process on this host that can be inspected"),
        }
        row("limits", self.limits.as_deref().unwrap_or("none for these requests"));
        page
    }

    /// Returns the line.
    pub(super) fn json(&self) -> Value {
        let statuses: serde_json::Map<_, _> =
            self.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
        let Waits { p50, p90, p99, max } = self.waits_us;
        json!({
            "workload": self.workload,
            "url": self.url,
            "connections": self.connections,
            "rate": self.rate,
            "warmupMs": millis(self.warmup),
            "durationMs": millis(self.measured),
            "answers": self.answers,
            "perSecond": rounded(self.per_second()),
            "waitsUs": { "p50": p50, "p90": p90, "p99": p99, "max": max },
            "statuses": statuses,
            "errors": self.failed(),
            "server": self.server.map(|server| json!({
                "pid": server.pid,
                "cpuUsPerAnswer": rounded(self.cpu_us(server)),
                "cores": rounded(self.cores(server)),
                "residentBytes": server.resident_bytes,
            })),
            "limits": self.limits,
        })
    }
}

fn as_float(count: u64) -> f64 {
    // Counts of a run are far below what a float holds exactly.
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn share(part: u64, whole: u64) -> f64 {
    as_float(part) / as_float(whole.max(1))
}

fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn wait(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..100_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => format!("{} ms", us / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::load::verdict;

    fn report(statuses: Vec<(u16, u64)>) -> Report {
        Report {
            workload: "create",
            url: "http://127.0.0.1:8080".to_owned(),
            connections: 16,
            rate: None,
            warmup: Duration::from_secs(1),
            measured: Duration::from_secs(2),
            answers: statuses.iter().map(|(_, count)| count).sum(),
            statuses,
            lost: Vec::new(),
            waits_us: Waits { p50: 900, p90: 1_250, p99: 99_900, max: 250_000 },
            server: Some(Server { pid: 7, cpu: Duration::from_secs(1), resident_bytes: 5_000_000 }),
            limits: None,
        }
    }

    #[test]
    fn a_page_says_what_was_measured() {
        let page = report(vec![(201, 1_000)]).text();
        for part in [
            "1000, 500 a second",
            "p50 900 us   p90 1.2 ms   p99 99.9 ms   max 250 ms",
            "1000.0 us of CPU per response, 0.50 cores, 5 MB",
        ] {
            assert!(page.contains(part), "{part} in:\n{page}");
        }
    }

    #[test]
    fn a_run_that_the_limits_decided_is_no_result() {
        assert!(verdict(&report(vec![(201, 900), (429, 100)])).is_err());
        assert!(verdict(&report(vec![(201, 990), (429, 10)])).is_ok());
        assert!(verdict(&report(vec![(201, 400), (500, 600)])).is_err());
        assert!(verdict(&report(vec![])).is_err());
    }
}
