//! Full and failing disks under load: the gateway exits with a reason, and the next one has every acknowledged write.

use std::{
    fs::File,
    io::{ErrorKind, Write},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{kills::Campaign, model::Plan, print_progress, switch};
use crate::harness::{Process, Stopwatch, background, folder, pause, until};

/// Returns every test of this module; without permission to mount they are ignored.
pub(super) fn all() -> Vec<libtest_mimic::Trial> {
    let name = crate::title(module_path!(), "a_full_or_failing_disk_under_load_loses_no_acknowledged_write");
    let trial = libtest_mimic::Trial::test(name, || {
        a_full_or_failing_disk_under_load_loses_no_acknowledged_write();
        Ok(())
    });
    vec![match Disk::obstacle() {
        None => trial,
        Some(why) => trial.with_kind(why).with_ignored_flag(true),
    }]
}

/// A file system in a file.
struct Disk {
    image: PathBuf,
    place: PathBuf,
}

fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).output().is_ok_and(|output| output.status.success())
}

impl Disk {
    /// Returns why this machine cannot mount one.
    fn obstacle() -> Option<&'static str> {
        if !sh("test $(id -u) = 0") {
            return Some("needs root, to mount a file system in a file");
        }
        if !sh("command -v mkfs.ext4 && command -v e2fsck") {
            return Some("needs mkfs.ext4 and e2fsck");
        }
        let folder = folder("mount");
        let disk = Self { image: folder.join("image"), place: folder.join("place") };
        (!disk.make()).then_some("needs the right to mount a file system in a file")
    }

    /// Creates and mounts it; `false` if that is not permitted.
    fn make(&self) -> bool {
        let image = self.image.display();
        std::fs::create_dir(&self.place).expect("made");
        sh(&format!("truncate -s 16M {image} && mkfs.ext4 -q -F -m 0 {image}")) && self.mount()
    }

    fn mount(&self) -> bool {
        sh(&format!("mount -o loop {} {}", self.image.display(), self.place.display()))
    }

    /// Fills the remaining space.
    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).expect("created");
        for size in [64 * 1024, 1024, 1] {
            let chunk = vec![7; size];
            loop {
                match ballast.write_all(&chunk) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("the ballast: {error}"),
                }
            }
        }
        // Delayed allocation takes space later.
        let _ = ballast.sync_all();
    }

    fn ballast(&self) -> PathBuf {
        self.place.join("ballast")
    }

    /// Makes every further write and fsync fail, as after a controller failure.
    fn fail(&self) {
        assert!(sh(&format!("mount -o remount,abort {}", self.place.display())), "the disk does not fail");
    }

    /// Repairs the file system.
    fn repair(&self) {
        let (image, place) = (self.image.display(), self.place.display());
        until("the disk to be free", || sh(&format!("umount {place}")).then_some(()));
        // 1: errors were found and corrected.
        assert!(sh(&format!("e2fsck -f -y {image}; test $? -le 1")), "the disk is beyond repair");
        assert!(self.mount(), "the disk is not mounted again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        sh(&format!("umount -l {}", self.place.display()));
    }
}

fn a_full_or_failing_disk_under_load_loses_no_acknowledged_write() {
    let (rounds, seed) = (switch("HIVETILL_DISK_ROUNDS", 2), switch("HIVETILL_SEED", 1));
    print_progress(&format!(
        "reliability: {rounds} disks that fill or fail; HIVETILL_DISK_ROUNDS={rounds} HIVETILL_SEED={seed}"
    ));
    let folder = folder("disk");
    let disk = Disk { image: folder.join("image"), place: folder.join("place") };
    assert!(disk.make(), "it could be mounted a moment ago");
    let watch = Stopwatch::start();
    let mut campaign = Campaign::begin(seed, disk.place.join("data"));
    let clients = campaign.clients();
    let settings_client = campaign.settings_client();
    for round in 1..=rounds {
        campaign.until_up();
        campaign.audit();
        pause(Duration::from_millis(campaign.random.below(900)));
        let is_full = round % 2 == 1;
        if is_full {
            fill(&mut campaign, &disk);
        } else {
            fail(&mut campaign, &disk);
        }
        campaign.start();
        let (made, broken) = (campaign.model.len(), campaign.environment.violations().len());
        let what = if is_full { "full" } else { "failed" };
        print_progress(&format!(
            "reliability: disk {round} {what}, {made} payments, {broken} violations, {:?}",
            watch.elapsed()
        ));
        if broken > 0 {
            break;
        }
    }
    campaign.finish(clients, settings_client, watch);
}

/// Fills the disk while payments are created at full speed, until the gateway exits.
fn fill(campaign: &mut Campaign, disk: &Disk) {
    let enough = Arc::new(AtomicBool::new(false));
    let hoarder = {
        let (mut client, enough) = (campaign.client(0), Arc::clone(&enough));
        background(move || {
            while !enough.load(Ordering::SeqCst) {
                client.go(Plan::Abandon);
            }
        })
    };
    disk.fill();
    campaign.ended(8, "disk full");
    enough.store(true, Ordering::SeqCst);
    // The disk is still full: the next gateway exits with that reason, or runs until it has to write.
    let mut blind = Process::start(&campaign.arguments());
    until("the next one to listen or to end", || {
        (blind.has_ended().is_some() || blind.log().contains("listening on ")).then_some(())
    });
    if let Some(status) = blind.has_ended() {
        assert_eq!(status.code(), Some(8), "{}", blind.log());
    }
    assert!(!blind.log().contains("panicked"), "{}", blind.log());
    blind.kill();
    std::fs::remove_file(disk.ballast()).expect("removed");
    campaign.start();
    campaign.until_up();
    hoarder.join().expect("no panic");
    campaign.kill_gateway();
}

/// Makes the disk fail under load, until the gateway exits.
fn fail(campaign: &mut Campaign, disk: &Disk) {
    // The kernel may report a sync in progress at that moment as successful although the data is not on disk, which no
    // program can detect. Later ones fail.
    campaign.while_halted(|| disk.fail());
    campaign.ended(7, "store failed");
    disk.repair();
}
