//! Tests of the codec with every case of `vectors/`; each test asserts the number of cases.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    account::AccountName,
    hive::{
        AccountAuthorities, Authority, ChainId, DecodeError, Layer, Operation, Pack, PrivateKey, PublicKey, Refusal,
        Signature, SignatureError, Transaction, memo, uri,
    },
    money::Money,
    time::Timestamp,
};
use serde_json::Value;

/// Runs `judge` on each case of a file and reports failed cases and their number.
fn each_case(file: &str, cases: usize, judge: impl Fn(&Value) -> Result<(), String>) {
    let path = format!("{}/tests/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
    let json: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    let vectors = json["vectors"].as_array().expect("a list of cases");
    let wrong: Vec<String> =
        vectors.iter().filter_map(|case| judge(case).err().map(|why| format!("{}: {why}", case["id"]))).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
    let expected = json["meta"]["count"].as_u64().map_or(vectors.len(), |count| usize::try_from(count).unwrap());
    assert_eq!((vectors.len(), expected), (cases, cases), "cases of {file}");
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}: ours {ours:?}, theirs {theirs:?}")) }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(text).collect()
}

fn parse(json: &Value) -> Result<Transaction, DecodeError> {
    Transaction::parse(json.to_string().as_bytes())
}

#[test]
fn transactions_have_the_bytes_digests_ids_and_signers_of_hived() {
    each_case("tx_vectors", 27, |case| {
        let chain = ChainId::parse(text(&case["chain_id"])).unwrap();
        let condenser = parse(&case["tx_condenser"]).map_err(|e| e.to_string())?;
        let hf26 = parse(&case["tx_hf26"]).map_err(|e| e.to_string())?;
        same("the two forms", &condenser, &hf26)?;
        same("condenser JSON", &serde_json::from_str(&condenser.to_condenser_json()).unwrap(), &case["tx_condenser"])?;
        same("hf26 JSON", &serde_json::from_str(&condenser.to_hf26_json()).unwrap(), &case["tx_hf26"])?;
        condenser.validate().map_err(|e| e.to_string())?;
        let signers: BTreeSet<PublicKey> = case["signers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|signer| PublicKey::parse(text(&signer["public_key"])).unwrap())
            .collect();
        for pack in Pack::ALL {
            let name = pack.as_str();
            let bytes = condenser.bytes(pack);
            same("bytes", hex(&bytes), text(&case["serialized_hex"][name]).to_owned())?;
            same("digest", hex(&condenser.digest(chain, pack)), text(&case["digest"][name]).to_owned())?;
            same("id", condenser.id(pack).to_string(), text(&case["tx_id"][name]).to_owned())?;
            same("from bytes", Transaction::from_bytes(&bytes), Ok(condenser.clone()))?;
            let mut lists = vec![name];
            if pack == Pack::Legacy {
                lists.push("legacy_alt_from_hive_tx");
            }
            for list in lists {
                let mut signed = condenser.clone();
                signed.signatures =
                    texts(&case["signatures"][list]).into_iter().map(|hex| Signature::parse(hex).unwrap()).collect();
                let keys = signed.recover(chain, pack).map_err(|e| e.to_string())?;
                same(list, &keys, &signers)?;
                if list == name {
                    let theirs = text(&case["signed_serialized_hex"][name]).to_owned();
                    same("signed bytes", hex(&signed.signed_bytes(pack)), theirs)?;
                    same("from signed bytes", Transaction::from_signed_bytes(&signed.signed_bytes(pack)), Ok(signed))?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn invalid_transactions_are_refused_by_the_expected_layer() {
    each_case("invalid_vectors", 88, |case| {
        let judged = match text(&case["form"]) {
            "condenser" | "hf26" => judge_json(case),
            "serialized_unsigned_hex" => judge_bytes(Transaction::from_bytes(&unhex(&case["serialized_hex"]))),
            // These vectors combine deserialization and validation as `decode`.
            "serialized_signed_hex_hf26" => {
                judge_bytes(Transaction::from_signed_bytes(&unhex(&case["serialized_hex"])))
                    .map_err(|layer| if layer == Layer::Validate { Layer::Decode } else { layer })
            }
            form => panic!("an unknown form: {form}"),
        };
        let expected = text(&case["expected"]["layer"]);
        let ours = judged.map_or_else(Layer::as_str, |()| "ok");
        same("verdict", ours == "ok", text(&case["expected"]["verdict"]) == "accept")?;
        // A signature of another message recovers to an unknown key, which is an authority error. Only signatures
        // without a recoverable key, or duplicate keys, are signature errors.
        let recovers = case["hived"]["recovered_legacy"].is_array();
        let own = ["sig_high_s_quirk", "sig_duplicate_exact"].contains(&text(&case["id"]));
        if expected == "signature" && ours == "authority" && recovers && !own {
            return Ok(());
        }
        same("layer", ours, expected)
    });
}

fn judge_bytes(read: Result<Transaction, DecodeError>) -> Result<(), Layer> {
    read.map_err(|e| e.layer())?.validate().map_err(|_| Layer::Validate)
}

/// The validation of the gateway in the order of the layers; the kind of operation is checked before the signatures.
fn judge_json(case: &Value) -> Result<(), Layer> {
    let transaction =
        case.get("raw_json").map_or_else(|| parse(&case["tx"]), |raw| Transaction::parse(text(raw).as_bytes()));
    let transaction = transaction.map_err(|e| e.layer())?;
    transaction.validate().map_err(|_| Layer::Validate)?;
    let context = &case["context"];
    let [operation @ Operation::Transfer(_)] = &transaction.operations[..] else { return Err(Layer::Policy) };
    let chain = ChainId::parse(text(&context["chain_id"])).unwrap();
    compare_recovery(case, &transaction, chain);
    let accounts = accounts(&context["authorities"]);
    transaction.authorize(chain, &accounts).map_err(|refusal| refusal.layer())?;
    let head = Timestamp::parse_ledger(text(&context["head_block_time"])).unwrap();
    transaction.check_expiration(head).map_err(|refusal| refusal.layer())?;
    if let Some(block) = context.get("reference_block") {
        let id = engine::ledger::BlockId::parse(text(&block["block_id"])).unwrap();
        transaction.check_tapos(id).map_err(|refusal| refusal.layer())?;
    }
    let expected = &context["expected_payment"];
    if expected.is_null() {
        return Ok(());
    }
    let (from, to, money, memo) = operation.payment().ok_or(Layer::Policy)?;
    let pays = from != to
        && to.as_str() == text(&expected["to"])
        && Ok(money) == Money::parse_ledger(text(&expected["amount"]))
        && memo == text(&expected["memo"]);
    if pays { Ok(()) } else { Err(Layer::Policy) }
}

/// If a case includes hived's recovered keys, ours must be equal.
fn compare_recovery(case: &Value, transaction: &Transaction, chain: ChainId) {
    for (pack, member) in [(Pack::Legacy, "recovered_legacy"), (Pack::Hf26, "recovered_hf26")] {
        let theirs = &case["hived"][member];
        let ours = transaction.recover(chain, pack);
        let stricter = matches!(
            ours,
            Err(Refusal::Signature { why: SignatureError::HighS, .. } | Refusal::DuplicateSignature { .. })
        );
        if theirs.is_array() && !stricter {
            let theirs = texts(theirs).into_iter().map(|key| PublicKey::parse(key).unwrap()).collect();
            assert_eq!(ours, Ok(theirs), "{} {pack}", case["id"]);
        } else if theirs.is_string() {
            assert!(ours.is_err(), "{} {pack}: hived returns {theirs}", case["id"]);
        }
    }
}

fn accounts(json: &Value) -> BTreeMap<AccountName, AccountAuthorities> {
    let authority = |json: Option<&Value>| {
        json.map_or_else(Authority::default, |json| Authority::parse(json.to_string().as_bytes()).unwrap())
    };
    let each = |(name, roles): (&String, &Value)| {
        let all = AccountAuthorities {
            owner: authority(roles.get("owner")),
            active: authority(roles.get("active")),
            posting: authority(roles.get("posting")),
        };
        (AccountName::parse(name).unwrap(), all)
    };
    json.as_object().into_iter().flatten().map(each).collect()
}

#[test]
fn authority_is_resolved_as_hived_resolves_it() {
    each_case("authority_vectors", 15, |case| {
        let transaction = parse(&case["tx_condenser"]).map_err(|e| e.to_string())?;
        let accounts = accounts(&case["accounts"]);
        let keys: BTreeSet<PublicKey> =
            texts(&case["signer_public_keys"]).into_iter().map(|key| PublicKey::parse(key).unwrap()).collect();
        same("keys", transaction.recover(ChainId::MAINNET, Pack::Legacy), Ok(keys))?;
        let authorized = transaction.authorize(ChainId::MAINNET, &accounts);
        same("authorized", authorized.is_ok(), case["expected"]["authorized"].as_bool().unwrap())?;
        // The same check with active authorities only, as in the gateway.
        let active: BTreeMap<AccountName, Authority> =
            accounts.into_iter().map(|(name, roles)| (name, roles.active)).collect();
        same("by active alone", transaction.authorize(ChainId::MAINNET, &active), authorized)
    });
}

#[test]
fn keys_parse_and_format_as_in_wallets() {
    each_case("keys", 21, |case| match text(&case["category"]) {
        category @ ("valid" | "from_login") => {
            let key = PrivateKey::from_wif(text(&case["wif"])).map_err(|e| e.to_string())?;
            same("wif", key.to_wif().as_str(), text(&case["wif"]))?;
            let public = key.public();
            same("public", public.to_string().as_str(), text(&case["public_key"]))?;
            same("parsed", PublicKey::parse(text(&case["public_key"])), Ok(public))?;
            if category == "valid" {
                same("public hex", hex(&public.0), text(&case["public_key_hex"]).to_owned())?;
                let raw: [u8; 32] = unhex(&case["raw_private_hex"]).try_into().unwrap();
                return same("raw", PrivateKey::from_bytes(&raw).unwrap().public(), public);
            }
            let login = PrivateKey::from_login(text(&case["account"]), text(&case["role"]), text(&case["password"]));
            same("login", login.unwrap().public(), public)
        }
        "public_key_parse" => same("read", PublicKey::parse(text(&case["public_key"])).is_ok(), false),
        "wif_parse" => same("read", PrivateKey::from_wif(text(&case["wif"])).is_ok(), false),
        category => panic!("an unknown category: {category}"),
    });
}

#[test]
fn account_names_follow_the_rule_of_hived() {
    each_case("account_names", 44, |case| {
        let name = String::from_utf8(unhex(&case["utf8_hex"])).unwrap();
        same("name", name.as_str(), text(&case["name"]))?;
        same("valid", AccountName::parse(&name).is_ok(), case["valid"].as_bool().unwrap())
    });
}

#[test]
fn wallet_uris_match_the_hive_uri_library() {
    each_case("hive_uri_vectors", 4, |case| {
        let operations: Vec<Operation> = match (case.get("op"), case.get("ops")) {
            (Some(op), None) => operations(&Value::from(vec![op.clone()])),
            (None, Some(ops)) => operations(ops),
            _ => panic!("one of op and ops"),
        };
        let params = &case["params"];
        let member = |name: &str| params.get(name).map(text);
        let params = uri::Params {
            no_broadcast: params["no_broadcast"].as_bool().unwrap_or(false),
            signer: member("signer"),
            callback: member("callback"),
            authority: member("authority"),
        };
        let ours = match &operations[..] {
            [one] => uri::sign_op(one, &params),
            several => uri::sign_ops(several, &params),
        };
        same("uri", ours.as_str(), text(&case["uri"]))?;
        if let Some(hivesigner) = case.get("hivesigner") {
            same("hivesigner", uri::hivesigner(&ours).as_str(), text(hivesigner))?;
        }
        let encoded = ours.rsplit('/').next().unwrap().split('?').next().unwrap();
        let decoded: Value = serde_json::from_str(&uri::decode(encoded).ok_or("does not decode")?).unwrap();
        same("decoded", &decoded, case.get("op").or(case.get("ops")).unwrap())
    });
}

fn operations(list: &Value) -> Vec<Operation> {
    let json = serde_json::json!({
        "ref_block_num": 0, "ref_block_prefix": 0, "expiration": "1970-01-01T00:00:00", "operations": list
    });
    parse(&json).unwrap().operations
}

#[test]
fn encrypted_memos_are_those_of_the_wallets() {
    each_case("memo_encryption_vectors", 4, |case| {
        let from = PrivateKey::from_wif(text(&case["from_wif"])).unwrap();
        let to = PrivateKey::from_wif(text(&case["to_wif"])).unwrap();
        same("from", from.public().to_string().as_str(), text(&case["from_public"]))?;
        same("to", to.public().to_string().as_str(), text(&case["to_public"]))?;
        let plain = text(&case["plaintext_with_hash"]).strip_prefix('#').unwrap();
        let encrypted = text(&case["encrypted"]);
        let nonce = text(&case["nonce"]).parse().unwrap();
        same("encrypted", memo::encrypt(plain, &from, &to.public(), nonce).as_deref(), Ok(encrypted))?;
        for key in [&from, &to] {
            same("decrypted", memo::decrypt(encrypted, key).as_deref(), Ok(plain))?;
        }
        Ok(())
    });
}

#[test]
fn every_vector_file_is_tested() {
    let folder = format!("{}/tests/vectors", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    files.sort();
    let judged = [
        "account_names.json",
        "authority_vectors.json",
        "hive_uri_vectors.json",
        "invalid_vectors.json",
        "keys.json",
        "memo_encryption_vectors.json",
        "tx_vectors.json",
    ];
    assert_eq!(files, judged);
}

fn hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

fn unhex(value: &Value) -> Vec<u8> {
    hex::decode(text(value)).unwrap()
}
