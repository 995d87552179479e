//! The bearer tokens of the engine's ports.

use std::path::Path;

use super::{failure::Failure, files};
use crate::{config::Config, service::Tokens};

/// Returns the tokens that the engine's ports take.
pub(super) fn tokens(config: &Config, data: &Path) -> Result<Tokens, Failure> {
    let set = |name| config.optional(name).map(str::to_owned);
    let service = [set("grpc.service_token"), set("grpc.previous_service_token")];
    let operator = [Some(token(config, data)?), set("grpc.previous_token")];
    if let Some(both) = operator.iter().flatten().find(|token| service.iter().flatten().any(|other| other == *token)) {
        // The settings were compared with each other: this is the kept token.
        let setting =
            if service[0].as_ref() == Some(both) { "grpc.service_token" } else { "grpc.previous_service_token" };
        let why = "must not be a token of the operator, and it is the one in grpc-token".to_owned();
        return Err(Failure::Setting { setting, why });
    }
    Ok(Tokens::new(operator.into_iter().flatten(), service.into_iter().flatten()))
}

/// Returns the operator's token of the engine's ports.
pub(super) fn token(config: &Config, data: &Path) -> Result<String, Failure> {
    match config.optional("grpc.token") {
        Some(token) => Ok(token.to_owned()),
        None => files::token(data),
    }
}
