//! The beginning of a chain: its accounts, their keys and their money.

use engine::{
    account::AccountName,
    hive::{AccountAuthorities, Authority, ChainId, PrivateKey, PublicKey, Role},
    money::HivePrice,
    time::Timestamp,
};
use sha2::{Digest, Sha256};

/// What a chain begins with. Two chains of one genesis are the same chain.
#[derive(Debug, Clone)]
pub struct Genesis {
    /// The chain's id; the main chain's by default, so that unmodified wallets can sign for it.
    pub chain_id: ChainId,
    /// When it begins; the first block comes after.
    pub time: Timestamp,
    /// The seed of all keys of the chain.
    pub seed: [u8; 32],
    /// The accounts, in addition to hived's own (`null`, `temp`, `miners`, `hive.fund`, `steem.dao`).
    pub accounts: Vec<GenesisAccount>,
    /// The witnesses' price: HBD for HIVE.
    pub price: HivePrice,
    /// Whether blocks carry their witness's signature; a simulation may save the time.
    pub sign_blocks: bool,
    /// Whether the chain collects [`Record`](super::Record)s for a journal.
    pub keep_records: bool,
}

/// An account with one key for each role, derived from the seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Its name.
    pub name: AccountName,
    /// Liquid HIVE, in 1/1000.
    pub hive_units: u64,
    /// Liquid HBD, in 1/1000.
    pub hbd_units: u64,
}

impl Genesis {
    /// The accounts of [`Genesis::demo`]: three payers with 10 000 of each currency, a shop and two helpers with 100.
    pub const DEMO: [(&'static str, u64); 6] = [
        ("alice", 10_000_000),
        ("bob", 10_000_000),
        ("carol", 10_000_000),
        ("shop.demo", 100_000),
        ("hivetill.fees", 100_000),
        ("initminer", 100_000),
    ];

    /// hived's own accounts: they have no keys, and `temp` needs none.
    pub(super) const SPECIAL: [&'static str; 5] = ["null", "temp", "miners", "hive.fund", "steem.dao"];

    /// Returns the chain that `hivetill dev` begins with.
    #[must_use]
    pub fn demo(seed: [u8; 32], time: Timestamp) -> Self {
        let account = |(name, units): (&str, u64)| GenesisAccount {
            name: AccountName::parse(name).expect("the demo's names are names"),
            hive_units: units,
            hbd_units: units,
        };
        Self {
            chain_id: ChainId::MAINNET,
            time,
            seed,
            accounts: Self::DEMO.into_iter().map(account).collect(),
            price: HivePrice::new(258, 1_000).expect("both sides are positive"),
            sign_blocks: true,
            keep_records: false,
        }
    }

    /// Returns the private key of an account's role.
    #[must_use]
    pub fn key(&self, account: &str, role: Role) -> PrivateKey {
        derive(&self.seed, account, role_name(role))
    }

    /// Returns the private key that reads an account's encrypted memos.
    #[must_use]
    pub fn memo_key(&self, account: &str) -> PrivateKey {
        derive(&self.seed, account, "memo")
    }

    pub(super) fn witness_key(&self) -> PrivateKey {
        derive(&self.seed, "witness", "signing")
    }

    /// Returns the authorities of an account whose roles have one derived key each, and its memo key.
    #[must_use]
    pub fn authorities(&self, account: &str) -> (AccountAuthorities, PublicKey) {
        let of = |role| Authority::of_key(self.key(account, role).public());
        let authorities =
            AccountAuthorities { owner: of(Role::Owner), active: of(Role::Active), posting: of(Role::Posting) };
        (authorities, self.memo_key(account).public())
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Owner => "owner",
        Role::Active => "active",
        Role::Posting => "posting",
    }
}

/// Derives a key from the seed and a label, so that a restart has the same keys.
fn derive(seed: &[u8; 32], account: &str, role: &str) -> PrivateKey {
    let mut round = 0u32;
    loop {
        let hash = Sha256::new()
            .chain_update(b"hivetill dev ledger key")
            .chain_update(seed)
            .chain_update(account)
            .chain_update([0])
            .chain_update(role)
            .chain_update(round.to_le_bytes())
            .finalize();
        if let Ok(key) = PrivateKey::from_bytes(&hash.into()) {
            return key;
        }
        round += 1;
    }
}
