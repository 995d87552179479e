//! Registration of merchants.

use engine::merchant::Registration;
use tokio::sync::oneshot;

use crate::{
    error::EngineError,
    merchants::{
        handle::Merchants,
        messages::{MerchantMsg, Registered},
    },
    settings::RegistrationMode,
};

impl Merchants {
    /// Registers a merchant; its account must exist on the ledger.
    ///
    /// # Errors
    /// [`EngineError::RegistrationClosed`]; [`EngineError::UnknownAccount`]; [`EngineError::LedgerUnavailable`] while
    /// no node can confirm it; store errors.
    pub async fn register(&self, registration: Registration, is_admin: bool) -> Result<Registered, EngineError> {
        let is_active = match self.access.context.settings.registration {
            _ if is_admin => true,
            RegistrationMode::Open => true,
            RegistrationMode::Approval => false,
            RegistrationMode::Closed => return Err(EngineError::RegistrationClosed),
        };
        self.enroll(registration, is_admin, is_active).await
    }

    /// Registers a merchant on behalf of the operator, in any registration mode.
    ///
    /// # Errors
    /// As [`Merchants::register`], but never closed.
    pub async fn enroll(
        &self,
        registration: Registration,
        is_admin: bool,
        is_active: bool,
    ) -> Result<Registered, EngineError> {
        self.check_account(&registration.hive_account).await?;
        let (reply, answer) = oneshot::channel();
        self.tell(MerchantMsg::Register { registration, is_admin, is_active, by: self.access.actor(), reply })?;
        answer.await.map_err(|_| EngineError::StoreFailed)?.map_err(Into::into)
    }
}
