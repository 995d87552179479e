//! What a caller is answered where the store refuses a commit or fails a read.

use storage::{CommitError, ReadError};

use crate::{
    context::Context,
    gateway::{Gateway, GatewayError},
};

impl Gateway {
    pub(crate) fn commit_failed(&self, error: CommitError) -> GatewayError {
        self.context().give_up_on(&error);
        match error {
            CommitError::Overloaded => GatewayError::Overloaded,
            CommitError::KeysFull => GatewayError::TooManyIdempotencyKeys,
            CommitError::Conflict { .. }
            | CommitError::Claimed(_)
            | CommitError::Assigned(_)
            | CommitError::Remembered(_)
            | CommitError::OnHold(_) => GatewayError::Contended,
            CommitError::QuotaReached(reached) => GatewayError::Quota(reached),
            CommitError::Unknown(_) => GatewayError::StoreFailed,
        }
    }

    pub(crate) fn read_failed(&self, error: &ReadError) -> GatewayError {
        read_failed(self.context(), error)
    }
}

/// Notes a failed read; returns what its caller is told.
pub(crate) fn read_failed(context: &Context, error: &ReadError) -> GatewayError {
    context.read_failed(error);
    match error {
        ReadError::Damaged { table, key, .. } => GatewayError::Damaged { table, key: key.clone() },
        ReadError::Failed(_) => GatewayError::StoreFailed,
    }
}
