//! The report of a load test, as text or as a line of JSON.
#![expect(clippy::float_arithmetic, reason = "rates and shares of a measurement")]

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::{args::Args, workers::Measurement};

/// The results of a run.
#[derive(Debug)]
pub(super) struct Report {
    workload: &'static str,
    url: String,
    connections: u32,
    rate: Option<u32>,
    warmup: Duration,
    measured: Duration,
    responses: u64,
    statuses: Vec<(u16, u64)>,
    failures: Vec<(String, u64)>,
    latency_us: Latency,
    server: Option<Server>,
    limits: Option<String>,
    /// The same requests to the upstream of a gate, without the gate and without payments.
    upstream: Option<Box<Self>>,
}

#[derive(Debug, Clone, Copy)]
struct Latency {
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
    pub(super) fn new(args: &Args, measurement: &Measurement) -> Self {
        let at = |quantile| measurement.latencies.value_at_quantile(quantile);
        Self {
            workload: args.workload.as_str(),
            url: args.url.to_string().trim_end_matches('/').to_owned(),
            connections: args.connections,
            rate: args.rate.map(std::num::NonZeroU32::get),
            warmup: args.warmup,
            measured: measurement.measured,
            responses: measurement.latencies.len(),
            statuses: measurement.statuses.iter().map(|(status, count)| (*status, *count)).collect(),
            failures: measurement.failures.iter().map(|(error, count)| (error.clone(), *count)).collect(),
            latency_us: Latency { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: measurement.latencies.max() },
            server: measurement.usage.map(|usage| Server {
                pid: usage.pid,
                cpu: usage.cpu,
                resident_bytes: usage.resident_bytes,
            }),
            limits: measurement.limits.clone(),
            upstream: None,
        }
    }

    /// Adds the report of the upstream.
    pub(super) fn compared_with(self, upstream: Option<Self>) -> Self {
        Self { upstream: upstream.map(Box::new), ..self }
    }

    pub(super) const fn responses(&self) -> u64 {
        self.responses
    }

    /// Returns the share of responses with status 429.
    pub(super) fn limited_share(&self) -> f64 {
        let limited = self.statuses.iter().find(|(status, _)| *status == 429).map_or(0, |(_, count)| *count);
        share(limited, self.responses)
    }

    /// Returns the share of requests without a response or with an error status.
    pub(super) fn failed_share(&self) -> f64 {
        share(self.failed(), self.responses + self.without_response())
    }

    fn without_response(&self) -> u64 {
        self.failures.iter().map(|(_, count)| count).sum()
    }

    fn failed(&self) -> u64 {
        let refused = self.statuses.iter().filter(|(status, _)| *status >= 400).map(|(_, count)| count);
        refused.sum::<u64>() + self.without_response()
    }

    fn per_second(&self) -> f64 {
        as_float(self.responses) / self.measured.as_secs_f64().max(f64::EPSILON)
    }

    /// Returns the server's CPU time per response in microseconds.
    fn cpu_us(&self, server: Server) -> f64 {
        server.cpu.as_secs_f64() * 1e6 / as_float(self.responses.max(1))
    }

    /// Returns the rate as a share of the upstream's.
    fn ratio(&self, upstream: &Self) -> f64 {
        self.per_second() / upstream.per_second().max(f64::EPSILON)
    }

    fn cores(&self, server: Server) -> f64 {
        server.cpu.as_secs_f64() / self.measured.as_secs_f64().max(f64::EPSILON)
    }

