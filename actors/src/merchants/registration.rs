//! Registration: who may become a merchant.

use engine::{account::AccountName, merchant::Registration};
use tokio::sync::oneshot;

use crate::{
    Gateway, GatewayError,
    chain::nodes::NodesError,
    merchants::actor::{self, Registered},
    settings::RegistrationMode,
};

impl Gateway {
    /// Registers a merchant; its account must exist on the ledger.
    ///
    /// # Errors
    /// [`GatewayError::RegistrationClosed`]; [`GatewayError::UnknownAccount`]; [`GatewayError::LedgerUnavailable`] while
    /// no node can say; store errors.
    pub async fn register(&self, registration: Registration, is_admin: bool) -> Result<Registered, GatewayError> {
        let is_active = match self.context().settings.registration {
            _ if is_admin => true,
            RegistrationMode::Open => true,
            RegistrationMode::Approval => false,
            RegistrationMode::Closed => return Err(GatewayError::RegistrationClosed),
        };
        self.enroll(registration, is_admin, is_active).await
    }

    /// Registers a merchant whoever else may register: the operator wants it.
    ///
    /// # Errors
    /// As [`Gateway::register`], but never closed.
    pub async fn enroll(
        &self,
        registration: Registration,
        is_admin: bool,
        is_active: bool,
    ) -> Result<Registered, GatewayError> {
        self.check_account(&registration.hive_account).await?;
        let (reply, answer) = oneshot::channel();
        self.tell_merchants(actor::Msg::Register { registration, is_admin, is_active, by: self.doer(), reply })?;
        answer.await.map_err(|_| GatewayError::StoreFailed)?.map_err(Into::into)
    }

    pub(crate) async fn check_account(&self, name: &AccountName) -> Result<(), GatewayError> {
        match self.context().nodes.account(name).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(GatewayError::UnknownAccount(*name)),
            Err(NodesError::Unavailable(_) | NodesError::Unknown(_) | NodesError::Disagree { .. }) => {
                Err(GatewayError::LedgerUnavailable)
            }
        }
    }
}
