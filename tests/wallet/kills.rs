//! kill -9 at every step of a payment with a wallet. After each kill the wallet counts at least the amount that left
//! the account, and in the end the request is paid once.
//!
//! `HIVETILL_WALLET_KILLS=200 cargo test --workspace --test tests -- wallet::kills` is the campaign of `.ci/long`.

use std::{process::Stdio, time::Duration};

use super::agent::{Agent, run};
use crate::harness::{Dev, background, pause, switch};

crate::tests!(a_wallet_killed_at_any_step_counts_its_spending_and_pays_once);

/// The failpoints of `api/src/commands/wallet/failpoint.rs`, in the order of a payment.
const PLACES: [&str; 7] = ["reserving", "reserved", "signing", "signed", "submitting", "answered", "recorded"];
const PRICE: u64 = 1_500;
/// SIGKILL.
const KILLED: Option<i32> = Some(9);

/// One kill in three is at a drawn time, the others at a failpoint.
const TIMED_EVERY: u64 = 3;

fn a_wallet_killed_at_any_step_counts_its_spending_and_pays_once() {
    let kills = switch("HIVETILL_WALLET_KILLS", 10);
    let dev = Dev::start();
    let shop = dev.shop();
    let agent = Agent::new(&dev, "[limits]\nmonth = \"900000.000 HBD\"\n");
    let (mut paid, mut stopped) = (0, 0);
    for kill in 0..kills {
        let payment = shop.open_payment();
        let url = format!("{}/for/{}", shop.api.base, payment.slug);
        if kill % TIMED_EVERY == TIMED_EVERY - 1 {
            // A multiplicative sequence spreads the times over the whole payment.
            let delay = Duration::from_millis(kill.wrapping_mul(7_919) % 400);
            let mut command = agent.pay_command(&url, &["--json"]);
            let mut child = command.stdout(Stdio::null()).spawn().expect("the binary starts");
            pause(delay);
            let _ = child.kill();
            stopped += u64::from(!child.wait().expect("it ends").success());
        } else {
            let at = usize::try_from(kill - kill / TIMED_EVERY).expect("small") % PLACES.len();
            let mut command = agent.pay_command(&url, &[]);
            command.env("HIVETILL_FAILPOINT", PLACES[at]);
            let ended = run(command);
            assert_eq!(ended.signal, KILLED, "{}: {} {}", PLACES[at], ended.json, ended.stderr);
            stopped += 1;
        }
        let (used, charged) = (agent.used(), agent.charged());
        assert!(used >= charged, "after kill {kill} the wallet counts {used}, and the ledger took {charged}");
        // The same request, also repeated concurrently, is charged once.
        let runs: Vec<_> = (0..2)
            .map(|_| {
                let command = agent.pay_command(&url, &[]);
                background(move || run(command))
            })
            .collect();
        for again in runs {
            let again = again.join().expect("it ends");
            assert_eq!(again.code, Some(0), "after kill {kill}: {} {}", again.json, again.stderr);
        }
        paid += 1;
        let record = shop.until(&payment.id, "paid for good", |record| record["status"] == "completed");
        assert_eq!((&record["amountPaid"], &record["exceptions"]), (&"1500".into(), &serde_json::json!([])));
        assert_eq!((agent.charged(), agent.used()), (paid * PRICE, paid * PRICE), "after kill {kill}");
    }
    assert!(stopped > kills / 2, "{stopped} of {kills} runs were stopped before their end");
}
