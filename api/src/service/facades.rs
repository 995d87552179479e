//! State that facades share: dashboard sessions, and lockouts after invalid API keys.

use std::time::Duration;

use actors::{LockoutPolicy, MAX_SEALED_BYTES, SessionId};
use proto::{
    ApiError, Reason,
    v1::{self, facade_service_server::FacadeService},
};
use tonic::{Request, Response, Status};

use super::{Service, convert::error};

/// Reads the id of a session.
fn session_id(bytes: &[u8]) -> Result<SessionId, ApiError> {
    bytes.try_into().map_err(|_| ApiError::field("session_id", "must have 32 bytes"))
}

/// Reads the digest of a client.
fn client(bytes: &[u8]) -> Result<u128, ApiError> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| ApiError::field("client", "must have 16 bytes"))?;
    Ok(u128::from_be_bytes(bytes))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads when a client is locked out.
fn policy(message: &v1::RecordInvalidKeyRequest) -> Result<LockoutPolicy, ApiError> {
    /// The longest duration of a policy; the settings allow less.
    const MAX: Duration = Duration::from_secs(366 * 86_400);
    let duration = |field: &str, millis: u64| {
        let duration = Duration::from_millis(millis);
        let is_valid = !duration.is_zero() && duration <= MAX;
        is_valid.then_some(duration).ok_or_else(|| ApiError::field(field, "must be between a millisecond and a year"))
    };
    if message.burst == 0 {
        return Err(ApiError::field("burst", "must be at least 1"));
    }
    Ok(LockoutPolicy {
        burst: message.burst,
        window: duration("window_ms", message.window_ms)?,
        lockout: duration("lockout_ms", message.lockout_ms)?,
    })
}

#[tonic::async_trait]
impl FacadeService for Service {
    async fn open_dashboard_session(
        &self,
        request: Request<v1::OpenDashboardSessionRequest>,
    ) -> Result<Response<v1::OpenDashboardSessionResponse>, Status> {
        let (merchant, _) = self.authenticate(&request, None).await?;
        let message = request.into_inner();
        let id = session_id(&message.session_id)?;
        if message.sealed_api_key.len() > MAX_SEALED_BYTES {
            let violation = format!("must have at most {MAX_SEALED_BYTES} bytes");
            return Err(ApiError::field("sealed_api_key", violation).into());
        }
        let sealed = message.sealed_api_key.to_vec();
        self.engine.facades.open_session(id, merchant.id, sealed).await.map_err(error)?;
        Ok(Response::new(v1::OpenDashboardSessionResponse {}))
    }

    async fn get_dashboard_session(
        &self,
        request: Request<v1::GetDashboardSessionRequest>,
    ) -> Result<Response<v1::GetDashboardSessionResponse>, Status> {
        let id = session_id(&request.get_ref().session_id)?;
        let found = self.engine.facades.session(&id).await.map_err(error)?;
        let found = found.ok_or_else(|| ApiError::with_message(Reason::NotFound, "no such session"))?;
        Ok(Response::new(v1::GetDashboardSessionResponse {
            merchant_id: found.merchant.to_string(),
            sealed_api_key: found.sealed_key.into(),
        }))
    }

    async fn close_dashboard_session(
        &self,
        request: Request<v1::CloseDashboardSessionRequest>,
    ) -> Result<Response<v1::CloseDashboardSessionResponse>, Status> {
        let id = session_id(&request.get_ref().session_id)?;
        self.engine.facades.close_session(&id).await.map_err(error)?;
        Ok(Response::new(v1::CloseDashboardSessionResponse {}))
    }

    async fn close_all_dashboard_sessions(
        &self,
        request: Request<v1::CloseAllDashboardSessionsRequest>,
    ) -> Result<Response<v1::CloseAllDashboardSessionsResponse>, Status> {
        let (merchant, _) = self.authenticate(&request, None).await?;
        let id = session_id(&request.get_ref().session_id)?;
        self.engine.facades.close_sessions(&id, merchant.id).await.map_err(error)?;
        Ok(Response::new(v1::CloseAllDashboardSessionsResponse {}))
    }

    async fn count_dashboard_sessions(
        &self,
        request: Request<v1::CountDashboardSessionsRequest>,
    ) -> Result<Response<v1::CountDashboardSessionsResponse>, Status> {
        let (merchant, _) = self.authenticate(&request, None).await?;
        let id = session_id(&request.get_ref().session_id)?;
        let sessions = self.engine.facades.count_sessions(&id, merchant.id).await.map_err(error)?;
        let sessions = u32::try_from(sessions).unwrap_or(u32::MAX);
        Ok(Response::new(v1::CountDashboardSessionsResponse { sessions }))
    }

    async fn get_lockout(
        &self,
        request: Request<v1::GetLockoutRequest>,
    ) -> Result<Response<v1::GetLockoutResponse>, Status> {
        let client = client(&request.get_ref().client)?;
        let remaining = self.engine.facades.lockout(client).await.map_err(error)?;
        Ok(Response::new(v1::GetLockoutResponse { remaining_ms: remaining.map(millis) }))
    }

    async fn record_invalid_key(
        &self,
        request: Request<v1::RecordInvalidKeyRequest>,
    ) -> Result<Response<v1::RecordInvalidKeyResponse>, Status> {
        let message = request.get_ref();
        let (client, policy) = (client(&message.client)?, policy(message)?);
        let remaining = self.engine.facades.count_invalid_key(client, policy).await.map_err(error)?;
        Ok(Response::new(v1::RecordInvalidKeyResponse { remaining_ms: remaining.map(millis) }))
    }
}
