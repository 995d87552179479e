//! The bearer tokens of the gRPC port.

use std::path::Path;

use super::{failure::Failure, files};
use crate::{config::Config, service::Tokens};

/// Returns the valid tokens of the gRPC port.
///
/// # Errors
/// If a service token equals an operator's token.
pub(super) fn tokens(config: &Config, data: &Path) -> Result<Tokens, Failure> {
    let setting = |name| config.optional(name).map(str::to_owned);
    let service = [setting("grpc.service_token"), setting("grpc.previous_service_token")];
    let operator = [Some(token(config, data)?), setting("grpc.previous_token")];
    if let Some(both) = operator.iter().flatten().find(|token| service.iter().flatten().any(|other| other == *token)) {
        // The settings are compared with each other when they are loaded, so this token is the stored one.
        let setting =
            if service[0].as_ref() == Some(both) { "grpc.service_token" } else { "grpc.previous_service_token" };
        let reason = "must not be the operator's token in the file grpc-token".to_owned();
        return Err(Failure::Setting { setting, reason });
    }
    Ok(Tokens::new(operator.into_iter().flatten(), service.into_iter().flatten()))
}

/// Returns the operator's token.
pub(super) fn token(config: &Config, data: &Path) -> Result<String, Failure> {
    match config.optional("grpc.token") {
        Some(token) => Ok(token.to_owned()),
        None => files::token(data),
    }
}
