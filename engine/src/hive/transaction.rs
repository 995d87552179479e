//! Transactions: JSON and binary encodings, ids, digests and authorization.

use std::{collections::BTreeSet, time::Duration};

use sha2::{Digest, Sha256};

use super::{
    Authorities, ChainId, DecodeError, Denied, Fault, Form, Invalid, Operation, Pack, PrivateKey, PublicKey, Refusal,
    Signature, authority,
    field::Field,
    json::{Json, write_list, write_text},
    pack::{Reader, Writer},
};
use crate::{
    account::AccountName,
    ledger::{BlockId, TxId},
    time::Timestamp,
};

/// Maximum seconds from the head block to the expiration, since hard fork 28
/// (`HIVE_MAX_TIME_UNTIL_SIGNATURE_EXPIRATION`).
pub const MAX_SECONDS_UNTIL_EXPIRATION: u64 = 86_400;

/// The last second that hived's JSON can represent.
const LAST_SECOND_IN_JSON: u64 = 0x7fff_ffff;

/// A transaction, signed or not. Its extensions are always empty, because no extension is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The low 16 bits of the number of a recent block.
    pub ref_block_num: u16,
    /// Four bytes of that block's id; together with the number they bind the transaction to a fork.
    pub ref_block_prefix: u32,
    /// The expiration, whole seconds; only earlier blocks can include it.
    pub expiration: Timestamp,
    /// The operations, executed in order and atomically.
    pub operations: Vec<Operation>,
    /// The signatures, not part of the id and the digest.
    pub signatures: Vec<Signature>,
}

/// An authorized transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorized {
    /// The serialization that was signed.
    pub pack: Pack,
    /// The transaction id in a block.
    pub tx_id: TxId,
    /// The signing keys.
    pub keys: BTreeSet<PublicKey>,
}

