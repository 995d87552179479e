//! Logging to standard error as text or JSON; and spans to an OpenTelemetry collector, in builds with the feature `otlp`.
//! Keys and secrets are never logged.

use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

use crate::config::Config;

/// Starts logging: crates of this workspace at the level of the setting `log.level`, dependencies at `warn`.
pub(super) fn start(config: &Config, color: bool) {
    let level = config.text("log.level");
    let crates = ["api", "actors", "storage", "simulations", "engine", "proto", "hivetill"];
    let crates: Vec<String> = crates.iter().map(|name| format!("{name}={level}")).collect();
    let filter = EnvFilter::new(format!("warn,{}", crates.join(",")));
    let lines = fmt::layer().with_ansi(color).with_writer(std::io::stderr);
    let lines = if config.text("log.format") == "json" {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.with_target(false).boxed()
    };
    let subscriber = registry().with(filter).with(lines);
    #[cfg(feature = "otlp")]
    let subscriber = subscriber.with(otlp::layer(config.optional("otlp.endpoint")));
    // Fails if logging was already started in this process, which keeps the first configuration.
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

    /// Returns a layer that exports spans in batches from a background thread. Spans not yet exported at exit are lost.
    pub(super) fn layer<S>(endpoint: Option<&str>) -> Option<OpenTelemetryLayer<S, SdkTracer>>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint?).build();
        let exporter = match exporter {
            Ok(exporter) => exporter,
            Err(error) => {
                // Logging has not started yet.
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("hivetill: spans are not exported: {error}\n"),
                );
                return None;
            }
        };
        let resource = Resource::builder().with_service_name("hivetill").build();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Some(tracing_opentelemetry::layer().with_tracer(provider.tracer("hivetill")))
    }
}
