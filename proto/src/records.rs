//! Response messages that contain one record: every method has its own response message, and many have the same record.

use tonic::{Response, Status};

use crate::v1;

/// A response message that contains one record.
pub trait RecordResponse: Sized {
    /// The record type.
    type Record;

    /// Wraps a record.
    fn from_record(record: Self::Record) -> Self;

    /// Returns the record; `None` if it is not set.
    fn into_option(self) -> Option<Self::Record>;
}

/// Extracts the record of a response.
pub trait IntoRecord<T> {
    /// Returns the record.
    ///
    /// # Errors
    /// `INTERNAL` if it is not set.
    fn into_record(self) -> Result<T, Status>;
}

impl<R: RecordResponse> IntoRecord<R::Record> for Response<R> {
    fn into_record(self) -> Result<R::Record, Status> {
        self.into_inner().into_option().ok_or_else(|| Status::internal("the response lacks its record"))
    }
}

/// Returns a response with a record.
#[must_use]
pub fn record_response<R: RecordResponse>(record: R::Record) -> Response<R> {
    Response::new(R::from_record(record))
}

macro_rules! record_responses {
    ($($Record:ident as $field:ident: $($Message:ident)+;)+) => {
        $($(
            impl RecordResponse for v1::$Message {
                type Record = v1::$Record;

                fn from_record(record: v1::$Record) -> Self {
                    Self { $field: Some(record) }
                }

                fn into_option(self) -> Option<v1::$Record> {
                    self.$field
                }
            }
        )+)+
    };
}

record_responses! {
    Payment as payment: CreatePaymentResponse GetPaymentResponse CancelPaymentResponse WatchPaymentResponse
        DeletePaymentMetadataResponse DeletePaymentNoteResponse
        GetCheckoutResponse CancelCheckoutResponse ReportWalletResponse RestartCheckoutResponse WatchCheckoutResponse
        AssignUnmatchedResponse ResolvePaymentResponse ExportPaymentsResponse;
    Merchant as merchant: GetCurrentMerchantResponse GetMerchantResponse UpdateMerchantResponse
        SetMerchantActiveResponse CancelAccountChangeResponse VerifyMerchantResponse ExportMerchantsResponse;
    UnmatchedTransfer as transfer: GetUnmatchedResponse IgnoreUnmatchedResponse;
    BillingSummary as summary: GetMyBillingResponse GetMerchantBillingResponse;
    FeeSchedule as schedule: GetFeeTiersResponse SetFeeTiersResponse;
    ComplianceStatus as status: GetComplianceStatusResponse ClearHoldResponse SetMerchantLimitsResponse;
    WebhookEndpoint as endpoint: GetWebhookEndpointResponse UpdateWebhookEndpointResponse;
    WebhookDelivery as delivery: SendTestWebhookResponse GetWebhookDeliveryResponse RedeliverWebhookResponse
        ExportWebhookDeliveriesResponse;
}
