//! Payments, for merchants and for the checkout page.

use std::sync::Arc;

use engine::{
    idempotency::IdempotencyKey,
    ids::{PaymentId, SlugToken, decode, encode},
    merchant::{Merchant, Scope},
    money::Currency,
    mutant,
    payment::{Draft, Payment, RawDraft},
};
use futures_util::stream::{self, BoxStream, StreamExt};
use proto::{
    ApiError, Reason, RecordResponse,
    caller::{IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED},
    record_response,
    v1::{
        self, checkout_service_server::CheckoutService, checkout_session::Session,
        payment_service_server::PaymentService,
    },
};
use storage::{PageAt, PaymentQuery};
use tonic::{Request, Response, Status, metadata::MetadataValue};

use super::{
    Service,
    convert::{self, error},
    page::{Filters, MAX_LIMIT, invalid_token, numeric_token, page_after, page_size},
};

/// Default number of days of a volume.
const DEFAULT_DAYS: u32 = 30;
/// Maximum number of days of a volume.
const MAX_DAYS: u32 = 366;

/// Reads the idempotency key of a request; `None` if it has none.
///
/// # Errors
/// `VALIDATION_FAILED` if the key is not 1 to 255 visible ASCII characters.
pub(super) fn idempotency_key<T>(request: &Request<T>) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(key) = request.metadata().as_ref().get(IDEMPOTENCY_KEY) else { return Ok(None) };
    // A key that is not ASCII is parsed as an empty one, which is invalid.
    let key = IdempotencyKey::parse(key.to_str().unwrap_or_default());
    key.map(Some).map_err(|violation| convert::invalid(vec![violation]))
}

type Snapshots<R> = BoxStream<'static, Result<R, Status>>;

impl Service {
    /// Returns a response with a payment.
    fn record<R>(&self, payment: Arc<Payment>, merchant: &Merchant) -> Response<R>
    where
        R: RecordResponse<Record = v1::Payment>,
    {
        record_response(convert::payment(Arc::unwrap_or_clone(payment), merchant, self.engine.now()))
    }

    /// Returns a payment of the caller, and the caller.
    ///
    /// # Errors
    /// `NOT_FOUND` if the payment does not exist or belongs to another merchant.
    async fn own_payment<T>(&self, request: &Request<T>, id: &str) -> Result<(Arc<Payment>, Arc<Merchant>), ApiError> {
        let merchant = self.caller(request, Scope::PaymentsRead).await?;
        let id = convert::payment_id(id)?;
        if mutant!("facade-other-merchant-reads") {
            return Ok((self.engine.payments.any(id).await.map_err(error)?, merchant));
        }
        let payment = self.engine.payments.get(merchant.id, id).await.map_err(error)?;
        Ok((payment, merchant))
    }

    /// Returns the payment of a checkout page, and its merchant.
    pub(super) async fn checkout(
        &self,
        session: Option<&v1::CheckoutSession>,
    ) -> Result<(Arc<Payment>, Arc<Merchant>), ApiError> {
        let missing = || ApiError::with_message(Reason::NotFound, "no such payment");
        let payment = match session.and_then(|session| session.session.as_ref()) {
            Some(Session::Slug(slug)) => {
                let token = SlugToken::from_slug(slug).ok_or_else(missing)?;
                self.engine.payments.by_slug(token).await
            }
            Some(Session::PaymentId(id)) => self.engine.payments.any(convert::payment_id(id)?).await,
            None => return Err(missing()),
        };
        let payment = payment.map_err(error)?;
        let merchant = self.engine.merchants.get(payment.merchant).await.map_err(error)?;
        Ok((payment, merchant))
    }

