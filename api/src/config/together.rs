//! Settings that must fit each other.

use super::{Config, ConfigError};

const OPERATOR_TOKENS: [&str; 2] = ["grpc.token", "grpc.previous_token"];
const SERVICE_TOKENS: [&str; 2] = ["grpc.service_token", "grpc.previous_service_token"];

impl Config {
    /// Checks what no setting shows alone.
    ///
    /// # Errors
    /// The first two that contradict each other.
    pub(super) fn check_together(&self) -> Result<(), ConfigError> {
        if self.text("fees.mode") == "split" && self.text("fees.account").is_empty() {
            return Err(ConfigError::Together("`fees.mode` is split, and `fees.account` does not say where fees go"));
        }
        if !cfg!(feature = "otlp") && !self.text("otlp.endpoint").is_empty() {
            return Err(ConfigError::Together(
                "`otlp.endpoint` is set, and this program is built without the feature otlp",
            ));
        }
        if self.text("data_dir").is_empty() {
            return Err(ConfigError::Together("`data_dir` must name a directory"));
        }
        if self.text("grpc.tls_cert").is_empty() != self.text("grpc.tls_key").is_empty() {
            return Err(ConfigError::Together("`grpc.tls_cert` and `grpc.tls_key` only go together"));
        }
        if self.text("grpc.tls_client_cert").is_empty() != self.text("grpc.tls_client_key").is_empty() {
            return Err(ConfigError::Together("`grpc.tls_client_cert` and `grpc.tls_client_key` only go together"));
        }
        if self.text("grpc.tls_cert").is_empty() && !self.text("grpc.tls_client_ca").is_empty() {
            return Err(ConfigError::Together("`grpc.tls_client_ca` needs `grpc.tls_cert` and `grpc.tls_key`"));
        }
        let mut service = SERVICE_TOKENS.iter().filter_map(|name| self.optional(name));
        if service.any(|token| OPERATOR_TOKENS.iter().any(|name| self.text(name) == token)) {
            return Err(ConfigError::Together(
                "a service token (`grpc.service_token`, `grpc.previous_service_token`) must not be a token of the \
                 operator (`grpc.token`, `grpc.previous_token`)",
            ));
        }
        Ok(())
    }
}
