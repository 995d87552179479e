//! Why the chain refuses a transaction, with hived's codes, names and messages.

use engine::{
    account::AccountName,
    hive::{AccountAuthorities, Asset, DecodeError, Invalid, Refusal, Role, SignatureError},
};

/// Why a transaction is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not a transaction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Not a valid one.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Larger than the maximum size.
    #[error("the transaction has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A signature does not hold.
    #[error("a signature {0}")]
    Signature(SignatureError),
    /// Two signatures of one key.
    #[error("one key has signed twice")]
    DuplicateSignature,
    /// The keys do not have the account's authority.
    #[error("missing the {role:?} authority of {account}")]
    MissingAuthority {
        /// Which authority is missing.
        role: Role,
        /// Whose.
        account: AccountName,
        /// The required authority.
        authorities: Box<AccountAuthorities>,
    },
    /// An account that must sign does not exist.
    #[error("an account that must sign does not exist")]
    UnknownSigner,
    /// Another account that the transaction names does not exist.
    #[error("account {account} does not exist")]
    UnknownAccount {
        /// Its name.
        account: String,
    },
    /// The same transaction is in a block or in the mempool.
    #[error("the transaction is already known")]
    Duplicate,
    /// The reference block is not of this chain.
    #[error("the reference block is not of this chain")]
    Tapos {
        /// What the transaction contains.
        given: u32,
        /// What the chain has there.
        expected: u32,
    },
    /// The head has reached the expiration.
    #[error("the transaction has expired")]
    Expired,
    /// It expires more than a day after the head.
    #[error("the transaction expires too late")]
    TooFarAhead,
    /// Not enough money.
    #[error("{account} has {available}, {required} is needed")]
    Funds {
        /// Who pays.
        account: AccountName,
        /// How much is needed.
        required: Asset,
        /// How much is there.
        available: Asset,
    },
    /// Not enough resource credits.
    #[error("{account} has no resource credits")]
    NoRc {
        /// Whose.
        account: AccountName,
    },
    /// The node's head is older than the sender allows (`max_block_age`).
    #[error("the head is {seconds} seconds old")]
    StaleHead {
        /// How old.
        seconds: u64,
    },
    /// An account of this name exists.
    #[error("account {account} exists")]
    AccountExists {
        /// The name.
        account: AccountName,
    },
}

/// hived's error for a refusal, as in JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// JSON-RPC's own code.
    pub rpc_code: i32,
    /// `data.code`.
    pub code: u32,
    /// `data.name`.
    pub name: &'static str,
    /// `data.message` of the exception.
    pub what: &'static str,
    /// What hived asserted; empty if it did not assert.
    pub expression: &'static str,
    /// The explanation.
    pub text: String,
}

impl Rendered {
    /// Returns the message: `what:expression: text`.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { what, expression, text, .. } = self;
        if expression.is_empty() { format!("{what}:{text}") } else { format!("{what}:{expression}: {text}") }
    }
}

/// A call that failed an assertion.
const ASSERTED: i32 = -32003;
/// A call that threw anything else.
const THREW: i32 = -32000;

/// A failed assertion.
fn assert(expression: &'static str, text: impl Into<String>) -> Rendered {
    Rendered { expression, ..exception(10, "assert_exception", "Assert Exception", text) }
}

/// An exception of hived's own kinds.
fn exception(code: u32, name: &'static str, what: &'static str, text: impl Into<String>) -> Rendered {
    Rendered { rpc_code: ASSERTED, code, name, what, expression: "", text: text.into() }
}

/// An exception that is no assertion.
fn thrown(code: u32, name: &'static str, what: &'static str, text: impl Into<String>) -> Rendered {
    Rendered { rpc_code: THREW, ..exception(code, name, what, text) }
}

impl Refused {
    /// Returns the error that hived responds with.
    #[must_use]
    pub fn render(&self) -> Rendered {
        match self {
            Self::Decode(error) => thrown(7, "bad_cast_exception", "Bad Cast", error.to_string()),
            Self::Invalid(invalid) => render_invalid(invalid),
            Self::TooLarge { size, limit } => assert(
                "trx_size <= get_dynamic_global_properties().maximum_block_size - 256",
                format!("Transaction too large - size = {size}, limit {limit}"),
            ),
            Self::Signature(error) => render_signature(*error),
            Self::DuplicateSignature => {
                let (name, what) = ("tx_duplicate_sig", "duplicate signature included");
                exception(3_060_000, name, what, "Duplicate signature detected")
            }
            Self::MissingAuthority { role, account, .. } => render_authority(*role, account),
            Self::UnknownSigner => {
                let name = "N5boost16exception_detail10clone_implINS0_19error_info_injectorISt12out_of_rangeEEEE";
                thrown(13, name, "unknown key", "unknown key: ")
            }
            Self::UnknownAccount { account } => {
                assert("account != nullptr", format!("Account {account} doesn't exist"))
            }
            Self::Duplicate => assert("!is_known_transaction( trx_id )", "Duplicate transaction check failed"),
            Self::Tapos { .. } => Rendered {
                expression: "trx.ref_block_prefix == tapos_block_summary.block_id._hash[1]",
                ..exception(4_030_200, "transaction_tapos_exception", "transaction tapos exception", "")
            },
            Self::Expired => render_expiration("now < trx.expiration"),
            Self::TooFarAhead => {
                render_expiration("trx.expiration <= now + fc::seconds( HIVE_MAX_TIME_UNTIL_SIGNATURE_EXPIRATION )")
            }
            Self::Funds { account, required, available } => assert(
                "acnt.get_balance().amount + delta.amount >= 0",
                format!(
                    "Account {account} does not have sufficient funds for balance adjustment. Required: -{required}, Available: {available}"
                ),
            ),
            Self::NoRc { account } => {
                let (name, what) = ("not_enough_rc_exception", "payer has not enough RC mana for transaction");
                let text =
                    format!("Account: {account} has 0 RC, needs 157 RC. Please wait to transact or power up HIVE.");
                Rendered { expression: "has_mana", ..exception(4_100_100, name, what, text) }
            }
            Self::StaleHead { seconds } => {
                assert("age < max_block_age", format!("The head block is too old: {seconds} seconds"))
            }
            Self::AccountExists { account } => {
                assert("_db.find_account( name ) == nullptr", format!("Account {account} already exists."))
            }
        }
    }
}