    /// Returns the report as text.
    pub(super) fn text(&self) -> String {
        let mut report = String::new();
        let mut row = |name: &str, text: &str| {
            let _ = writeln!(report, "{name:<10}  {text}");
        };
        let rate = self.rate.map(|rate| format!(", target {rate} a second")).unwrap_or_default();
        let seconds = self.measured.as_secs_f64();
        row(self.workload, &format!("{}, {} connections, {seconds:.1} s{rate}", self.url, self.connections));
        row("responses", &format!("{}, {:.0} a second", self.responses, self.per_second()));
        let Latency { p50, p90, p99, max } = self.latency_us;
        row(
            "latency",
            &format!("p50 {}   p90 {}   p99 {}   max {}", latency(p50), latency(p90), latency(p99), latency(max)),
        );
        let statuses: Vec<_> = self.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        row("statuses", &if statuses.is_empty() { "none".to_owned() } else { statuses.join("   ") });
        row("errors", &self.failed().to_string());
        for (error, count) in &self.failures {
            row("", &format!("{count} times: {error}"));
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
            None => row("server", "no usage: not a process on this host that can be inspected"),
        }
        row("limits", self.limits.as_deref().unwrap_or("none for these requests"));
        if let Some(upstream) = &self.upstream {
            let Latency { p50, p99, .. } = upstream.latency_us;
            let (rate, errors) = (upstream.per_second(), upstream.failed());
            let cpu = upstream.server.map(|server| format!(", {:.1} us of CPU per response", upstream.cpu_us(server)));
            row("upstream", &format!("{}, {} responses, {errors} errors", upstream.url, upstream.responses));
            row(
                "",
                &format!("{rate:.0} a second   p50 {}   p99 {}{}", latency(p50), latency(p99), cpu.unwrap_or_default()),
            );
            row("ratio", &format!("{:.4} of the upstream's rate", self.ratio(upstream)));
        }
        report
    }

    /// Returns the report as JSON.
    pub(super) fn json(&self) -> Value {
        let statuses: serde_json::Map<_, _> =
            self.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
        let Latency { p50, p90, p99, max } = self.latency_us;
        let mut json = json!({
            "workload": self.workload,
            "url": self.url,
            "connections": self.connections,
            "rate": self.rate,
            "warmupMs": millis(self.warmup),
            "durationMs": millis(self.measured),
            "responses": self.responses,
            "perSecond": rounded(self.per_second()),
            "latencyUs": { "p50": p50, "p90": p90, "p99": p99, "max": max },
            "statuses": statuses,
            "errors": self.failed(),
            "server": self.server.map(|server| json!({
                "pid": server.pid,
                "cpuUsPerResponse": rounded(self.cpu_us(server)),
                "cores": rounded(self.cores(server)),
                "residentBytes": server.resident_bytes,
            })),
            "limits": self.limits,
        });
        if let Some(upstream) = &self.upstream {
            json["upstream"] = upstream.json();
            json["ratio"] = ((self.ratio(upstream) * 10_000.0).round() / 10_000.0).into();
        }
        json
    }
}

fn as_float(count: u64) -> f64 {
    // Counts of a run fit into 32 bits.
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

fn latency(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..100_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => format!("{} ms", us / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::load::check_validity;

    fn report(statuses: Vec<(u16, u64)>) -> Report {
        Report {
            workload: "create",
            url: "http://127.0.0.1:8080".to_owned(),
            connections: 16,
            rate: None,
            warmup: Duration::from_secs(1),
            measured: Duration::from_secs(2),
            responses: statuses.iter().map(|(_, count)| count).sum(),
            statuses,
            failures: Vec::new(),
            latency_us: Latency { p50: 900, p90: 1_250, p99: 99_900, max: 250_000 },
            server: Some(Server { pid: 7, cpu: Duration::from_secs(1), resident_bytes: 5_000_000 }),
            limits: None,
            upstream: None,
        }
    }

    #[test]
    fn a_gate_is_compared_with_its_upstream() {
        let upstream = report(vec![(200, 2_000)]);
        let gate = report(vec![(200, 50)]).compared_with(Some(upstream));
        assert_eq!((&gate.json()["ratio"], &gate.json()["upstream"]["responses"]), (&json!(0.025), &json!(2_000)));
        assert_eq!(report(vec![(200, 50)]).json().get("ratio"), None);
        let text = gate.text();
        for part in
            ["1000 a second   p50 900 us   p99 99.9 ms, 500.0 us of CPU per response", "0.0250 of the upstream's"]
        {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }

    #[test]
    fn the_text_has_throughput_latency_and_cpu_usage() {
        let text = report(vec![(201, 1_000)]).text();
        for part in [
            "1000, 500 a second",
            "p50 900 us   p90 1.2 ms   p99 99.9 ms   max 250 ms",
            "1000.0 us of CPU per response, 0.50 cores, 5 MB",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }

    #[test]
    fn rate_limited_and_failed_runs_are_invalid() {
        assert!(check_validity(&report(vec![(201, 900), (429, 100)])).is_err());
        assert!(check_validity(&report(vec![(201, 990), (429, 10)])).is_ok());
        assert!(check_validity(&report(vec![(201, 400), (500, 600)])).is_err());
        assert!(check_validity(&report(vec![])).is_err());
    }
}