    /// Streams snapshots of a payment. The stream ends with `OK` after a final state, and with `UNAVAILABLE` if it is closed
    /// earlier: the client may watch again. If `key` is set, it must be valid at each snapshot.
    async fn snapshots<R>(
        &self,
        id: PaymentId,
        merchant: Arc<Merchant>,
        key: Option<String>,
    ) -> Result<Response<Snapshots<R>>, ApiError>
    where
        R: RecordResponse<Record = v1::Payment> + Send + 'static,
    {
        let watch = self.engine.payments.watch(id).await.map_err(error)?;
        let engine = self.engine.clone();
        let closed = Box::pin(self.closed());
        let stream = stream::unfold(Some((watch, closed)), move |open| {
            let (engine, merchant, key) = (engine.clone(), Arc::clone(&merchant), key.clone());
            async move {
                let (mut watch, mut closed) = open?;
                let payment = tokio::select! {
                    biased;
                    payment = watch.next() => payment,
                    () = &mut closed => None,
                };
                let Some(payment) = payment else {
                    return Some((Err(watch_closed()), None));
                };
                if let Some(key) = key
                    && let Err(refused) = engine.merchants.authenticate(&key).await
                {
                    return Some((Err(error(refused).into()), None));
                }
                let open = (!payment.state.is_terminal()).then_some((watch, closed));
                let record = convert::payment(Arc::unwrap_or_clone(payment), &merchant, engine.now());
                Some((Ok(R::from_record(record)), open))
            }
        });
        Ok(Response::new(stream.boxed()))
    }
}

fn watch_closed() -> Status {
    ApiError::with_message(Reason::EngineUnavailable, "the stream was closed before a final state; watch again").into()
}

