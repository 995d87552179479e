//! Operations: those that transfer money, and the most common others, so that their transaction ids can be computed.

use std::collections::BTreeSet;

use super::{
    Asset, Authority, DecodeError, Fault, Form, Invalid, PublicKey, Role, Symbol,
    authority::Required,
    field::Field,
    json::{Json, write_list, write_text},
    pack::{Reader, Writer},
};
use crate::{account::AccountName, money::Money};

/// Maximum bytes of a memo (`HIVE_MAX_MEMO_SIZE` - 1).
pub const MAX_MEMO_BYTES: usize = 2_047;

/// Defines an operation: its number, its name and its members in serialization order.
macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        $name:ident = $id:literal $text:literal { $( $(#[$member_doc:meta])* $member:ident: $type:ty, )* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name { $( $(#[$member_doc])* pub $member: $type, )* }

            impl $name {
                fn pack(&self, writer: &mut Writer) {
                    $( self.$member.pack(writer); )*
                }

                fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    Ok(Self { $( $member: Field::unpack(reader).map_err(|e: DecodeError| e.inside(stringify!($member)))?, )* })
                }

                fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
                    Ok(Self { $( $member: Field::read(json.member(stringify!($member))?, form)
                        .map_err(|e: DecodeError| e.inside(stringify!($member)))?, )* })
                }

                fn write(&self, out: &mut String, form: Form) {
                    let mut before = '{';
                    $(
                        out.push(before);
                        out.push_str(concat!('"', stringify!($member), "\":"));
                        self.$member.write(out, form);
                        before = ',';
                    )*
                    debug_assert_eq!(before, ',', "every operation has members");
                    out.push('}');
                }
            }
        )*

        /// One operation of a transaction.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Operation {
            $( $(#[$doc])* $name($name), )*
        }

        impl Operation {
            /// Returns the name in the condenser format, such as `transfer`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => $text, )* }
            }

            /// Returns the number in the serialization.
            #[must_use]
            pub const fn id(&self) -> u8 {
                match self { $( Self::$name(_) => $id, )* }
            }

            pub(super) fn pack(&self, writer: &mut Writer) {
                writer.varint(usize::from(self.id()));
                match self { $( Self::$name(operation) => operation.pack(writer), )* }
            }

            pub(super) fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match reader.varint()? {
                    $( $id => $name::unpack(reader).map(Self::$name), )*
                    id => Err(Fault::UnknownOperationId { id }.into()),
                }
            }

            fn read_named(name: &str, json: &Json, form: Form) -> Result<Self, DecodeError> {
                match name {
                    $( $text => $name::read(json, form).map(Self::$name), )*
                    _ => Err(Fault::UnknownOperation { name: name.to_owned() }.into()),
                }
            }

            fn write_members(&self, out: &mut String, form: Form) {
                match self { $( Self::$name(operation) => operation.write(out, form), )* }
            }
        }
    };
}