fn render_signature(error: SignatureError) -> Rendered {
    match error {
        SignatureError::HighS => assert("is_canonical( c )", "signature is not canonical"),
        SignatureError::Header { .. } => {
            thrown(0, "exception", "unspecified", "unable to reconstruct public key from signature")
        }
        SignatureError::NoKey => assert(
            "secp256k1_ecdsa_recover( ctx, &key, &sig, digest )",
            "unable to reconstruct public key from signature",
        ),
    }
}

fn render_authority(role: Role, account: &AccountName) -> Rendered {
    let (code, name, what, level) = match role {
        Role::Active => (3_010_000, "tx_missing_active_auth", "missing required active authority", "Active"),
        Role::Owner => (3_020_000, "tx_missing_owner_auth", "missing required owner authority", "Owner"),
        Role::Posting => (3_030_000, "tx_missing_posting_auth", "missing required posting authority", "Posting"),
    };
    exception(code, name, what, format!("Missing {level} Authority {account}"))
}

fn render_expiration(expression: &'static str) -> Rendered {
    let (name, what) = ("transaction_expiration_exception", "transaction expiration exception");
    Rendered { expression, ..exception(4_030_100, name, what, "") }
}

fn render_invalid(invalid: &Invalid) -> Rendered {
    match invalid {
        Invalid::NoOperations => assert("operations.size() > 0", "A transaction must have at least one operation"),
        Invalid::Name { name, why: engine::account::NameError::Length, .. } if name.len() < 3 => assert(
            "validity_check_result != account_name_validity::too_short",
            format!("Account name '{name}' is too short. Use at least 3 characters."),
        ),
        Invalid::Name { name, why: engine::account::NameError::Length, .. } => assert(
            "validity_check_result != account_name_validity::too_long",
            format!("Account name '{name}' is too long. Use maximum of 16 characters."),
        ),
        Invalid::Name { name, .. } => assert(
            "validity_check_result != account_name_validity::invalid_sequence",
            format!("Account name '{name}' is not valid. Please follow the RFC 1035 rules."),
        ),
        Invalid::Asset { .. } => assert("amount.symbol.is_vesting() == false", "Transfer of vesting is not allowed."),
        Invalid::NotPositive { .. } => assert("amount.amount > 0", "Cannot transfer a negative amount (aka: stealing)"),
        Invalid::MemoTooLong { .. } => assert("memo.size() < HIVE_MAX_MEMO_SIZE", "Transfer memo is too large"),
        Invalid::Recurrence => assert(
            "recurrence >= HIVE_MIN_RECURRENT_TRANSFERS_RECURRENCE",
            "Cannot set a transfer recurrence that is less than 24 hours",
        ),
        Invalid::Executions => assert(
            "executions >= 2",
            "Executions must be at least 2, if you set executions to 1 the recurrent transfer will execute immediately and delete itself. You should use a normal transfer operation",
        ),
        Invalid::TooLong => assert(
            "execution_end <= HIVE_MAX_RECURRENT_TRANSFER_END_DATE",
            "Cannot set a transfer that would last for longer than 730 days",
        ),
        Invalid::ToSelf => assert("from != to", "Cannot set a transfer to yourself"),
        Invalid::Range { field } => assert("", format!("{field} is out of range")),
    }
}

impl Refused {
    /// Takes the codec's refusal; `authorities` are those of the account that is denied, if it exists.
    pub(super) fn from_refusal(
        refusal: Refusal,
        authorities: impl FnOnce(&AccountName) -> Option<AccountAuthorities>,
    ) -> Self {
        match refusal {
            Refusal::Decode(error) => Self::Decode(error),
            Refusal::Invalid(invalid) => Self::Invalid(invalid),
            Refusal::Signature { why, .. } => Self::Signature(why),
            Refusal::DuplicateSignature { .. } => Self::DuplicateSignature,
            Refusal::Authority(denied) => match authorities(&denied.account) {
                Some(authorities) if denied.unknown.is_empty() => Self::MissingAuthority {
                    role: denied.role,
                    account: denied.account,
                    authorities: Box::new(authorities),
                },
                _ => Self::UnknownSigner,
            },
            Refusal::Expired { .. } => Self::Expired,
            Refusal::TooFarAhead { .. } => Self::TooFarAhead,
            Refusal::Tapos => Self::Tapos { given: 0, expected: 0 },
        }
    }
}