#[tonic::async_trait]
impl PaymentService for Service {
    async fn create_payment(
        &self,
        request: Request<v1::CreatePaymentRequest>,
    ) -> Result<Response<v1::CreatePaymentResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsWrite).await?;
        let key = idempotency_key(&request)?;
        let message = request.into_inner();
        let currency = convert::read_currency(message.currency);
        let draft = Draft::check(RawDraft {
            amount_units: message.amount_units,
            // An invalid currency is reported with the other invalid fields; their rules do not depend on the currency.
            currency: currency.as_ref().copied().unwrap_or(Currency::Hbd),
            description: message.description,
            metadata: convert::read_metadata(message.metadata)?,
            redirect_url: message.redirect_url,
            cancel_url: message.cancel_url,
            expires_in_seconds: message.expires_in_seconds.map(u64::from),
        });
        let draft = match (currency, draft.map_err(convert::invalid)) {
            (Ok(_), draft) => draft?,
            (Err(invalid), Ok(_)) => return Err(invalid.into()),
            (Err(mut invalid), Err(others)) => {
                invalid.fields.extend(others.fields);
                return Err(invalid.into());
            }
        };
        let opened = self.engine.payments.open(&merchant, draft, key.as_ref()).await.map_err(error)?;
        let mut response = self.record(opened.payment, &merchant);
        if opened.is_replay {
            response.metadata_mut().insert(IDEMPOTENT_REPLAYED, MetadataValue::from_static("true"));
        }
        Ok(response)
    }

    async fn get_payment(
        &self,
        request: Request<v1::GetPaymentRequest>,
    ) -> Result<Response<v1::GetPaymentResponse>, Status> {
        let (payment, merchant) = self.own_payment(&request, &request.get_ref().payment_id).await?;
        Ok(self.record(payment, &merchant))
    }

    async fn inspect_payment(
        &self,
        request: Request<v1::InspectPaymentRequest>,
    ) -> Result<Response<v1::InspectPaymentResponse>, Status> {
        // A call without an API key is the operator's: the gRPC port requires the operator's token for it.
        let engine = match request.metadata().as_ref().contains_key(proto::caller::API_KEY) {
            true => self.admin(&request).await?.engine,
            false => self.engine.clone(),
        };
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let (payment, rows) = engine.payments.inspect(id).await.map_err(error)?;
        let merchant = self.engine.merchants.get(payment.merchant).await.map_err(error)?;
        let mut payment = convert::payment(Arc::unwrap_or_clone(payment), &merchant, self.engine.now());
        payment.transfers = rows.into_iter().map(convert::transfer).collect();
        Ok(Response::new(v1::InspectPaymentResponse { payment: Some(payment) }))
    }

    async fn get_payment_status(
        &self,
        request: Request<v1::GetPaymentStatusRequest>,
    ) -> Result<Response<v1::GetPaymentStatusResponse>, Status> {
        let (payment, _) = self.own_payment(&request, &request.get_ref().payment_id).await?;
        let previous = payment.previous_state.filter(|_| mutant!("facade-status-is-the-previous-one"));
        Ok(Response::new(v1::GetPaymentStatusResponse {
            id: request.into_inner().payment_id,
            status: convert::state(previous.unwrap_or(payment.state)).into(),
            completed_at: payment.completed_at.map(convert::timestamp),
        }))
    }

    async fn list_payments(
        &self,
        request: Request<v1::ListPaymentsRequest>,
    ) -> Result<Response<v1::ListPaymentsResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        let mut filters =
            v1::ListPaymentsRequest { page_size: 0, skip: 0, page_token: String::new(), ..message.clone() };
        filters.statuses.sort_unstable();
        filters.ids.sort_unstable();
        let filters = Filters::of(&filters);
        let at = match filters.read(&message.page_token)? {
            "" => PageAt::Number(page_after(message.skip, limit)?),
            token => PageAt::After(decode(token).ok_or_else(invalid_token)?),
        };
        let ids = read_ids(&message.ids)?;
        let query = PaymentQuery {
            merchant: merchant.id,
            at,
            limit: limit as usize,
            states: message.statuses.into_iter().map(convert::read_state).collect::<Result<_, _>>()?,
            from: message.created_from.map(|time| convert::instant("createdFrom", time)).transpose()?,
            to: message.created_to.map(|time| convert::instant("createdTo", time)).transpose()?,
            currency: message.currency.map(convert::read_currency).transpose()?,
            min_units: message.min_amount_units,
            max_units: message.max_amount_units,
            unusual: message.unusual,
            ids,
            query: message.query,
        };
        // If none of the requested ids is valid, nothing matches; an empty filter would match everything.
        let found = if message.ids.is_empty() || !query.ids.is_empty() {
            self.engine.payments.list(query).await.map_err(error)?
        } else {
            storage::Page::of(Vec::new(), 0)
        };
        let next_page_token = found.next.map(|bits| String::from_utf8_lossy(&encode(bits)).into_owned());
        let next_page_token = filters.token(next_page_token.unwrap_or_default());
        let total_size = message.page_token.is_empty().then_some(found.total);
        let total_is_lower_bound = found.total_is_lower_bound;
        let now = self.engine.now();
        let payments = found.items.into_iter().map(|payment| convert::payment(payment, &merchant, now)).collect();
        Ok(Response::new(v1::ListPaymentsResponse { payments, next_page_token, total_size, total_is_lower_bound }))
    }

    async fn list_transfers(
        &self,
        request: Request<v1::ListTransfersRequest>,
    ) -> Result<Response<v1::ListTransfersResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let id = convert::payment_id(&message.payment_id)?;
        let limit = page_size(message.page_size)? as usize;
        let filters = Filters::of(&v1::ListTransfersRequest {
            payment_id: message.payment_id.clone(),
            ..v1::ListTransfersRequest::default()
        });
        let before = numeric_token(filters.read(&message.page_token)?)?;
        // One more row than the page shows whether there is another page.
        let mut found = self.engine.payments.transfers(merchant.id, id, before, limit + 1).await.map_err(error)?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next_page_token = found.last().filter(|_| has_more).map(|last| last.seq.to_string()).unwrap_or_default();
        let next_page_token = filters.token(next_page_token);
        let transfers = found.into_iter().map(convert::transfer).collect();
        Ok(Response::new(v1::ListTransfersResponse { transfers, next_page_token }))
    }

    async fn get_volume(
        &self,
        request: Request<v1::GetVolumeRequest>,
    ) -> Result<Response<v1::GetVolumeResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let days = match request.get_ref().days {
            0 => DEFAULT_DAYS,
            days if days <= MAX_DAYS => days,
            _ => return Err(ApiError::field("days", format!("must be a whole number from 1 to {MAX_DAYS}")).into()),
        };
        let volume = self.engine.payments.volume(merchant.id, u64::from(days)).await.map_err(error)?;
        Ok(Response::new(convert::volume(volume)))
    }

    async fn cancel_payment(
        &self,
        request: Request<v1::CancelPaymentRequest>,
    ) -> Result<Response<v1::CancelPaymentResponse>, Status> {
        let principal = self.principal(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &principal.merchant;
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = principal.engine.payments.cancel(merchant.id, id).await.map_err(error)?;
        Ok(self.record(payment, merchant))
    }

    async fn delete_payment_metadata(
        &self,
        request: Request<v1::DeletePaymentMetadataRequest>,
    ) -> Result<Response<v1::DeletePaymentMetadataResponse>, Status> {
        let principal = self.principal(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &principal.merchant;
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = principal.engine.payments.delete_metadata(merchant.id, id).await.map_err(error)?;
        Ok(self.record(payment, merchant))
    }

    async fn delete_payment_note(
        &self,
        request: Request<v1::DeletePaymentNoteRequest>,
    ) -> Result<Response<v1::DeletePaymentNoteResponse>, Status> {
        let principal = self.principal(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &principal.merchant;
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = principal.engine.payments.delete_note(merchant.id, id).await.map_err(error)?;
        Ok(self.record(payment, merchant))
    }

    type WatchPaymentStream = Snapshots<v1::WatchPaymentResponse>;

    async fn watch_payment(
        &self,
        request: Request<v1::WatchPaymentRequest>,
    ) -> Result<Response<Self::WatchPaymentStream>, Status> {
        let (payment, merchant) = self.own_payment(&request, &request.get_ref().payment_id).await?;
        let key = proto::caller::api_key(&request).map(str::to_owned);
        Ok(self.snapshots(payment.id, merchant, key).await?)
    }
}

#[tonic::async_trait]
impl CheckoutService for Service {
    async fn get_checkout(
        &self,
        request: Request<v1::GetCheckoutRequest>,
    ) -> Result<Response<v1::GetCheckoutResponse>, Status> {
        let (payment, merchant) = self.checkout(request.get_ref().session.as_ref()).await?;
        Ok(self.record(payment, &merchant))
    }

    async fn cancel_checkout(
        &self,
        request: Request<v1::CancelCheckoutRequest>,
    ) -> Result<Response<v1::CancelCheckoutResponse>, Status> {
        let (payment, merchant) = self.checkout(request.get_ref().session.as_ref()).await?;
        let payment = self.engine.payments.cancel_checkout(payment.id).await.map_err(error)?;
        Ok(self.record(payment, &merchant))
    }

    async fn report_wallet(
        &self,
        request: Request<v1::ReportWalletRequest>,
    ) -> Result<Response<v1::ReportWalletResponse>, Status> {
        let (payment, merchant) = self.checkout(request.get_ref().session.as_ref()).await?;
        let payment = self.engine.payments.report_wallet(payment.id).await.map_err(error)?;
        Ok(self.record(payment, &merchant))
    }

    async fn restart_checkout(
        &self,
        request: Request<v1::RestartCheckoutRequest>,
    ) -> Result<Response<v1::RestartCheckoutResponse>, Status> {
        let (expired, merchant) = self.checkout(request.get_ref().session.as_ref()).await?;
        let restarted = self.engine.payments.restart(&merchant, &expired).await.map_err(error)?;
        Ok(self.record(restarted.payment, &merchant))
    }

    type WatchCheckoutStream = Snapshots<v1::WatchCheckoutResponse>;

    async fn watch_checkout(
        &self,
        request: Request<v1::WatchCheckoutRequest>,
    ) -> Result<Response<Self::WatchCheckoutStream>, Status> {
        let (payment, merchant) = self.checkout(request.get_ref().session.as_ref()).await?;
        Ok(self.snapshots(payment.id, merchant, None).await?)
    }
}

/// Reads ids of payments; texts that are not ids are omitted.
pub(super) fn read_ids(texts: &[String]) -> Result<Vec<PaymentId>, ApiError> {
    if texts.len() > MAX_LIMIT as usize {
        return Err(ApiError::field("ids", format!("must have at most {MAX_LIMIT} ids")));
    }
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}