operations! {
    /// A vote on a post.
    Vote = 0 "vote" {
        /// The voter.
        voter: String,
        /// The author.
        author: String,
        /// The permlink.
        permlink: String,
        /// Hundredths of a percent, -10 000 to 10 000.
        weight: i16,
    }
    /// A post or a comment.
    Comment = 1 "comment" {
        /// The parent author; empty for a post.
        parent_author: String,
        /// The parent permlink, or the category.
        parent_permlink: String,
        /// The author.
        author: String,
        /// The permlink.
        permlink: String,
        /// The title.
        title: String,
        /// The body.
        body: String,
        /// JSON metadata of the application.
        json_metadata: String,
    }
    /// A transfer of liquid funds: the only operation that pays a session.
    Transfer = 2 "transfer" {
        /// The sender.
        from: String,
        /// The recipient.
        to: String,
        /// The amount.
        amount: Asset,
        /// At most [`MAX_MEMO_BYTES`] bytes.
        memo: String,
    }
    /// HIVE into vesting shares.
    TransferToVesting = 3 "transfer_to_vesting" {
        /// The sender.
        from: String,
        /// The recipient of the shares; empty for the sender.
        to: String,
        /// The amount of HIVE.
        amount: Asset,
    }
    /// Vesting shares back into HIVE, over 13 weeks.
    WithdrawVesting = 4 "withdraw_vesting" {
        /// The account.
        account: String,
        /// The amount of VESTS.
        vesting_shares: Asset,
    }
    /// A witness's price of HIVE.
    FeedPublish = 7 "feed_publish" {
        /// The witness.
        publisher: String,
        /// HBD for HIVE.
        exchange_rate: Price,
    }
    /// Creation of an account.
    AccountCreate = 9 "account_create" {
        /// The amount of HIVE.
        fee: Asset,
        /// The sender.
        creator: String,
        /// The new name.
        new_account_name: String,
        /// Its owner authority.
        owner: Authority,
        /// Its active authority.
        active: Authority,
        /// Its posting authority.
        posting: Authority,
        /// The key for encrypted memos.
        memo_key: PublicKey,
        /// JSON metadata of the application.
        json_metadata: String,
    }
    /// A vote for a witness.
    AccountWitnessVote = 12 "account_witness_vote" {
        /// The voter.
        account: String,
        /// The witness.
        witness: String,
        /// Whether the vote is added or removed.
        approve: bool,
    }
    /// Sets a proxy for witness votes.
    AccountWitnessProxy = 13 "account_witness_proxy" {
        /// The account.
        account: String,
        /// The proxy; empty for none.
        proxy: String,
    }
    /// Data of an application; it never transfers money of the chain.
    CustomJson = 18 "custom_json" {
        /// Required active authorities.
        required_auths: BTreeSet<String>,
        /// Required posting authorities.
        required_posting_auths: BTreeSet<String>,
        /// The id of the application, at most 32 bytes.
        id: String,
        /// The JSON data.
        json: String,
    }
    /// A transfer to savings, not liquid for the recipient.
    TransferToSavings = 32 "transfer_to_savings" {
        /// The sender.
        from: String,
        /// The owner of the savings.
        to: String,
        /// The amount.
        amount: Asset,
        /// At most [`MAX_MEMO_BYTES`] bytes.
        memo: String,
    }
    /// A withdrawal from savings, effective three days later.
    TransferFromSavings = 33 "transfer_from_savings" {
        /// The owner of the savings.
        from: String,
        /// The id of the request, unique among the sender's open requests.
        request_id: u32,
        /// The recipient.
        to: String,
        /// The amount.
        amount: Asset,
        /// At most [`MAX_MEMO_BYTES`] bytes.
        memo: String,
    }
    /// A recurrent transfer. It transfers nothing itself: each payment is a virtual operation of a later block.
    RecurrentTransfer = 49 "recurrent_transfer" {
        /// The sender.
        from: String,
        /// The recipient.
        to: String,
        /// The amount of each payment; zero cancels the recurrent transfer.
        amount: Asset,
        /// At most [`MAX_MEMO_BYTES`] bytes.
        memo: String,
        /// Hours between payments, at least 24.
        recurrence: u16,
        /// The number of payments, at least 2.
        executions: u16,
        /// The pair id, which distinguishes recurrent transfers between the same accounts.
        extensions: Vec<PairId>,
    }
}

impl Operation {
    /// Returns sender, recipient, amount and memo if it is a transfer with valid names and amount.
    #[must_use]
    pub fn payment(&self) -> Option<(AccountName, AccountName, Money, &str)> {
        let Self::Transfer(transfer) = self else { return None };
        let from = AccountName::parse(&transfer.from).ok()?;
        let to = AccountName::parse(&transfer.to).ok()?;
        Some((from, to, transfer.amount.money()?, &transfer.memo))
    }

    pub(super) fn form_of(json: &Json) -> Result<Form, DecodeError> {
        match json {
            Json::List(_) => Ok(Form::Condenser),
            Json::Map(_) => Ok(Form::Hf26),
            _ => Err(Fault::Wanted { wanted: "an operation" }.into()),
        }
    }