impl Transaction {
    /// Parses JSON in condenser or HF26 format strictly. Unknown members are ignored, because only parsed members are
    /// verified and broadcast.
    ///
    /// # Errors
    /// [`DecodeError`] with its path. A decoded transaction may still be [invalid](Self::validate).
    pub fn parse(json: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&Json::parse(json)?)
    }

    /// Parses a transaction within a larger JSON document.
    pub(crate) fn read(json: &Json) -> Result<Self, DecodeError> {
        let at = |key: &'static str| move |error: DecodeError| error.inside(key);
        let form = Form::Hf26;
        Ok(Self {
            ref_block_num: u16::read(json.member("ref_block_num")?, form).map_err(at("ref_block_num"))?,
            ref_block_prefix: u32::read(json.member("ref_block_prefix")?, form).map_err(at("ref_block_prefix"))?,
            expiration: read_expiration(json.member("expiration")?).map_err(at("expiration"))?,
            operations: read_operations(json.member("operations")?)?,
            signatures: match json.get("signatures")? {
                None => Vec::new(),
                Some(list) => read_signatures(list).map_err(at("signatures"))?,
            },
        })
        .and_then(|transaction| match json.get("extensions")? {
            Some(Json::List(list)) if !list.is_empty() => Err(DecodeError::from(Fault::NotEmpty).inside("extensions")),
            None | Some(Json::List(_)) => Ok(transaction),
            Some(_) => Err(DecodeError::from(Fault::Wanted { wanted: "an array" }).inside("extensions")),
        })
    }

    /// Returns the transaction as JSON.
    #[must_use]
    pub fn to_json(&self, form: Form) -> String {
        let (num, prefix, expiration) = (self.ref_block_num, self.ref_block_prefix, self.expiration.to_ledger());
        let mut out =
            format!(r#"{{"ref_block_num":{num},"ref_block_prefix":{prefix},"expiration":"{expiration}","operations":"#);
        write_list(&mut out, &self.operations, |out, operation| operation.write(out, form));
        out.push_str(",\"extensions\":[],\"signatures\":");
        write_list(&mut out, &self.signatures, |out, signature| write_text(out, &signature.to_string()));
        out.push('}');
        out
    }

    /// Returns `["transfer", {"amount": "1.000 HBD"}]`, which every node and wallet supports.
    #[must_use]
    pub fn to_condenser_json(&self) -> String {
        self.to_json(Form::Condenser)
    }

    /// Returns `{"type": "transfer_operation", "value": …}`.
    #[must_use]
    pub fn to_hf26_json(&self) -> String {
        self.to_json(Form::Hf26)
    }

    /// Returns whether hived parses the same strings from the JSON of this transaction. It does not decode `\uXXXX`,
    /// `\b` and `\f`, so that memos with control characters other than tab and line breaks cannot be broadcast.
    #[must_use]
    pub fn survives_json(&self) -> bool {
        let json = self.to_condenser_json();
        let mut escapes = json.as_bytes().iter();
        while let Some(byte) = escapes.next() {
            if *byte == b'\\' && matches!(escapes.next(), Some(b'u' | b'b' | b'f')) {
                return false;
            }
        }
        true
    }

    /// Returns the serialization without signatures, which is signed and hashed for the id.
    #[must_use]
    pub fn bytes(&self, pack: Pack) -> Vec<u8> {
        let mut writer = Writer::new(pack);
        self.ref_block_num.pack(&mut writer);
        self.ref_block_prefix.pack(&mut writer);
        // 32 bits suffice until 2106, and hived's JSON ends before 2039.
        u32::try_from(self.expiration.seconds()).unwrap_or(u32::MAX).pack(&mut writer);
        writer.varint(self.operations.len());
        for operation in &self.operations {
            operation.pack(&mut writer);
        }
        writer.varint(0);
        writer.bytes
    }

    /// Returns the serialization with signatures; its hash is a leaf of the block's merkle tree.
    #[must_use]
    pub fn signed_bytes(&self, pack: Pack) -> Vec<u8> {
        let mut writer = Writer::new(pack);
        writer.put(&self.bytes(pack));
        writer.varint(self.signatures.len());
        for signature in &self.signatures {
            writer.put(&signature.0);
        }
        writer.bytes
    }

    /// Deserializes an unsigned transaction; each asset symbol may be in either encoding, as hived allows.
    ///
    /// # Errors
    /// [`DecodeError`] with its path.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let transaction = Self::unpack(&mut reader)?;
        reader.end()?;
        Ok(transaction)
    }

    /// Deserializes a signed transaction.
    ///
    /// # Errors
    /// [`DecodeError`] with its path.
    pub fn from_signed_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut transaction = Self::unpack(&mut reader)?;
        for _ in 0..reader.count()? {
            transaction.signatures.push(Signature(reader.array()?));
        }
        reader.end()?;
        Ok(transaction)
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ref_block_num = u16::unpack(reader)?;
        let ref_block_prefix = u32::unpack(reader)?;
        let expiration = Timestamp::from_seconds(u32::unpack(reader)?.into());
        let mut operations = Vec::new();
        for index in 0..reader.count()? {
            let operation = Operation::unpack(reader).map_err(|e| e.inside(&format!("operations[{index}]")))?;
            operations.push(operation);
        }
        if reader.varint()? != 0 {
            return Err(DecodeError::from(Fault::NotEmpty).inside("extensions"));
        }
        Ok(Self { ref_block_num, ref_block_prefix, expiration, operations, signatures: Vec::new() })
    }

    /// Returns the digest to sign: the hash of the chain id and the serialization.
    #[must_use]
    pub fn digest(&self, chain: ChainId, pack: Pack) -> [u8; 32] {
        Sha256::new().chain_update(chain.0).chain_update(self.bytes(pack)).finalize().into()
    }

    /// Returns the id: the first 20 bytes of the hash of the serialization, independent of chain and signatures.
    #[must_use]
    pub fn id(&self, pack: Pack) -> TxId {
        let hash = Sha256::digest(self.bytes(pack));
        TxId(hash[..20].try_into().expect("a hash has 32 bytes"))
    }

    /// Signs one serialization and adds the signature.
    pub fn sign(&mut self, chain: ChainId, pack: Pack, key: &PrivateKey) {
        self.signatures.push(key.sign(&self.digest(chain, pack)));
    }

    /// Validates the transaction independently of the chain state.
    ///
    /// # Errors
    /// [`Invalid`] with the violated rule.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.operations.is_empty() {
            return Err(Invalid::NoOperations);
        }
        self.operations.iter().try_for_each(Operation::validate)
    }

    /// Returns the keys that signed one serialization.
    ///
    /// # Errors
    /// [`Refusal::Signature`] or [`Refusal::DuplicateSignature`].
    pub fn recover(&self, chain: ChainId, pack: Pack) -> Result<BTreeSet<PublicKey>, Refusal> {
        let digest = self.digest(chain, pack);
        let mut keys = BTreeSet::new();
        for (index, signature) in self.signatures.iter().enumerate() {
            let key = signature.recover(&digest).map_err(|why| Refusal::Signature { index, why })?;
            if !keys.insert(key) {
                return Err(Refusal::DuplicateSignature { key });
            }
        }
        Ok(keys)
    }

    /// Returns the required authorities.
    ///
    /// # Errors
    /// [`Invalid::Name`], as [`validate`](Self::validate).
    pub fn required(&self) -> Result<BTreeSet<(authority::Role, AccountName)>, Invalid> {
        let mut required = authority::Required::new();
        self.operations.iter().try_for_each(|operation| operation.require(&mut required))?;
        Ok(required)
    }

    /// Authorizes the transaction and returns the signed serialization; HF26 is tried first, as hived does.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], [`Refusal::Signature`] or [`Refusal::Authority`]: the last contains every account that was
    /// not in `accounts`, for both serializations.
    pub fn authorize(&self, chain: ChainId, accounts: &impl Authorities) -> Result<Authorized, Refusal> {
        self.authorize_by(accounts, |pack| self.recover(chain, pack))
    }

    /// Like [`authorize`](Self::authorize), with a function that returns the recovered keys, because recovery is
    /// expensive.
    ///
    /// # Errors
    /// As [`authorize`](Self::authorize), and the errors of `recover`.
    pub fn authorize_by(
        &self,
        accounts: &impl Authorities,
        mut recover: impl FnMut(Pack) -> Result<BTreeSet<PublicKey>, Refusal>,
    ) -> Result<Authorized, Refusal> {
        let required = self.required()?;
        let mut attempt = |pack| {
            let keys = recover(pack)?;
            authority::check(&required, accounts, &keys)?;
            Ok(Authorized { pack, tx_id: self.id(pack), keys })
        };
        let first = match attempt(Pack::Hf26) {
            Ok(authorized) => return Ok(authorized),
            Err(refusal) => refusal,
        };
        attempt(Pack::Legacy).map_err(|second| match (first, second) {
            (Refusal::Authority(first), Refusal::Authority(second)) => {
                let unknown = first.unknown.union(&second.unknown).cloned().collect();
                Refusal::Authority(Denied { unknown, ..second })
            }
            (_, second) => second,
        })
    }

    /// Checks the expiration: it must be after the head block's time, by at most a day.
    ///
    /// # Errors
    /// [`Refusal::Expired`] or [`Refusal::TooFarAhead`].
    pub fn check_expiration(&self, head: Timestamp) -> Result<(), Refusal> {
        let expiration = self.expiration;
        if expiration <= head {
            return Err(Refusal::Expired { expiration, head });
        }
        if expiration > head + Duration::from_secs(MAX_SECONDS_UNTIL_EXPIRATION) {
            return Err(Refusal::TooFarAhead { expiration, head });
        }
        Ok(())
    }

    /// Checks that the transaction refers to this block.
    ///
    /// # Errors
    /// [`Refusal::Tapos`].
    pub fn check_tapos(&self, block: BlockId) -> Result<(), Refusal> {
        if (self.ref_block_num, self.ref_block_prefix) == tapos_of(block) { Ok(()) } else { Err(Refusal::Tapos) }
    }
}

