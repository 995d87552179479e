//! The access token that each method of the gRPC port requires.

use Requirement::{Operator, OperatorWithoutApiKey, Service};

/// The scope of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenScope {
    /// Calls of merchants, customers and payers, and calls with an admin's API key.
    Service,
    /// Every call, including those of the operator.
    Operator,
}

/// The token that a method requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Any token; the API key or the message is authorized separately.
    Service,
    /// The operator's token.
    Operator,
    /// The operator's token, unless the call has an API key.
    OperatorWithoutApiKey,
}

/// The requirement of every method, by path.
pub const REQUIREMENTS: &[(&str, Requirement)] = &[
    ("/hivetill.engine.v1.BillingService/GetMyBilling", Service),
    ("/hivetill.engine.v1.BillingService/GetMerchantBilling", Service),
    ("/hivetill.engine.v1.BillingService/GetBillingOverview", Service),
    ("/hivetill.engine.v1.BillingService/ListBillingPeriods", Service),
    ("/hivetill.engine.v1.BillingService/GetFeeTiers", Service),
    ("/hivetill.engine.v1.BillingService/SetFeeTiers", Service),
    ("/hivetill.engine.v1.BillingService/GenerateInvoices", Service),
    ("/hivetill.engine.v1.ComplianceService/GetComplianceStatus", Service),
    ("/hivetill.engine.v1.ComplianceService/ClearHold", Service),
    ("/hivetill.engine.v1.ComplianceService/SetMerchantLimits", Service),
    ("/hivetill.engine.v1.EventService/ListEvents", Service),
    ("/hivetill.engine.v1.EventService/GetEvent", Service),
    ("/hivetill.engine.v1.EventService/WatchEvents", Service),
    ("/hivetill.engine.v1.FacadeService/OpenDashboardSession", Service),
    ("/hivetill.engine.v1.FacadeService/GetDashboardSession", Service),
    ("/hivetill.engine.v1.FacadeService/CloseDashboardSession", Service),
    ("/hivetill.engine.v1.FacadeService/CloseAllDashboardSessions", Service),
    ("/hivetill.engine.v1.FacadeService/CountDashboardSessions", Service),
    ("/hivetill.engine.v1.FacadeService/GetLockout", Service),
    ("/hivetill.engine.v1.FacadeService/RecordInvalidKey", Service),
    ("/hivetill.engine.v1.ApiKeyService/ListApiKeys", Service),
    ("/hivetill.engine.v1.ApiKeyService/CreateApiKey", Service),
    ("/hivetill.engine.v1.ApiKeyService/RevokeApiKey", Service),
    ("/hivetill.engine.v1.ApiKeyService/RollApiKey", Service),
    ("/hivetill.engine.v1.AuditLogService/ListAudit", Service),
    ("/hivetill.engine.v1.ExportService/ExportMerchants", Service),
    ("/hivetill.engine.v1.ExportService/ExportPayments", Service),
    ("/hivetill.engine.v1.ExportService/ExportWebhookDeliveries", Service),
    ("/hivetill.engine.v1.MaintenanceService/CopyStore", Operator),
    ("/hivetill.engine.v1.MaintenanceService/VerifyStore", Operator),
    ("/hivetill.engine.v1.MaintenanceService/DescribeEngine", Operator),
    ("/hivetill.engine.v1.MaintenanceService/ExportAccount", Operator),
    ("/hivetill.engine.v1.MerchantService/RegisterMerchant", Service),
    ("/hivetill.engine.v1.MerchantService/RegisterAdmin", Operator),
    ("/hivetill.engine.v1.MerchantService/GetCurrentMerchant", Service),
    ("/hivetill.engine.v1.MerchantService/GetMerchant", Service),
    ("/hivetill.engine.v1.MerchantService/UpdateMerchant", Service),
    ("/hivetill.engine.v1.MerchantService/RotateWebhookSecret", Service),
    ("/hivetill.engine.v1.MerchantService/ListMerchants", Service),
    ("/hivetill.engine.v1.MerchantService/SetMerchantActive", Service),
    ("/hivetill.engine.v1.MerchantService/ReissueApiKey", Service),
    ("/hivetill.engine.v1.AccountProofService/IssueAccountChallenge", Service),
    ("/hivetill.engine.v1.AccountProofService/SubmitAccountProof", Service),
    ("/hivetill.engine.v1.AccountProofService/CancelAccountChange", Service),
    ("/hivetill.engine.v1.AccountProofService/VerifyMerchant", Operator),
    ("/hivetill.engine.v1.PaymentService/CreatePayment", Service),
    ("/hivetill.engine.v1.PaymentService/GetPayment", Service),
    ("/hivetill.engine.v1.PaymentService/GetPaymentStatus", Service),
    ("/hivetill.engine.v1.PaymentService/ListPayments", Service),
    ("/hivetill.engine.v1.PaymentService/ListTransfers", Service),
    ("/hivetill.engine.v1.PaymentService/GetVolume", Service),
    ("/hivetill.engine.v1.PaymentService/CancelPayment", Service),
    ("/hivetill.engine.v1.PaymentService/DeletePaymentMetadata", Service),
    ("/hivetill.engine.v1.PaymentService/DeletePaymentNote", Service),
    ("/hivetill.engine.v1.PaymentService/WatchPayment", Service),
    ("/hivetill.engine.v1.PaymentService/InspectPayment", OperatorWithoutApiKey),
    ("/hivetill.engine.v1.CheckoutService/GetCheckout", Service),
    ("/hivetill.engine.v1.CheckoutService/CancelCheckout", Service),
    ("/hivetill.engine.v1.CheckoutService/ReportWallet", Service),
    ("/hivetill.engine.v1.CheckoutService/RestartCheckout", Service),
    ("/hivetill.engine.v1.CheckoutService/WatchCheckout", Service),
    ("/hivetill.engine.v1.ReconciliationService/ListReconciliations", Service),
    ("/hivetill.engine.v1.FeeService/GetFeeRate", Service),
    ("/hivetill.engine.v1.SystemService/GetHealth", Service),
    ("/hivetill.engine.v1.SystemService/ListNodes", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/ListUnmatched", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/GetUnmatched", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/ListSales", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/ListCandidates", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/AssignUnmatched", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/IgnoreUnmatched", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/ResolvePayment", Service),
    ("/hivetill.engine.v1.UnmatchedTransferService/PrepareRefund", Service),
    ("/hivetill.engine.v1.WebhookService/ListWebhookEndpoints", Service),
    ("/hivetill.engine.v1.WebhookService/CreateWebhookEndpoint", Service),
    ("/hivetill.engine.v1.WebhookService/UpdateWebhookEndpoint", Service),
    ("/hivetill.engine.v1.WebhookService/DeleteWebhookEndpoint", Service),
    ("/hivetill.engine.v1.WebhookService/RotateWebhookEndpointSecret", Service),
    ("/hivetill.engine.v1.WebhookService/GetWebhookEndpoint", Service),
    ("/hivetill.engine.v1.WebhookService/EnableWebhookEndpoint", Service),
    ("/hivetill.engine.v1.WebhookService/ReplayWebhooks", Service),
    ("/hivetill.engine.v1.WebhookService/SendTestWebhook", Service),
    ("/hivetill.engine.v1.WebhookService/ListWebhookDeliveries", Service),
    ("/hivetill.engine.v1.WebhookService/GetWebhookDelivery", Service),
    ("/hivetill.engine.v1.WebhookService/RedeliverWebhook", Service),
    ("/hivetill.engine.v1.X402Service/VerifyPayment", Service),
    ("/hivetill.engine.v1.X402Service/SettlePayment", Service),
    ("/hivetill.engine.v1.X402Service/SignOffer", Service),
    ("/hivetill.engine.v1.X402Service/GetReceiptKeys", Service),
    ("/hivetill.engine.v1.X402Service/RotateReceiptKey", Operator),
];

/// Returns whether a token permits a call. A method without a row requires the operator's token.
#[must_use]
pub fn permits(scope: TokenScope, path: &str, has_api_key: bool) -> bool {
    if scope == TokenScope::Operator {
        return true;
    }
    match REQUIREMENTS.iter().find(|(method, _)| *method == path).map(|(_, requirement)| requirement) {
        Some(Service) => true,
        Some(OperatorWithoutApiKey) => has_api_key,
        Some(Operator) => false,
        // Unknown paths are permitted here; the response is UNIMPLEMENTED.
        None => !crate::METHODS.contains(&path),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_method_has_one_row_and_a_service_token_permits_no_operator_call() {
        let rows: BTreeSet<_> = REQUIREMENTS.iter().map(|(method, _)| *method).collect();
        assert_eq!(rows.len(), REQUIREMENTS.len(), "a method has one row");
        assert_eq!(rows, crate::METHODS.iter().copied().collect());
        for (method, requirement) in REQUIREMENTS {
            assert!(permits(TokenScope::Operator, method, false));
            let permitted = |has_api_key| permits(TokenScope::Service, method, has_api_key);
            let expected = match requirement {
                Service => (true, true),
                Operator => (false, false),
                OperatorWithoutApiKey => (true, false),
            };
            assert_eq!((permitted(true), permitted(false)), expected, "{method}");
        }
        assert!(permits(TokenScope::Service, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false));
    }
}
