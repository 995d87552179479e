//! Checks of settings that depend on each other.

use super::{Config, ConfigError};

const OPERATOR_TOKENS: [&str; 2] = ["grpc.token", "grpc.previous_token"];
const SERVICE_TOKENS: [&str; 2] = ["grpc.service_token", "grpc.previous_service_token"];

impl Config {
    /// Checks that the settings are consistent.
    ///
    /// # Errors
    /// The first inconsistency.
    pub(super) fn check_consistency(&self) -> Result<(), ConfigError> {
        if self.text("fees.mode") == "split" && self.text("fees.account").is_empty() {
            return Err(ConfigError::Inconsistent("`fees.mode` is split, so `fees.account` must be set"));
        }
        if !cfg!(feature = "otlp") && !self.text("otlp.endpoint").is_empty() {
            return Err(ConfigError::Inconsistent(
                "`otlp.endpoint` is set, but this build does not have the feature otlp",
            ));
        }
        if self.text("data_dir").is_empty() {
            return Err(ConfigError::Inconsistent("`data_dir` must not be empty"));
        }
        if self.text("grpc.tls_cert").is_empty() != self.text("grpc.tls_key").is_empty() {
            return Err(ConfigError::Inconsistent("`grpc.tls_cert` and `grpc.tls_key` must be set together"));
        }
        if self.text("grpc.tls_client_cert").is_empty() != self.text("grpc.tls_client_key").is_empty() {
            return Err(ConfigError::Inconsistent(
                "`grpc.tls_client_cert` and `grpc.tls_client_key` must be set together",
            ));
        }
        if self.text("grpc.tls_cert").is_empty() && !self.text("grpc.tls_client_ca").is_empty() {
            return Err(ConfigError::Inconsistent("`grpc.tls_client_ca` needs `grpc.tls_cert` and `grpc.tls_key`"));
        }
        let mut service = SERVICE_TOKENS.iter().filter_map(|name| self.optional(name));
        if service.any(|token| OPERATOR_TOKENS.iter().any(|name| self.text(name) == token)) {
            return Err(ConfigError::Inconsistent(
                "a service token (`grpc.service_token`, `grpc.previous_service_token`) must differ from the operator's \
                 tokens (`grpc.token`, `grpc.previous_token`)",
            ));
        }
        Ok(())
    }
}
