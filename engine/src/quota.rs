//! Quotas of a merchant: open payments and stored bytes.

/// The quotas of a merchant; 0 means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Maximum payments that are pending or processing.
    pub open_payments: u64,
    /// Maximum bytes of its payment records in any state.
    pub stored_bytes: u64,
}

/// The usage of a merchant before a payment is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Payments that are pending or processing.
    pub open_payments: u64,
    /// Bytes of the records of its payments.
    pub stored_bytes: u64,
}

/// A quota that would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    /// The quota of open payments.
    #[error(
        "{limit} payments are open, the most this merchant may have; wait until some complete, expire or are cancelled"
    )]
    OpenPayments {
        /// The quota.
        limit: u64,
    },
    /// The quota of stored bytes; the operator can raise it, or the merchant can delete metadata.
    #[error(
        "the payments of this merchant take all of its {limit} bytes; ask the operator to raise limits.stored_bytes"
    )]
    StoredBytes {
        /// The quota.
        limit: u64,
    },
}

impl Quota {
    /// Checks whether one more payment, with a record of `bytes`, is within the quotas.
    ///
    /// # Errors
    /// The quota that it would exceed.
    pub fn check(self, usage: Usage, bytes: u64) -> Result<(), QuotaExceeded> {
        if self.open_payments > 0
            && usage.open_payments >= self.open_payments + u64::from(crate::mutant!("quota-allows-one-more"))
        {
            return Err(QuotaExceeded::OpenPayments { limit: self.open_payments });
        }
        if self.stored_bytes > 0 && usage.stored_bytes.saturating_add(bytes) > self.stored_bytes {
            return Err(QuotaExceeded::StoredBytes { limit: self.stored_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_can_be_reached_but_not_exceeded_and_0_is_unlimited() {
        let quota = Quota { open_payments: 2, stored_bytes: 100 };
        let usage = |open_payments, stored_bytes| Usage { open_payments, stored_bytes };
        assert_eq!(quota.check(usage(1, 60), 40), Ok(()));
        assert_eq!(quota.check(usage(2, 0), 1), Err(QuotaExceeded::OpenPayments { limit: 2 }));
        assert_eq!(quota.check(usage(0, 60), 41), Err(QuotaExceeded::StoredBytes { limit: 100 }));
        assert_eq!(quota.check(usage(0, u64::MAX), 1), Err(QuotaExceeded::StoredBytes { limit: 100 }));
        assert_eq!(Quota::default().check(usage(u64::MAX, u64::MAX), u64::MAX), Ok(()));
    }
}
