//! An engine for the facade's tests. It returns a few fixed records and stores the requests that it receives.

use std::sync::{Arc, Mutex};

use futures_util::stream::{self, BoxStream, StreamExt};
use proto::{
    ApiError, Engine, Local, Reason, RecordResponse, Transport, record_response,
    v1::{
        self, checkout_service_server, checkout_session::Session, fee_service_server, merchant_service_server,
        payment_service_server, system_service_server, x402_service_server,
    },
};
use tonic::{Request, Response, Status};

pub(super) const KEY: &str = "sk_live_good";
pub(super) const MERCHANT: &str = "mer_00000000000000000000000001";
pub(super) const PAYMENT: &str = "pay_00000000000000000000000002";
pub(super) const TX: &str = "0123456789012345678901234567890123456789";
pub(super) const SLUG: &str = "two-mugs-00000000000000000000000003";

/// The state of the fake engine.
#[derive(Clone)]
pub(super) struct FakeEngine {
    pub(super) payment: Arc<Mutex<v1::Payment>>,
    /// The error of every call, if set.
    pub(super) refuse: Arc<Mutex<Option<ApiError>>>,
    pub(super) health: Arc<Mutex<v1::Health>>,
    pub(super) last_update: Arc<Mutex<Option<v1::UpdateMerchantRequest>>>,
    /// Whether watch streams stay open after their first snapshot.
    pub(super) stays_open: Arc<std::sync::atomic::AtomicBool>,
    pub(super) last_list: Arc<Mutex<Option<v1::ListPaymentsRequest>>>,
    /// The outcome of every signed payment.
    pub(super) outcome: Arc<Mutex<v1::settle_payment_response::Outcome>>,
    /// The error of every signed payment, if set.
    pub(super) refuse_x402: Arc<Mutex<Option<ApiError>>>,
    /// Signed payments that were verified or settled.
    pub(super) x402_payments: Arc<Mutex<Vec<v1::X402Payment>>>,
    /// The signed offer of every payment, if set.
    pub(super) signed_offer: Arc<Mutex<Option<String>>>,
}

impl FakeEngine {
    pub(super) fn new() -> Self {
        Self {
            payment: Arc::new(Mutex::new(payment())),
            refuse: Arc::default(),
            health: Arc::new(Mutex::new(v1::Health::Ok)),
            last_update: Arc::default(),
            stays_open: Arc::default(),
            last_list: Arc::default(),
            outcome: Arc::new(Mutex::new(settled())),
            refuse_x402: Arc::default(),
            x402_payments: Arc::default(),
            signed_offer: Arc::default(),
        }
    }

