//! Log lines: to the standard error, as text or JSON; and spans to a collector, where the program is built for it. Keys
//! and secrets never reach them.

use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

use crate::config::Config;

/// Starts logging. Our own crates log at the chosen level, others only what is wrong with them.
pub(super) fn start(config: &Config, color: bool) {
    let level = config.text("log.level");
    let ours = ["api", "actors", "storage", "simulations", "engine", "proto", "hivetill"];
    let ours: Vec<String> = ours.iter().map(|name| format!("{name}={level}")).collect();
    let filter = EnvFilter::new(format!("warn,{}", ours.join(",")));
    let lines = fmt::layer().with_ansi(color).with_writer(std::io::stderr);
    let lines = if config.text("log.format") == "json" {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.with_target(false).boxed()
    };
    let subscriber = registry().with(filter).with(lines);
    #[cfg(feature = "otlp")]
    let subscriber = subscriber.with(otlp::layer(config.optional("otlp.endpoint")));
    // A second start in one process finds the first at work; that is as good.
    let _ = subscriber.try_init();
}

#[cfg(feature = "otlp")]
mod otlp {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
    use opentelemetry_sdk::{
        Resource,
        trace::{SdkTracer, SdkTracerProvider},
    };
    use tracing::Subscriber;
    use tracing_opentelemetry::OpenTelemetryLayer;
    use tracing_subscriber::registry::LookupSpan;

    /// Sends spans in batches, from a thread of its own; what a process that ends has not sent yet is lost.
    pub(super) fn layer<S>(endpoint: Option<&str>) -> Option<OpenTelemetryLayer<S, SdkTracer>>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint?).build();
        let exporter = match exporter {
            Ok(exporter) => exporter,
            Err(error) => {
                // Nothing logs yet.
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("hivetill: spans are not sent: {error}\n"),
                );
                return None;
            }
        };
        let resource = Resource::builder().with_service_name("hivetill").build();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Some(tracing_opentelemetry::layer().with_tracer(provider.tracer("hivetill")))
    }
}