/// Returns the reference to a block (TaPoS): the low 16 bits of its number and bytes 4 to 8 of its id.
#[must_use]
pub const fn tapos_of(block: BlockId) -> (u16, u32) {
    let id = block.0;
    ((block.number() & 0xffff) as u16, u32::from_le_bytes([id[4], id[5], id[6], id[7]]))
}

fn read_expiration(json: &Json) -> Result<Timestamp, DecodeError> {
    Timestamp::parse_ledger(json.text()?)
        .filter(|time| time.seconds() <= LAST_SECOND_IN_JSON)
        .ok_or_else(|| Fault::Wanted { wanted: "a time like 2026-11-20T14:05:00, before 2038-01-19T03:14:08" }.into())
}

fn read_operations(json: &Json) -> Result<Vec<Operation>, DecodeError> {
    let list = json.list().map_err(|e| e.inside("operations"))?;
    let mut form = None;
    let read = |(index, item): (usize, &Json)| {
        let operation = match form {
            Some(form) => Operation::read(item, form),
            None => Operation::form_of(item).and_then(|first| Operation::read(item, *form.insert(first))),
        };
        operation.map_err(|e| e.inside(&format!("operations[{index}]")))
    };
    list.iter().enumerate().map(read).collect()
}

fn read_signatures(json: &Json) -> Result<Vec<Signature>, DecodeError> {
    let wanted = Fault::Wanted { wanted: "130 hex characters" };
    let read = |(index, item): (usize, &Json)| {
        let signature = item.text().and_then(|text| Signature::parse(text).ok_or_else(|| wanted.clone().into()));
        signature.map_err(|e| e.inside(&format!("[{index}]")))
    };
    json.list()?.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hive::{Asset, CustomJson, RecurrentTransfer, Symbol, Transfer, Vote};

    fn operation() -> impl Strategy<Value = Operation> {
        let asset = (any::<i64>(), 0..3u8).prop_map(|(units, symbol)| {
            let symbol = [Symbol::Hive, Symbol::Hbd, Symbol::Vests][usize::from(symbol)];
            Asset { units: units.saturating_abs(), symbol }
        });
        let pair = proptest::option::of(any::<u8>()).prop_map(|id| id.map(crate::hive::PairId).into_iter().collect());
        let names = || proptest::collection::btree_set("[a-z.]{0,16}", 0..3);
        prop_oneof![
            (".{0,9}", ".{0,9}", asset.clone(), any::<String>())
                .prop_map(|(from, to, amount, memo)| Operation::Transfer(Transfer { from, to, amount, memo })),
            (asset, any::<(u16, u16)>(), pair).prop_map(|(amount, (recurrence, executions), extensions)| {
                let (from, to, memo) = ("alice".into(), "bob".into(), String::new());
                let op = RecurrentTransfer { from, to, amount, memo, recurrence, executions, extensions };
                Operation::RecurrentTransfer(op)
            }),
            any::<i16>().prop_map(|weight| {
                Operation::Vote(Vote { voter: "alice".into(), author: "bob".into(), permlink: "x".into(), weight })
            }),
            (names(), names(), any::<String>()).prop_map(|(required_auths, required_posting_auths, json)| {
                Operation::CustomJson(CustomJson { required_auths, required_posting_auths, id: "app".into(), json })
            }),
        ]
    }

    fn transaction() -> impl Strategy<Value = Transaction> {
        let signatures = proptest::collection::vec(any::<[u8; 32]>(), 0..3);
        let operations = proptest::collection::vec(operation(), 0..4);
        (any::<u16>(), any::<u32>(), 0..=0x7fff_ffffu64, operations, signatures).prop_map(
            |(ref_block_num, ref_block_prefix, seconds, operations, seeds)| Transaction {
                ref_block_num,
                ref_block_prefix,
                expiration: Timestamp::from_seconds(seconds),
                operations,
                signatures: seeds.iter().map(|seed| Signature(std::array::from_fn(|at| seed[at % 32]))).collect(),
            },
        )
    }

    proptest! {
        #[test]
        fn a_transaction_round_trips_in_every_encoding(transaction in transaction()) {
            for form in [Form::Condenser, Form::Hf26] {
                let json = transaction.to_json(form);
                prop_assert_eq!(Transaction::parse(json.as_bytes())?, transaction.clone(), "{}", json);
            }
            for pack in Pack::ALL {
                let signed = transaction.signed_bytes(pack);
                prop_assert_eq!(Transaction::from_signed_bytes(&signed)?, transaction.clone());
            }
        }

        #[test]
        fn decoding_any_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Transaction::from_signed_bytes(&bytes);
            let _ = Transaction::from_bytes(&bytes);
            let _ = Transaction::parse(&bytes);
        }

        #[test]
        fn a_transaction_with_one_byte_changed_never_panics(transaction in transaction(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = transaction.signed_bytes(Pack::Hf26);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Transaction::from_signed_bytes(&bytes);
            let mut json = transaction.to_condenser_json().into_bytes();
            let at = at % json.len();
            json[at] = byte;
            if let Ok(read) = Transaction::parse(&json) {
                let _ = read.validate();
                let _ = read.recover(ChainId::MAINNET, Pack::Legacy);
            }
        }
    }

    #[test]
    fn expirations_after_the_json_limit_of_hived_are_refused() {
        let json =
            |time: &str| format!(r#"{{"ref_block_num":1,"ref_block_prefix":2,"expiration":"{time}","operations":[]}}"#);
        assert!(Transaction::parse(json("2038-01-19T03:14:07").as_bytes()).is_ok());
        let error = Transaction::parse(json("2038-01-19T03:14:08").as_bytes()).unwrap_err();
        assert_eq!(error.field, "expiration");
    }

    #[test]
    fn a_decode_error_has_the_path() {
        let json = br#"{"ref_block_num":1,"ref_block_prefix":2,"expiration":"2026-11-20T14:05:00",
            "operations":[["transfer",{"from":"alice","to":"bob","amount":"1.00 HBD","memo":""}]]}"#;
        assert_eq!(
            Transaction::parse(json).unwrap_err().to_string(),
            "operations[0].amount: must be an amount like `1.000 HBD`"
        );
        let mixed = br#"{"ref_block_num":1,"ref_block_prefix":2,"expiration":"2026-11-20T14:05:00",
            "operations":[["vote",{"voter":"alice","author":"bob","permlink":"x","weight":1}],{"type":"vote_operation"}]}"#;
        let error = Transaction::parse(mixed).unwrap_err();
        assert_eq!((error.field.as_str(), error.fault), ("operations[1]", Fault::MixedForms));
    }

    #[test]
    fn a_memo_that_hived_would_parse_differently_is_detected() {
        let with = |memo: &str| Transaction {
            ref_block_num: 1,
            ref_block_prefix: 2,
            expiration: Timestamp::from_seconds(1),
            operations: vec![Operation::Transfer(Transfer {
                from: "alice".into(),
                to: "bob".into(),
                amount: Asset { units: 1, symbol: Symbol::Hbd },
                memo: memo.into(),
            })],
            signatures: Vec::new(),
        };
        for memo in ["", "caf\u{e9} \u{1f41d}", "a\tb\r\n", "quote \" and \\ and \\u0041", "\u{7f}"] {
            assert!(with(memo).survives_json(), "{memo:?}");
        }
        for memo in ["\u{1}", "\u{8}", "\u{c}", "\\\u{0}"] {
            assert!(!with(memo).survives_json(), "{memo:?}");
        }
    }
}
