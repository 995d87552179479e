//! Checkpoints: what a full segment of the log holds is written to the database, on a thread beside the commits.
//!
//! The synchronization primitives come from the parent module, as those of the queue do.

use std::sync::mpsc::TryRecvError;

use super::sync::{
    mpsc::{Receiver, channel},
    thread,
};

/// Work that can run beside the commits.
pub(super) trait Job: Clone + Send + 'static {
    /// Why it failed.
    type Error: Send + 'static;

    /// Does it.
    fn run(&self) -> Result<(), Self::Error>;

    /// Returns the failure of a job whose thread is gone.
    fn lost() -> Self::Error;
}

/// A job that has begun.
enum Background<J: Job> {
    /// On a thread of its own, which sends the outcome.
    Running(Receiver<Result<(), J::Error>>),
    /// To be done by the writer, when it has waited long enough.
    Deferred(J),
}

impl<J: Job> Background<J> {
    /// Starts a thread for the job. `wake` is called once the outcome is there.
    ///
    /// # Errors
    /// The operating system's, with the job, where it has no thread to give.
    fn start(job: J, wake: impl FnOnce() + Send + 'static) -> Result<Self, (std::io::Error, Self)> {
        let (sender, outcome) = channel();
        let its_job = job.clone();
        let work = move || {
            let outcome = its_job.run();
            // Whoever receives the outcome may close the store and open it again.
            drop(its_job);
            let _ = sender.send(outcome);
            wake();
        };
        match thread::Builder::new().name("checkpoint".to_owned()).spawn(work) {
            Ok(_) => Ok(Self::Running(outcome)),
            Err(error) => Err((error, Self::Deferred(job))),
        }
    }

    /// Returns the outcome, once it is over.
    fn outcome(&self) -> Option<Result<(), J::Error>> {
        match self {
            Self::Running(outcome) => match outcome.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(J::lost())),
            },
            Self::Deferred(_) => None,
        }
    }

    /// Waits for its end, or does it; returns the outcome.
    fn wait(&self) -> Result<(), J::Error> {
        match self {
            Self::Running(outcome) => outcome.recv().unwrap_or_else(|_| Err(J::lost())),
            Self::Deferred(job) => job.run(),
        }
    }

    /// Waits for the end of one that runs, and returns why it failed.
    fn failure(self) -> Option<J::Error> {
        match self {
            Self::Running(_) => self.wait().err(),
            Self::Deferred(_) => None,
        }
    }
}

/// The rows that commits have left in the log, for checkpoints to write to the database.
pub(super) trait Segments {
    /// What writes the rows of a sealed segment.
    type Checkpoint: Job;

    /// Returns whether so many quarters of the size are full at which a segment is sealed.
    fn is_filled(&self, quarters: u64) -> bool;

    /// Leaves what was committed until now to a checkpoint, and goes on in the other segment.
    fn seal(&mut self) -> Self::Checkpoint;

    /// Reads from the database from now on what a checkpoint has written there.
    fn install(&mut self) -> Result<(), JobError<Self>>;

    /// Counts a commit that waits for a checkpoint.
    fn held_up(&self);
}

type JobError<S> = <<S as Segments>::Checkpoint as Job>::Error;

/// Quarters of a full segment after which commits wait for a checkpoint that runs beside them.
const RUNNING_QUARTERS: u64 = 8;
/// The same for one that the writer makes itself: a little later than it could, as one beside the commits would be made.
const DEFERRED_QUARTERS: u64 = 1;

/// The checkpoint under way, of which there is one at most: it owns the other segment.
pub(super) struct Checkpoints<J: Job>(Option<Background<J>>);

impl<J: Job> Checkpoints<J> {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Returns whether a checkpoint is to be begun, or to be waited for.
    pub(super) fn is_due<S: Segments<Checkpoint = J>>(&self, segments: &S) -> bool {
        segments.is_filled(match self.0 {
            None => 4,
            Some(Background::Running(_)) => RUNNING_QUARTERS,
            Some(Background::Deferred(_)) => DEFERRED_QUARTERS,
        })
    }

    /// Installs a checkpoint that is complete, and begins one that is due: on a thread of its own where there is a `wake` to be
    /// called at its end, and otherwise later on this one. Commits go on meanwhile, unless there are so many that memory would
    /// fill with them.
    ///
    /// # Errors
    /// The checkpoint's.
    pub(super) fn tend<S: Segments<Checkpoint = J>>(
        &mut self,
        segments: &mut S,
        wake: Option<impl FnOnce() + Send + 'static>,
    ) -> Result<(), J::Error> {
        if let Some(running) = &self.0 {
            let wait = || {
                segments.held_up();
                running.wait()
            };
            let outcome = running.outcome().or_else(|| self.is_due(segments).then(wait));
            if let Some(outcome) = outcome {
                self.0 = None;
                outcome?;
                segments.install()?;
            }
        }
        if self.0.is_none() && self.is_due(segments) {
            let checkpoint = segments.seal();
            self.0 = Some(match wake {
                Some(wake) => Background::start(checkpoint, wake).unwrap_or_else(|(error, deferred)| {
                    tracing::warn!(%error, "cannot start a thread for the checkpoint: commits wait until it ends");
                    deferred
                }),
                None => Background::Deferred(checkpoint),
            });
        }
        Ok(())
    }

    /// Waits for the running checkpoint, installs it, and makes another if `has_more` returns true.
    ///
    /// # Errors
    /// The checkpoint's.
    pub(super) fn finish<S: Segments<Checkpoint = J>>(
        &mut self,
        segments: &mut S,
        has_more: impl FnOnce(&S) -> bool,
    ) -> Result<(), J::Error> {
        if let Some(running) = self.0.take() {
            running.wait()?;
            segments.install()?;
        }
        if has_more(segments) { segments.seal().run() } else { Ok(()) }
    }

    /// Waits for the end of the one that runs, and returns why it failed.
    pub(super) fn failure(&mut self) -> Option<J::Error> {
        self.0.take().and_then(Background::failure)
    }
}

impl<J: Job> std::fmt::Debug for Checkpoints<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            None => "None",
            Some(Background::Running(_)) => "Running",
            Some(Background::Deferred(_)) => "Deferred",
        })
    }
}