    pub(super) fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
        match json {
            Json::List(pair) if form == Form::Condenser => {
                let [name, members] = &pair[..] else {
                    return Err(Fault::Wanted { wanted: "a name and its members" }.into());
                };
                Self::read_named(name.text()?, members, form)
            }
            Json::Map(_) if form == Form::Hf26 => {
                let tag = json.member("type")?.text().map_err(|e| e.inside("type"))?;
                let unknown = Fault::UnknownOperation { name: tag.to_owned() };
                let name = tag.strip_suffix("_operation").ok_or(unknown)?;
                Self::read_named(name, json.member("value")?, form)
            }
            Json::List(_) | Json::Map(_) => Err(Fault::MixedForms.into()),
            _ => Err(Fault::Wanted { wanted: "an operation" }.into()),
        }
    }

    /// Writes the operation as JSON.
    pub fn write(&self, out: &mut String, form: Form) {
        match form {
            Form::Condenser => {
                out.push_str(&format!(r#"["{}","#, self.name()));
                self.write_members(out, form);
                out.push(']');
            }
            Form::Hf26 => {
                out.push_str(&format!(r#"{{"type":"{}_operation","value":"#, self.name()));
                self.write_members(out, form);
                out.push('}');
            }
        }
    }

    /// Validates the operation independently of the chain state (hived: `validate()` of each operation).
    ///
    /// # Errors
    /// [`Invalid`] with the member. For operations that do not transfer money only names and ranges are validated.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Self::Transfer(op) => {
                names(&[("from", &op.from), ("to", &op.to)])?;
                liquid(op.amount)?;
                positive("amount", op.amount)?;
                memo(&op.memo)
            }
            Self::TransferToSavings(op) => {
                names(&[("from", &op.from), ("to", &op.to)])?;
                liquid(op.amount)?;
                positive("amount", op.amount)?;
                memo(&op.memo)
            }
            Self::TransferFromSavings(op) => {
                names(&[("from", &op.from), ("to", &op.to)])?;
                liquid(op.amount)?;
                positive("amount", op.amount)?;
                memo(&op.memo)
            }
            Self::TransferToVesting(op) => {
                names(&[("from", &op.from)])?;
                if !op.to.is_empty() {
                    names(&[("to", &op.to)])?;
                }
                asset_is("amount", op.amount, Symbol::Hive)?;
                positive("amount", op.amount)
            }
            Self::RecurrentTransfer(op) => op.validate(),
            Self::Vote(op) => {
                names(&[("voter", &op.voter), ("author", &op.author)])?;
                range("weight", (-10_000..=10_000).contains(&op.weight))
            }
            Self::Comment(op) => {
                names(&[("author", &op.author)])?;
                if op.parent_author.is_empty() { Ok(()) } else { names(&[("parent_author", &op.parent_author)]) }
            }
            Self::WithdrawVesting(op) => {
                names(&[("account", &op.account)])?;
                asset_is("vesting_shares", op.vesting_shares, Symbol::Vests)
            }
            Self::FeedPublish(op) => {
                names(&[("publisher", &op.publisher)])?;
                positive("exchange_rate", op.exchange_rate.base)?;
                positive("exchange_rate", op.exchange_rate.quote)
            }
            Self::AccountCreate(op) => {
                names(&[("creator", &op.creator), ("new_account_name", &op.new_account_name)])?;
                asset_is("fee", op.fee, Symbol::Hive)
            }
            Self::AccountWitnessVote(op) => names(&[("account", &op.account), ("witness", &op.witness)]),
            Self::AccountWitnessProxy(op) => {
                names(&[("account", &op.account)])?;
                if op.proxy.is_empty() { Ok(()) } else { names(&[("proxy", &op.proxy)]) }
            }
            Self::CustomJson(op) => {
                range("required_auths", !op.required_auths.is_empty() || !op.required_posting_auths.is_empty())?;
                for name in op.required_auths.iter().chain(&op.required_posting_auths) {
                    names(&[("required_auths", name)])?;
                }
                range("id", op.id.len() <= 32)
            }
        }
    }

    /// Adds the authorities that the operation requires.
    pub(super) fn require(&self, required: &mut Required) -> Result<(), Invalid> {
        let (role, field, name) = match self {
            Self::Transfer(op) => (Role::Active, "from", &op.from),
            Self::TransferToVesting(op) => (Role::Active, "from", &op.from),
            Self::TransferToSavings(op) => (Role::Active, "from", &op.from),
            Self::TransferFromSavings(op) => (Role::Active, "from", &op.from),
            Self::RecurrentTransfer(op) => (Role::Active, "from", &op.from),
            Self::WithdrawVesting(op) => (Role::Active, "account", &op.account),
            Self::FeedPublish(op) => (Role::Active, "publisher", &op.publisher),
            Self::AccountCreate(op) => (Role::Active, "creator", &op.creator),
            Self::AccountWitnessVote(op) => (Role::Active, "account", &op.account),
            Self::AccountWitnessProxy(op) => (Role::Active, "account", &op.account),
            Self::Vote(op) => (Role::Posting, "voter", &op.voter),
            Self::Comment(op) => (Role::Posting, "author", &op.author),
            Self::CustomJson(op) => {
                for name in &op.required_auths {
                    required.insert((Role::Active, account("required_auths", name)?));
                }
                for name in &op.required_posting_auths {
                    required.insert((Role::Posting, account("required_posting_auths", name)?));
                }
                return Ok(());
            }
        };
        required.insert((role, account(field, name)?));
        Ok(())
    }
}

