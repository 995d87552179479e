//! kill -9 at every step of a payment with a wallet, and at every step of its repeat. After each kill the wallet counts at least
//! the amount that left the account, and in the end the request is paid once.
//!
//! `HIVETILL_WALLET_KILLS=200 cargo test --workspace --test tests -- wallet::kills` is the campaign of `.ci/long`.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
    time::Duration,
};

use super::agent::{Agent, run};
use crate::{
    harness::{Dev, Shop, Stopwatch, background, pause, switch},
    reliability::print_progress,
};

crate::tests!(a_wallet_killed_at_any_step_counts_its_spending_and_pays_once);

/// The failpoints of `api/src/commands/wallet`, in the order of a payment.
const PLACES: [&str; 7] = ["reserving", "reserved", "signing", "signed", "submitting", "answered", "recorded"];
/// Kills at some time instead of a failpoint.
const TIMED: &str = "timed";
const PRICE: u64 = 1_500;
/// SIGKILL.
const KILLED: Option<i32> = Some(9);

/// One round in three kills at some time, the others at a failpoint.
const TIMED_EVERY: u64 = 3;
/// Divisor of the times of kills: they are multiples of a part of an undisturbed payment.
const PARTS: u32 = 97;

/// A campaign: one agent that pays many orders, and is killed.
struct Campaign {
    shop: Shop,
    agent: Agent,
    /// The number of processes that ended by SIGKILL, by place.
    kills: BTreeMap<&'static str, u64>,
    paid: u64,
    /// The duration of an undisturbed payment.
    undisturbed: Duration,
}

impl Campaign {
    fn new(dev: &Dev) -> Self {
        let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\nmonth = \"900000.000 HBD\"\n"));
        let mut campaign = Self { shop, agent, kills: BTreeMap::new(), paid: 0, undisturbed: Duration::ZERO };
        let (url, id) = campaign.order();
        let watch = Stopwatch::start();
        campaign.pay_twice(&url, &id, 0);
        campaign.undisturbed = watch.elapsed();
        campaign
    }

    fn killed(&self) -> u64 {
        self.kills.values().sum()
    }

    /// Returns the URL and the id of a new payment.
    fn order(&self) -> (String, String) {
        let payment = self.shop.open_payment();
        (format!("{}/for/{}", self.shop.api.base, payment.slug), payment.id)
    }

    fn command(&self, url: &str, place: Option<&str>) -> Command {
        let mut command = self.agent.pay_command(url, &["--json"]);
        if let Some(place) = place {
            command.env("HIVETILL_FAILPOINT", place);
        }
        command
    }

    /// Pays and kills the process after a time, unless it ended before.
    fn kill_after(&mut self, url: &str, delay: Duration) {
        let mut child = self.command(url, None).stdout(Stdio::null()).spawn().expect("the binary starts");
        pause(delay);
        let _ = child.kill();
        let status = child.wait().expect("it ends");
        if status.signal() == KILLED {
            *self.kills.entry(TIMED).or_default() += 1;
        } else {
            assert!(status.success(), "a payment failed without a kill: {status}");
        }
    }

    /// Pays with a failpoint; returns whether the process reached it.
    fn kill_at(&mut self, url: &str, place: &'static str) -> bool {
        let ended = run(self.command(url, Some(place)));
        if ended.signal == KILLED {
            *self.kills.entry(place).or_default() += 1;
            return true;
        }
        assert_eq!(ended.code, Some(0), "{place}: {} {}", ended.json, ended.stderr);
        false
    }

    /// Checks that no amount left the account uncounted. The wallet is read first: a transfer in between would show a missing
    /// amount, and never hide one.
    #[track_caller]
    fn check_counted(&self, round: u64) {
        let (used, charged) = (self.agent.used(), self.agent.charged());
        assert!(used >= charged, "in round {round} the wallet counts {used}, and the ledger took {charged}");
    }

    /// Repeats the request twice at once until it is paid, and checks that it was charged once.
    #[track_caller]
    fn pay_twice(&mut self, url: &str, id: &str, round: u64) {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                let command = self.command(url, None);
                background(move || run(command))
            })
            .collect();
        for again in runs {
            let again = again.join().expect("it ends");
            assert_eq!(again.code, Some(0), "in round {round}: {} {}", again.json, again.stderr);
        }
        self.paid += 1;
        let record = self.shop.until(id, "paid for good", |record| record["status"] == "completed");
        assert_eq!((&record["amountPaid"], &record["exceptions"]), (&"1500".into(), &serde_json::json!([])));
        let total = self.paid * PRICE;
        assert_eq!((self.agent.charged(), self.agent.used()), (total, total), "in round {round}");
    }
}

fn a_wallet_killed_at_any_step_counts_its_spending_and_pays_once() {
    let wanted = switch("HIVETILL_WALLET_KILLS", 10);
    let dev = Dev::start();
    let mut campaign = Campaign::new(&dev);
    let mut round = 0;
    while campaign.killed() < wanted || PLACES.iter().any(|place| !campaign.kills.contains_key(place)) {
        assert!(round < 2 * wanted + 20, "{:?} after {round} rounds", campaign.kills);
        let (url, id) = campaign.order();
        if round % TIMED_EVERY == TIMED_EVERY - 1 {
            // A multiplicative sequence spreads the times over a whole payment.
            let part = u32::try_from(round.wrapping_mul(7_919) % u64::from(PARTS)).expect("small");
            let delay = campaign.undisturbed * part / PARTS;
            campaign.kill_after(&url, delay);
        } else {
            let at = usize::try_from(round - round / TIMED_EVERY).expect("small") % PLACES.len();
            assert!(campaign.kill_at(&url, PLACES[at]), "{} is not reached", PLACES[at]);
        }
        campaign.check_counted(round);
        // The repeat is killed, too. It does not reach the steps that the first run completed.
        let again = PLACES[usize::try_from(round).expect("small") % PLACES.len()];
        if campaign.kill_at(&url, again) {
            campaign.check_counted(round);
        }
        campaign.pay_twice(&url, &id, round);
        round += 1;
    }
    let open = campaign.agent.wallet(&["status"]).json["open"].clone();
    assert_eq!(open, serde_json::json!([]), "every outcome is known");
    let (killed, paid) = (campaign.killed(), campaign.paid);
    print_progress(&format!(
        "{killed} processes killed, {paid} orders each charged once; kills by place: {:?}",
        campaign.kills
    ));
}
