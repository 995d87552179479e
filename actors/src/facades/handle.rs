//! The handle of the state that facades share.

use std::time::Duration;

use engine::ids::MerchantId;
use storage::{Batch, CommitError, Write};

use super::{
    lockouts::{LockoutPolicy, Lockouts},
    sessions::{DashboardSession, SessionId, Sessions},
    shards::{self, note_of},
};
use crate::{access::Access, error::EngineError};

/// Attempts to replace a note that others replace at the same time.
const MAX_CONFLICTS: usize = 16;

/// Dashboard sessions and lockouts. Cheap to clone.
#[derive(Clone)]
pub struct Facades {
    access: Access,
}

/// A list that is stored as notes. A damaged note counts as empty: its sessions end.
trait List: Default {
    fn decode(bytes: &[u8]) -> Option<Self>;
    fn encode(&self) -> Vec<u8>;
}

impl List for Sessions {
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes)
    }

    fn encode(&self) -> Vec<u8> {
        self.encode()
    }
}

impl List for Lockouts {
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes)
    }

    fn encode(&self) -> Vec<u8> {
        self.encode()
    }
}

impl Facades {
    pub(crate) fn new(access: Access) -> Self {
        Self { access }
    }

    /// Opens a dashboard session. A repetition with the same id replaces it.
    ///
    /// # Errors
    /// [`EngineError::Contended`] after repeated concurrent changes; store errors.
    pub async fn open_session(
        &self,
        id: SessionId,
        merchant: MerchantId,
        sealed_key: Vec<u8>,
    ) -> Result<(), EngineError> {
        let now = self.access.now();
        self.change(sessions_of(&id), |sessions: &mut Sessions| {
            sessions.open(id, merchant, sealed_key.clone(), now);
            ((), true)
        })
        .await
    }

    /// Returns a dashboard session, and records its use; `None` if it has ended.
    ///
    /// # Errors
    /// Store errors.
    pub async fn session(&self, id: &SessionId) -> Result<Option<DashboardSession>, EngineError> {
        let (now, note) = (self.access.now(), sessions_of(id));
        let (sessions, _): (Sessions, _) = self.read(note).await?;
        let Some(found) = sessions.find(id, now).cloned() else { return Ok(None) };
        if sessions.clone().record_use(id, now) {
            // The page is shown even if its use could not be recorded.
            let _ = self.change(note, |sessions: &mut Sessions| ((), sessions.record_use(id, now))).await;
        }
        Ok(Some(found))
    }

    /// Ends a dashboard session.
    ///
    /// # Errors
    /// As [`Facades::open_session`].
    pub async fn close_session(&self, id: &SessionId) -> Result<(), EngineError> {
        self.change(sessions_of(id), |sessions: &mut Sessions| ((), sessions.close(|session| session.id == *id))).await
    }

    /// Ends all dashboard sessions of a merchant, of which `id` is one.
    ///
    /// # Errors
    /// As [`Facades::open_session`].
    pub async fn close_sessions(&self, id: &SessionId, merchant: MerchantId) -> Result<(), EngineError> {
        let is_its = |session: &DashboardSession| session.merchant == merchant;
        self.change(sessions_of(id), |sessions: &mut Sessions| ((), sessions.close(is_its))).await
    }

    /// Counts the dashboard sessions of a merchant, of which `id` is one.
    ///
    /// # Errors
    /// Store errors.
    pub async fn count_sessions(&self, id: &SessionId, merchant: MerchantId) -> Result<usize, EngineError> {
        let (sessions, _): (Sessions, _) = self.read(sessions_of(id)).await?;
        Ok(sessions.count(merchant, self.access.now()))
    }

    /// Returns how long a client is still locked out; `None` if it is not.
    ///
    /// # Errors
    /// Store errors.
    pub async fn lockout(&self, client: u128) -> Result<Option<Duration>, EngineError> {
        let (lockouts, _): (Lockouts, _) = self.read(lockouts_of(client)).await?;
        Ok(lockouts.remaining(client, self.access.now()))
    }

    /// Counts an invalid API key of a client. Returns how long it is locked out now; `None` if it is not.
    ///
    /// # Errors
    /// As [`Facades::open_session`].
    pub async fn count_invalid_key(
        &self,
        client: u128,
        policy: LockoutPolicy,
    ) -> Result<Option<Duration>, EngineError> {
        let now = self.access.now();
        self.change(lockouts_of(client), |lockouts: &mut Lockouts| (lockouts.count(client, policy, now), true)).await
    }

    async fn read<L: List>(&self, note: &'static str) -> Result<(L, Option<Vec<u8>>), EngineError> {
        let stored = self.access.context.env.store.note(note).await.map_err(|e| self.access.read_failed(&e))?;
        let list = stored.as_deref().map(L::decode);
        if matches!(list, Some(None)) {
            tracing::warn!(note, "the stored list `{note}` is damaged and counts as empty");
        }
        Ok((list.flatten().unwrap_or_default(), stored))
    }

    /// Changes a list; `change` also returns whether there is anything to store.
    async fn change<L: List, T>(
        &self,
        note: &'static str,
        change: impl Fn(&mut L) -> (T, bool),
    ) -> Result<T, EngineError> {
        for _ in 0..MAX_CONFLICTS {
            let (mut list, expected) = self.read::<L>(note).await?;
            let (result, is_changed) = change(&mut list);
            if !is_changed {
                return Ok(result);
            }
            let write = Write::Note { name: note, value: list.encode(), expected };
            match self.access.context.env.store.commit(Batch::of(write)).await {
                Ok(()) => return Ok(result),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(self.access.commit_failed(error)),
            }
        }
        Err(EngineError::Contended)
    }
}

fn sessions_of(id: &SessionId) -> &'static str {
    note_of(&shards::SESSIONS, id[0])
}

fn lockouts_of(client: u128) -> &'static str {
    note_of(&shards::LOCKOUTS, client.to_be_bytes()[15])
}
