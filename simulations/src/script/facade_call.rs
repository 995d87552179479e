//! Calls of clients to the facade, with the keywords of scenario files.

/// What a client does at the facade. The merchant is the session's, if not another one is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FacadeCall {
    /// The merchant reads the session and its status; the customer reads the status.
    Read,
    /// The merchant lists payments and events.
    List,
    /// A browser and a program request the checkout.
    ViewCheckout,
    /// The merchant repeats its order under the same idempotency key.
    RepeatOrder,
    /// The merchant sends another order under the same idempotency key.
    ChangeOrder,
    /// The merchant sends invalid orders.
    InvalidOrders,
    /// Another merchant requests the session, and one that does not exist.
    AccessOthersPayment,
    /// A client sends forms with a token that is not its own.
    ForgeForms,
    /// The merchant logs in to the dashboard.
    Dashboard,
    /// A client exceeds a rate limit.
    ExceedRateLimit,
    /// The merchant calls by gRPC.
    Grpc,
    /// The merchant watches the session by gRPC.
    Watch,
}

impl FacadeCall {
    /// Every kind, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Read, "read"),
        (Self::List, "list"),
        (Self::ViewCheckout, "open the checkout"),
        (Self::RepeatOrder, "repeat its request"),
        (Self::ChangeOrder, "reuse its idempotency key"),
        (Self::InvalidOrders, "send invalid requests"),
        (Self::AccessOthersPayment, "request another's data"),
        (Self::ForgeForms, "forge forms"),
        (Self::Dashboard, "use the dashboard"),
        (Self::ExceedRateLimit, "exceed the rate limit"),
        (Self::Grpc, "call by gRPC"),
        (Self::Watch, "watch"),
    ];
}
