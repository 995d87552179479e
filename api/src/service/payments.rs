//! Payments for merchants, and the checkout's view of them.

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
};

/// Items on a page where the caller does not say.
pub(super) const DEFAULT_LIMIT: u32 = 20;
/// Days that are added up where the caller does not say.
const DEFAULT_DAYS: u32 = 30;
/// Days that are added up at most.
const MAX_DAYS: u32 = 366;
/// Items on a page at most.
pub(super) const MAX_LIMIT: u32 = 100;

/// Reads the key under which a request is done once.
pub(super) fn idempotency_key<T>(request: &Request<T>) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(key) = request.metadata().as_ref().get(IDEMPOTENCY_KEY) else { return Ok(None) };
    // Bytes that are no text are no visible characters either.
    let key = IdempotencyKey::parse(key.to_str().unwrap_or_default());
    key.map(Some).map_err(|violation| convert::invalid(vec![violation]))
}

type Snapshots<R> = BoxStream<'static, Result<R, Status>>;

impl Service {
    fn record<R>(&self, payment: Arc<Payment>, merchant: &Merchant) -> Response<R>
    where
        R: RecordResponse<Record = v1::Payment>,
    {
        record_response(convert::payment(Arc::unwrap_or_clone(payment), merchant, self.engine.now()))
    }

    /// Returns a payment of the caller's, and the caller.
    async fn own<T>(&self, request: &Request<T>, id: &str) -> Result<(Arc<Payment>, Arc<Merchant>), ApiError> {
        let merchant = self.caller(request, Scope::PaymentsRead).await?;
        let id = convert::payment_id(id)?;
        if mutant!("facade-another-shop-reads") {
            return Ok((self.engine.payments.any(id).await.map_err(error)?, merchant));
        }
        let payment = self.engine.payments.get(merchant.id, id).await.map_err(error)?;
        Ok((payment, merchant))
    }

    /// Returns the payment a checkout address names, and its merchant.
    async fn session(&self, session: Option<&v1::CheckoutSession>) -> Result<(Arc<Payment>, Arc<Merchant>), ApiError> {
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

    /// Returns the snapshots of a payment. The stream ends with `OK` after a final state only: a watcher that is cut off
    /// earlier gets `UNAVAILABLE` and may watch again. An API key that opened it must still be valid at each snapshot.
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
                    return Some((Err(cut_off()), None));
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

fn cut_off() -> Status {
    ApiError::with_message(Reason::EngineUnavailable, "the watch ended before the payment; watch it again").into()
}

#[tonic::async_trait]
impl PaymentService for Service {
    async fn create_payment(
        &self,
        request: Request<v1::CreatePaymentRequest>,
    ) -> Result<Response<v1::CreatePaymentResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsWrite).await?;
        let key = idempotency_key(&request)?;
        let asked = request.into_inner();
        let currency = convert::read_currency(asked.currency);
        let draft = Draft::check(RawDraft {
            amount_units: asked.amount_units,
            // A wrong currency is reported with the other wrong fields; their rules are the same for both currencies.
            currency: currency.as_ref().copied().unwrap_or(Currency::Hbd),
            description: asked.description,
            metadata: convert::read_metadata(asked.metadata)?,
            redirect_url: asked.redirect_url,
            cancel_url: asked.cancel_url,
            expires_in_seconds: asked.expires_in_seconds.map(u64::from),
        });
        let draft = match (currency, draft.map_err(convert::invalid)) {
            (Ok(_), draft) => draft?,
            (Err(wrong), Ok(_)) => return Err(wrong.into()),
            (Err(mut wrong), Err(others)) => {
                wrong.fields.extend(others.fields);
                return Err(wrong.into());
            }
        };
        let opened = self.engine.payments.open(&merchant, draft, key.as_ref()).await.map_err(error)?;
        let mut answer = self.record(opened.payment, &merchant);
        if opened.is_replay {
            answer.metadata_mut().insert(IDEMPOTENT_REPLAYED, MetadataValue::from_static("true"));
        }
        Ok(answer)
    }

    async fn get_payment(
        &self,
        request: Request<v1::GetPaymentRequest>,
    ) -> Result<Response<v1::GetPaymentResponse>, Status> {
        let (payment, merchant) = self.own(&request, &request.get_ref().payment_id).await?;
        Ok(self.record(payment, &merchant))
    }

    async fn inspect_payment(
        &self,
        request: Request<v1::InspectPaymentRequest>,
    ) -> Result<Response<v1::InspectPaymentResponse>, Status> {
        // Without a key it is the operator, at the engine's own port: the port asks for the operator's token then.
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
        let (payment, _) = self.own(&request, &request.get_ref().payment_id).await?;
        let old = payment.previous_state.filter(|_| mutant!("facade-state-is-the-last-one"));
        Ok(Response::new(v1::GetPaymentStatusResponse {
            id: request.into_inner().payment_id,
            status: convert::state(old.unwrap_or(payment.state)).into(),
            completed_at: payment.completed_at.map(convert::timestamp),
        }))
    }