impl RecurrentTransfer {
    fn validate(&self) -> Result<(), Invalid> {
        names(&[("from", &self.from), ("to", &self.to)])?;
        liquid(self.amount)?;
        if self.amount.units < 0 {
            return Err(Invalid::NotPositive { field: "amount" });
        }
        if self.from == self.to {
            return Err(Invalid::ToSelf);
        }
        if self.recurrence < 24 {
            return Err(Invalid::Recurrence);
        }
        if self.executions < 2 {
            return Err(Invalid::Executions);
        }
        if u32::from(self.recurrence) * u32::from(self.executions) > 730 * 24 {
            return Err(Invalid::TooLong);
        }
        range("extensions", self.extensions.len() <= 1)?;
        memo(&self.memo)
    }
}

fn account(field: &'static str, name: &str) -> Result<AccountName, Invalid> {
    AccountName::parse(name).map_err(|why| Invalid::Name { field, name: name.to_owned(), why })
}

fn names(members: &[(&'static str, &String)]) -> Result<(), Invalid> {
    members.iter().try_for_each(|(field, name)| account(field, name).map(drop))
}

fn liquid(amount: Asset) -> Result<(), Invalid> {
    if amount.symbol == Symbol::Vests { Err(Invalid::Asset { field: "amount" }) } else { Ok(()) }
}

fn asset_is(field: &'static str, amount: Asset, symbol: Symbol) -> Result<(), Invalid> {
    if amount.symbol == symbol { Ok(()) } else { Err(Invalid::Asset { field }) }
}

fn positive(field: &'static str, amount: Asset) -> Result<(), Invalid> {
    if amount.units > 0 { Ok(()) } else { Err(Invalid::NotPositive { field }) }
}

fn memo(memo: &str) -> Result<(), Invalid> {
    if memo.len() <= MAX_MEMO_BYTES { Ok(()) } else { Err(Invalid::MemoTooLong { bytes: memo.len() }) }
}

fn range(field: &'static str, holds: bool) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid::Range { field }) }
}

/// A price: an amount of one asset for an amount of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// The base amount.
    pub base: Asset,
    /// The quote amount.
    pub quote: Asset,
}

impl Field for Price {
    fn pack(&self, writer: &mut Writer) {
        self.base.pack(writer);
        self.quote.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { base: Asset::unpack(reader)?, quote: Asset::unpack(reader)? })
    }

    fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
        let side = |key| Asset::read(json.member(key)?, form).map_err(|e| e.inside(key));
        Ok(Self { base: side("base")?, quote: side("quote")? })
    }

    fn write(&self, out: &mut String, form: Form) {
        out.push_str("{\"base\":");
        self.base.write(out, form);
        out.push_str(",\"quote\":");
        self.quote.write(out, form);
        out.push('}');
    }
}

/// The pair id of a recurrent transfer between two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairId(pub u8);

impl PairId {
    /// The variant index of the extension; variant 0 is empty.
    const TAG: u32 = 1;
    const NAME: &'static str = "recurrent_transfer_pair_id";
}

impl Field for Vec<PairId> {
    fn pack(&self, writer: &mut Writer) {
        writer.varint(self.len());
        for PairId(pair_id) in self {
            writer.varint(PairId::TAG as usize);
            writer.put(&[*pair_id]);
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        (0..reader.count()?)
            .map(|_| match reader.varint()? {
                PairId::TAG => Ok(PairId(u8::unpack(reader)?)),
                _ => Err(Fault::Wanted { wanted: "a pair id" }.into()),
            })
            .collect()
    }

    fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
        let read = |item: &Json| {
            let wanted = Fault::Wanted { wanted: "a pair id" };
            let value = match (form, item) {
                (Form::Condenser, Json::List(pair)) => match &pair[..] {
                    [Json::Int(1), value] => value,
                    _ => return Err(wanted.into()),
                },
                (Form::Hf26, Json::Map(_)) if item.member("type")?.text()? == PairId::NAME => item.member("value")?,
                _ => return Err(wanted.into()),
            };
            Ok(PairId(value.member("pair_id")?.whole("a whole number of 8 bits")?))
        };
        json.list()?.iter().map(read).collect()
    }

    fn write(&self, out: &mut String, form: Form) {
        write_list(out, self, |out, PairId(pair_id)| match form {
            Form::Condenser => out.push_str(&format!(r#"[1,{{"pair_id":{pair_id}}}]"#)),
            Form::Hf26 => {
                out.push_str("{\"type\":");
                write_text(out, PairId::NAME);
                out.push_str(&format!(r#","value":{{"pair_id":{pair_id}}}}}"#));
            }
        });
    }
}