    pub(super) fn engine(&self) -> Engine {
        let local = Local::default()
            .with(payment_service_server::PaymentServiceServer::new(self.clone()))
            .with(merchant_service_server::MerchantServiceServer::new(self.clone()))
            .with(checkout_service_server::CheckoutServiceServer::new(self.clone()))
            .with(fee_service_server::FeeServiceServer::new(self.clone()))
            .with(system_service_server::SystemServiceServer::new(self.clone()))
            .with(x402_service_server::X402ServiceServer::new(self.clone()));
        Engine::new(Transport::local(local))
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut v1::Payment)) {
        change(&mut self.payment.lock().expect("one test"));
    }

    pub(super) fn stay_open(&self) {
        self.stays_open.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    fn check_key<T>(&self, request: &Request<T>) -> Result<(), Status> {
        self.check_error()?;
        match proto::caller::api_key(request) {
            Some(KEY) => Ok(()),
            _ => Err(ApiError::new(Reason::InvalidApiKey).into()),
        }
    }

    fn check_error(&self) -> Result<(), Status> {
        match &*self.refuse.lock().expect("one test") {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    fn find(&self, id: &str) -> Result<v1::Payment, Status> {
        let payment = self.payment.lock().expect("one test").clone();
        if payment.id == id { Ok(payment) } else { Err(ApiError::new(Reason::NotFound).into()) }
    }

    fn find_session(&self, session: Option<&v1::CheckoutSession>) -> Result<v1::Payment, Status> {
        match session.and_then(|session| session.session.as_ref()) {
            Some(Session::PaymentId(id)) => self.find(id),
            Some(Session::Slug(slug)) if slug == SLUG => self.find(PAYMENT),
            _ => Err(ApiError::new(Reason::NotFound).into()),
        }
    }

    fn cancel<R>(&self, mut payment: v1::Payment) -> Result<Response<R>, Status>
    where
        R: RecordResponse<Record = v1::Payment>,
    {
        if payment.status == v1::PaymentStatus::Completed as i32 {
            return Err(ApiError::new(Reason::PaymentNotPending).into());
        }
        payment.status = v1::PaymentStatus::UserCancelled.into();
        payment.cancellation = Some(v1::Cancellation::default());
        *self.payment.lock().expect("one test") = payment.clone();
        Ok(record_response(payment))
    }
}

pub(super) fn payment() -> v1::Payment {
    let text = |text: &str| v1::MetadataValue { value: Some(v1::metadata_value::Value::Text(text.to_owned())) };
    v1::Payment {
        id: PAYMENT.to_owned(),
        merchant_id: MERCHANT.to_owned(),
        status: v1::PaymentStatus::Pending.into(),
        slug: SLUG.to_owned(),
        currency: v1::Currency::Hbd.into(),
        amount_units: 10_500,
        fee_units: 157,
        net_units: 10_343,
        usd_cents: 1_050,
        description: "Two mugs".to_owned(),
        metadata: [("orderId".to_owned(), text("7"))].into(),
        redirect_url: Some("https://shop.example/ok".to_owned()),
        created_at: Some(proto::time::from_millis(1_763_647_200_000)),
        updated_at: Some(proto::time::from_millis(1_763_647_200_000)),
        expires_at: Some(proto::time::from_millis(1_763_649_000_000)),
        pay_to: "blue.mugs".to_owned(),
        memo: format!("pos-{PAYMENT}"),
        merchant_name: "Blue Mugs".to_owned(),
        amount_remaining_units: 10_500,
        sequence: 1,
        merchant_active: true,
        x402_enabled: true,
        read_at: Some(proto::time::from_millis(1_763_647_260_000)),
        ..v1::Payment::default()
    }
}

fn merchant() -> v1::Merchant {
    v1::Merchant {
        account_verification: v1::AccountVerification::Unverified.into(),
        id: MERCHANT.to_owned(),
        name: "Blue Mugs".to_owned(),
        hive_account: "blue.mugs".to_owned(),
        active: true,
        x402_enabled: true,
        api_key_last4: "good".to_owned(),
        ..v1::Merchant::default()
    }
}

type Snapshots<R> = BoxStream<'static, Result<R, Status>>;

#[tonic::async_trait]
impl payment_service_server::PaymentService for FakeEngine {
    async fn create_payment(
        &self,
        request: Request<v1::CreatePaymentRequest>,
    ) -> Result<Response<v1::CreatePaymentResponse>, Status> {
        self.check_key(&request)?;
        let request = request.into_inner();
        let created = v1::Payment {
            amount_units: request.amount_units,
            currency: request.currency,
            description: request.description,
            metadata: request.metadata,
            redirect_url: request.redirect_url,
            ..payment()
        };
        *self.payment.lock().expect("one test") = created.clone();
        Ok(record_response(created))
    }

    async fn get_payment(
        &self,
        request: Request<v1::GetPaymentRequest>,
    ) -> Result<Response<v1::GetPaymentResponse>, Status> {
        self.check_key(&request)?;
        self.find(&request.get_ref().payment_id).map(record_response)
    }

    async fn inspect_payment(
        &self,
        _: Request<v1::InspectPaymentRequest>,
    ) -> Result<Response<v1::InspectPaymentResponse>, Status> {
        Ok(Response::new(v1::InspectPaymentResponse { payment: Some(payment()) }))
    }

    async fn get_payment_status(
        &self,
        request: Request<v1::GetPaymentStatusRequest>,
    ) -> Result<Response<v1::GetPaymentStatusResponse>, Status> {
        self.check_key(&request)?;
        let payment = self.find(&request.get_ref().payment_id)?;
        let completed_at = payment.completed_at;
        Ok(Response::new(v1::GetPaymentStatusResponse { id: payment.id, status: payment.status, completed_at }))
    }

    async fn list_payments(
        &self,
        request: Request<v1::ListPaymentsRequest>,
    ) -> Result<Response<v1::ListPaymentsResponse>, Status> {
        self.check_key(&request)?;
        let response = v1::ListPaymentsResponse {
            payments: vec![self.find(PAYMENT)?],
            next_page_token: "next".to_owned(),
            total_size: Some(41),
            total_is_lower_bound: false,
        };
        *self.last_list.lock().expect("one test") = Some(request.into_inner());
        Ok(Response::new(response))
    }

    async fn list_transfers(
        &self,
        request: Request<v1::ListTransfersRequest>,
    ) -> Result<Response<v1::ListTransfersResponse>, Status> {
        self.check_key(&request)?;
        let transfers = self.find(&request.get_ref().payment_id)?.transfers;
        Ok(Response::new(v1::ListTransfersResponse { transfers, next_page_token: String::new() }))
    }

    async fn get_volume(
        &self,
        request: Request<v1::GetVolumeRequest>,
    ) -> Result<Response<v1::GetVolumeResponse>, Status> {
        self.check_key(&request)?;
        Ok(Response::new(v1::GetVolumeResponse::default()))
    }

    async fn cancel_payment(
        &self,
        request: Request<v1::CancelPaymentRequest>,
    ) -> Result<Response<v1::CancelPaymentResponse>, Status> {
        self.check_key(&request)?;
        self.cancel(self.find(&request.get_ref().payment_id)?)
    }

    async fn delete_payment_metadata(
        &self,
        request: Request<v1::DeletePaymentMetadataRequest>,
    ) -> Result<Response<v1::DeletePaymentMetadataResponse>, Status> {
        self.check_key(&request)?;
        let payment = self.find(&request.get_ref().payment_id)?;
        Ok(Response::new(v1::DeletePaymentMetadataResponse { payment: Some(payment) }))
    }

    async fn delete_payment_note(
        &self,
        request: Request<v1::DeletePaymentNoteRequest>,
    ) -> Result<Response<v1::DeletePaymentNoteResponse>, Status> {
        self.check_key(&request)?;
        let payment = self.find(&request.get_ref().payment_id)?;
        Ok(Response::new(v1::DeletePaymentNoteResponse { payment: Some(payment) }))
    }

    type WatchPaymentStream = Snapshots<v1::WatchPaymentResponse>;

    async fn watch_payment(
        &self,
        request: Request<v1::WatchPaymentRequest>,
    ) -> Result<Response<Self::WatchPaymentStream>, Status> {
        self.check_key(&request)?;
        let payment = self.find(&request.get_ref().payment_id)?;
        Ok(Response::new(Box::pin(stream::iter([Ok(RecordResponse::from_record(payment))]))))
    }
}

#[tonic::async_trait]
impl checkout_service_server::CheckoutService for FakeEngine {
    async fn get_checkout(
        &self,
        request: Request<v1::GetCheckoutRequest>,
    ) -> Result<Response<v1::GetCheckoutResponse>, Status> {
        self.check_error()?;
        self.find_session(request.get_ref().session.as_ref()).map(record_response)
    }

    async fn cancel_checkout(
        &self,
        request: Request<v1::CancelCheckoutRequest>,
    ) -> Result<Response<v1::CancelCheckoutResponse>, Status> {
        self.check_error()?;
        self.cancel(self.find_session(request.get_ref().session.as_ref())?)
    }

    async fn report_wallet(
        &self,
        request: Request<v1::ReportWalletRequest>,
    ) -> Result<Response<v1::ReportWalletResponse>, Status> {
        self.check_error()?;
        self.find_session(request.get_ref().session.as_ref()).map(record_response)
    }

    async fn restart_checkout(
        &self,
        request: Request<v1::RestartCheckoutRequest>,
    ) -> Result<Response<v1::RestartCheckoutResponse>, Status> {
        self.check_error()?;
        let expired = self.find_session(request.get_ref().session.as_ref())?;
        if !expired.restartable {
            return Err(ApiError::new(Reason::PaymentNotRestartable).into());
        }
        let slug = format!("{}-again", expired.slug);
        Ok(record_response(v1::Payment { status: v1::PaymentStatus::Pending.into(), slug, ..payment() }))
    }

    type WatchCheckoutStream = Snapshots<v1::WatchCheckoutResponse>;

    async fn watch_checkout(
        &self,
        request: Request<v1::WatchCheckoutRequest>,
    ) -> Result<Response<Self::WatchCheckoutStream>, Status> {
        let payment = self.find_session(request.get_ref().session.as_ref())?;
        let first = stream::iter([Ok(RecordResponse::from_record(payment))]);
        if self.stays_open.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(Response::new(Box::pin(first.chain(stream::pending()))));
        }
        Ok(Response::new(Box::pin(first)))
    }
}

#[tonic::async_trait]
impl merchant_service_server::MerchantService for FakeEngine {
    async fn register_merchant(
        &self,
        request: Request<v1::RegisterMerchantRequest>,
    ) -> Result<Response<v1::RegisterMerchantResponse>, Status> {
        self.check_error()?;
        let request = request.into_inner();
        let merchant = v1::Merchant {
            name: request.name,
            hive_account: request.hive_account,
            icon_url: request.icon_url,
            ..merchant()
        };
        let (api_key, webhook_secret) = (KEY.to_owned(), "whsec_x".to_owned());
        Ok(Response::new(v1::RegisterMerchantResponse { merchant: Some(merchant), api_key, webhook_secret }))
    }

    async fn register_admin(
        &self,
        _: Request<v1::RegisterAdminRequest>,
    ) -> Result<Response<v1::RegisterAdminResponse>, Status> {
        Err(ApiError::new(Reason::NotImplemented).into())
    }

    async fn get_current_merchant(
        &self,
        request: Request<v1::GetCurrentMerchantRequest>,
    ) -> Result<Response<v1::GetCurrentMerchantResponse>, Status> {
        self.check_key(&request)?;
        Ok(record_response(merchant()))
    }

    async fn get_merchant(
        &self,
        request: Request<v1::GetMerchantRequest>,
    ) -> Result<Response<v1::GetMerchantResponse>, Status> {
        self.check_key(&request)?;
        match request.get_ref().merchant_id.as_str() {
            MERCHANT => Ok(record_response(merchant())),
            _ => Err(ApiError::new(Reason::ForbiddenMerchant).into()),
        }
    }

    async fn update_merchant(
        &self,
        request: Request<v1::UpdateMerchantRequest>,
    ) -> Result<Response<v1::UpdateMerchantResponse>, Status> {
        self.check_key(&request)?;
        *self.last_update.lock().expect("one test") = Some(request.into_inner());
        Ok(record_response(merchant()))
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<v1::RotateWebhookSecretRequest>,
    ) -> Result<Response<v1::RotateWebhookSecretResponse>, Status> {
        self.check_key(&request)?;
        let previous_valid_until = request
            .get_ref()
            .grace_hours
            .is_some_and(|hours| hours > 0)
            .then(|| proto::time::from_millis(1_763_650_800_000));
        let webhook_secret = "whsec_new".to_owned();
        Ok(Response::new(v1::RotateWebhookSecretResponse { webhook_secret, previous_valid_until }))
    }

    async fn list_merchants(
        &self,
        request: Request<v1::ListMerchantsRequest>,
    ) -> Result<Response<v1::ListMerchantsResponse>, Status> {
        self.check_key(&request)?;
        let merchants = vec![merchant()];
        Ok(Response::new(v1::ListMerchantsResponse { merchants, next_page_token: String::new(), total_size: 1 }))
    }

    async fn set_merchant_active(
        &self,
        request: Request<v1::SetMerchantActiveRequest>,
    ) -> Result<Response<v1::SetMerchantActiveResponse>, Status> {
        self.check_key(&request)?;
        Ok(record_response(v1::Merchant { active: request.get_ref().active.unwrap_or_default(), ..merchant() }))
    }

    async fn reissue_api_key(
        &self,
        request: Request<v1::ReissueApiKeyRequest>,
    ) -> Result<Response<v1::ReissueApiKeyResponse>, Status> {
        self.check_key(&request)?;
        let api_key = "sk_live_new".to_owned();
        Ok(Response::new(v1::ReissueApiKeyResponse { merchant: Some(merchant()), api_key }))
    }
}

#[tonic::async_trait]
impl fee_service_server::FeeService for FakeEngine {
    async fn get_fee_rate(
        &self,
        _: Request<v1::GetFeeRateRequest>,
    ) -> Result<Response<v1::GetFeeRateResponse>, Status> {
        self.check_error()?;
        Ok(Response::new(v1::GetFeeRateResponse { fee_percent_ten_thousandths: 15_000 }))
    }
}

#[tonic::async_trait]
impl system_service_server::SystemService for FakeEngine {
    async fn list_nodes(&self, _: Request<v1::ListNodesRequest>) -> Result<Response<v1::ListNodesResponse>, Status> {
        Ok(Response::new(v1::ListNodesResponse::default()))
    }

    async fn get_health(&self, _: Request<v1::GetHealthRequest>) -> Result<Response<v1::GetHealthResponse>, Status> {
        self.check_error()?;
        let health = *self.health.lock().expect("one test");
        let ledger_reachable = health == v1::Health::Ok;
        let report = v1::GetHealthResponse {
            health: health.into(),
            ledger_reachable,
            network: v1::LedgerNetwork::Mainnet.into(),
            livemode: true,
            ..v1::GetHealthResponse::default()
        };
        Ok(Response::new(report))
    }
}

pub(super) fn settled() -> v1::settle_payment_response::Outcome {
    v1::settle_payment_response::Outcome::Settled(v1::X402Settled {
        tx_id: TX.to_owned(),
        payer: "agent".to_owned(),
        block_num: Some(7),
        amount: Some(v1::Money { units: 10_500, currency: v1::Currency::Hbd.into() }),
        is_replay: false,
        receipt: None,
    })
}

#[tonic::async_trait]
impl x402_service_server::X402Service for FakeEngine {
    async fn verify_payment(
        &self,
        request: Request<v1::VerifyPaymentRequest>,
    ) -> Result<Response<v1::VerifyPaymentResponse>, Status> {
        use v1::{settle_payment_response::Outcome, verify_payment_response::Verdict};
        let request = Request::new(v1::SettlePaymentRequest { payment: request.into_inner().payment, resource: None });
        let response = self.settle_payment(request).await?.into_inner();
        let verdict = response.outcome.map(|outcome| match outcome {
            Outcome::Settled(settled) => Verdict::Valid(v1::X402Valid { payer: settled.payer }),
            Outcome::Refused(refused) => Verdict::Refused(refused),
        });
        Ok(Response::new(v1::VerifyPaymentResponse { verdict }))
    }

    async fn settle_payment(
        &self,
        request: Request<v1::SettlePaymentRequest>,
    ) -> Result<Response<v1::SettlePaymentResponse>, Status> {
        self.x402_payments.lock().expect("one test").push(request.into_inner().payment.expect("a payment"));
        if let Some(error) = &*self.refuse_x402.lock().expect("one test") {
            return Err(error.clone().into());
        }
        let outcome = Some(self.outcome.lock().expect("one test").clone());
        Ok(Response::new(v1::SettlePaymentResponse { outcome }))
    }

    async fn sign_offer(
        &self,
        request: Request<v1::SignOfferRequest>,
    ) -> Result<Response<v1::SignOfferResponse>, Status> {
        let resource = request.into_inner().resource.unwrap_or_default();
        self.find_session(resource.session.as_ref())?;
        let offer = self.signed_offer.lock().expect("one test").clone();
        Ok(Response::new(v1::SignOfferResponse { offer }))
    }

    async fn get_receipt_keys(
        &self,
        _: Request<v1::GetReceiptKeysRequest>,
    ) -> Result<Response<v1::GetReceiptKeysResponse>, Status> {
        self.check_error()?;
        Ok(Response::new(v1::GetReceiptKeysResponse {
            public_keys: vec![vec![1_u8; 32].into(), vec![2_u8; 32].into()],
        }))
    }

    async fn rotate_receipt_key(
        &self,
        _: Request<v1::RotateReceiptKeyRequest>,
    ) -> Result<Response<v1::RotateReceiptKeyResponse>, Status> {
        Err(ApiError::new(Reason::OperatorTokenRequired).into())
    }
}