    async fn list_payments(
        &self,
        request: Request<v1::ListPaymentsRequest>,
    ) -> Result<Response<v1::ListPaymentsResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let asked = request.into_inner();
        let limit = page_size(asked.page_size)?;
        let at = match asked.page_token.as_str() {
            "" => PageAt::Number(page_after(asked.skip, limit)?),
            token => PageAt::After(decode(token).ok_or_else(wrong_token)?),
        };
        let ids = ids_of(&asked.ids)?;
        let query = PaymentQuery {
            merchant: merchant.id,
            at,
            limit: limit as usize,
            states: asked.statuses.into_iter().map(convert::read_state).collect::<Result<_, _>>()?,
            from: asked.created_from.map(|time| convert::instant("createdFrom", time)).transpose()?,
            to: asked.created_to.map(|time| convert::instant("createdTo", time)).transpose()?,
            currency: asked.currency.map(convert::read_currency).transpose()?,
            min_units: asked.min_amount_units,
            max_units: asked.max_amount_units,
            unusual: asked.unusual,
            ids,
            query: asked.query,
        };
        // Ids that are none of ours name nothing; an empty filter would name everything.
        let found = if asked.ids.is_empty() || !query.ids.is_empty() {
            self.engine.payments.list(query).await.map_err(error)?
        } else {
            storage::Page::of(Vec::new(), 0)
        };
        let next_page_token = found.next.map(|bits| String::from_utf8_lossy(&encode(bits)).into_owned());
        let next_page_token = next_page_token.unwrap_or_default();
        let total_size = asked.page_token.is_empty().then_some(found.total);
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
        let asked = request.into_inner();
        let id = convert::payment_id(&asked.payment_id)?;
        let limit = page_size(asked.page_size)? as usize;
        let before = place_of(&asked.page_token)?;
        // One more than the page tells whether there is another.
        let mut found = self.engine.payments.transfers(merchant.id, id, before, limit + 1).await.map_err(error)?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next_page_token = found.last().filter(|_| has_more).map(|last| last.seq.to_string()).unwrap_or_default();
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
        let asking = self.asking(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &asking.merchant;
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = asking.engine.payments.cancel(merchant.id, id).await.map_err(error)?;
        Ok(self.record(payment, merchant))
    }

    async fn delete_payment_metadata(
        &self,
        request: Request<v1::DeletePaymentMetadataRequest>,
    ) -> Result<Response<v1::DeletePaymentMetadataResponse>, Status> {
        let asking = self.asking(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &asking.merchant;
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = asking.engine.payments.delete_metadata(merchant.id, id).await.map_err(error)?;
        Ok(self.record(payment, merchant))
    }

    async fn delete_payment_note(
        &self,
        request: Request<v1::DeletePaymentNoteRequest>,
    ) -> Result<Response<v1::DeletePaymentNoteResponse>, Status> {
        let asking = self.asking(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &asking.merchant;
        let id = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = asking.engine.payments.delete_note(merchant.id, id).await.map_err(error)?;
        Ok(self.record(payment, merchant))
    }

    type WatchPaymentStream = Snapshots<v1::WatchPaymentResponse>;

    async fn watch_payment(
        &self,
        request: Request<v1::WatchPaymentRequest>,
    ) -> Result<Response<Self::WatchPaymentStream>, Status> {
        let (payment, merchant) = self.own(&request, &request.get_ref().payment_id).await?;
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
        let (payment, merchant) = self.session(request.get_ref().session.as_ref()).await?;
        Ok(self.record(payment, &merchant))
    }

    async fn cancel_checkout(
        &self,
        request: Request<v1::CancelCheckoutRequest>,
    ) -> Result<Response<v1::CancelCheckoutResponse>, Status> {
        let (payment, merchant) = self.session(request.get_ref().session.as_ref()).await?;
        let payment = self.engine.payments.cancel_checkout(payment.id).await.map_err(error)?;
        Ok(self.record(payment, &merchant))
    }

    async fn report_wallet(
        &self,
        request: Request<v1::ReportWalletRequest>,
    ) -> Result<Response<v1::ReportWalletResponse>, Status> {
        let (payment, merchant) = self.session(request.get_ref().session.as_ref()).await?;
        let payment = self.engine.payments.report_wallet(payment.id).await.map_err(error)?;
        Ok(self.record(payment, &merchant))
    }

    type WatchCheckoutStream = Snapshots<v1::WatchCheckoutResponse>;

    async fn watch_checkout(
        &self,
        request: Request<v1::WatchCheckoutRequest>,
    ) -> Result<Response<Self::WatchCheckoutStream>, Status> {
        let (payment, merchant) = self.session(request.get_ref().session.as_ref()).await?;
        Ok(self.snapshots(payment.id, merchant, None).await?)
    }
}

/// Reads a page's size; 0 means the default.
pub(super) fn page_size(size: u32) -> Result<u32, ApiError> {
    match size {
        0 => Ok(DEFAULT_LIMIT),
        size if size <= MAX_LIMIT => Ok(size),
        _ => Err(ApiError::field("limit", format!("must be a whole number from 1 to {MAX_LIMIT}"))),
    }
}

/// Returns the number of the page, from 1, that begins after so many items.
pub(super) fn page_after(skip: u64, size: u32) -> Result<u64, ApiError> {
    let size = u64::from(size);
    match skip % size {
        0 => Ok(skip / size + 1),
        _ => Err(ApiError::field("skip", format!("must be a multiple of the page's size, {size}"))),
    }
}

/// Refuses a page token that no response gave.
pub(super) fn wrong_token() -> ApiError {
    ApiError::field("cursor", "must be the one that an earlier response gave")
}

/// Reads a page token that is a place in a list; an empty one names none.
pub(super) fn place_of(token: &str) -> Result<Option<u64>, ApiError> {
    if token.is_empty() {
        return Ok(None);
    }
    let place = token.parse::<u64>().ok().filter(|place| place.to_string() == token);
    place.map(Some).ok_or_else(wrong_token)
}

pub(super) fn ids_of(texts: &[String]) -> Result<Vec<PaymentId>, ApiError> {
    if texts.len() > MAX_LIMIT as usize {
        return Err(ApiError::field("ids", format!("must name at most {MAX_LIMIT} payments")));
    }
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}
