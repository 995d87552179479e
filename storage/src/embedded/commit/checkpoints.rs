//! Checkpoints write the rows of a full WAL segment into the database, on a thread of their own, concurrently with
//! commits.
//!
//! The synchronization primitives come from the parent module, as those of the queue do.

use std::sync::mpsc::TryRecvError;

use super::sync::{
    mpsc::{Receiver, channel},
    thread,
};

/// Work that can run concurrently with commits.
pub(super) trait Job: Clone + Send + 'static {
    /// The error type.
    type Error: Send + 'static;

    /// Runs the job.
    fn run(&self) -> Result<(), Self::Error>;

    /// Returns the error for a job whose thread has died.
    fn thread_died() -> Self::Error;
}

/// A job that was started.
enum Background<J: Job> {
    /// Running on its own thread, which sends the outcome.
    Running(Receiver<Result<(), J::Error>>),
    /// Deferred to the writer's thread.
    Deferred(J),
}

impl<J: Job> Background<J> {
    /// Starts a thread for the job. The thread calls `wake` when the outcome is available.
    ///
    /// # Errors
    /// The operating system's error and the job, if no thread can be created.
    fn start(job: J, wake: impl FnOnce() + Send + 'static) -> Result<Self, (std::io::Error, Self)> {
        let (sender, outcome) = channel();
        let its_job = job.clone();
        let work = move || {
            let outcome = its_job.run();
            // The job must be dropped before its outcome is sent: the receiver may close the store and open it again.
            drop(its_job);
            let _ = sender.send(outcome);
            wake();
        };
        match thread::Builder::new().name("checkpoint".to_owned()).spawn(work) {
            Ok(_) => Ok(Self::Running(outcome)),
            Err(error) => Err((error, Self::Deferred(job))),
        }
    }

    /// Returns the outcome, if the job is complete.
    fn outcome(&self) -> Option<Result<(), J::Error>> {
        match self {
            Self::Running(outcome) => match outcome.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(J::thread_died())),
            },
            Self::Deferred(_) => None,
        }
    }

    /// Waits for the job, or runs it if it was deferred; returns the outcome.
    fn wait(&self) -> Result<(), J::Error> {
        match self {
            Self::Running(outcome) => outcome.recv().unwrap_or_else(|_| Err(J::thread_died())),
            Self::Deferred(job) => job.run(),
        }
    }

    /// Waits for a running job, and returns its error.
    fn failure(self) -> Option<J::Error> {
        match self {
            Self::Running(_) => self.wait().err(),
            Self::Deferred(_) => None,
        }
    }
}

/// The rows that commits left in the log, for checkpoints to write into the database.
pub(super) trait Segments {
    /// Writes the rows of a sealed segment.
    type Checkpoint: Job;

    /// Returns whether this many quarters of the segment size limit are filled.
    fn is_filled(&self, quarters: u64) -> bool;

    /// Seals the current segment for a checkpoint and continues in the other segment.
    fn seal(&mut self) -> Self::Checkpoint;

    /// Switches reads to the database state that a checkpoint has written.
    fn install(&mut self) -> Result<(), JobError<Self>>;

    /// Counts a commit that waits for a checkpoint.
    fn blocked(&self);
}

type JobError<S> = <<S as Segments>::Checkpoint as Job>::Error;

/// Quarters of the segment size limit at which commits wait for a concurrent checkpoint.
const RUNNING_QUARTERS: u64 = 8;
/// The same for a deferred checkpoint, a little later than possible: about where a concurrent one would be complete.
const DEFERRED_QUARTERS: u64 = 1;

/// The checkpoint in progress. There is at most one: it owns the other segment.
pub(super) struct Checkpoints<J: Job>(Option<Background<J>>);

impl<J: Job> Checkpoints<J> {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Returns whether a checkpoint must be started or waited for.
    pub(super) fn is_due<S: Segments<Checkpoint = J>>(&self, segments: &S) -> bool {
        segments.is_filled(match self.0 {
            None => 4,
            Some(Background::Running(_)) => RUNNING_QUARTERS,
            Some(Background::Deferred(_)) => DEFERRED_QUARTERS,
        })
    }

    /// Installs a complete checkpoint, and starts one if it is due: on its own thread if there is a `wake` to call at
    /// its end, otherwise later on this thread. Commits continue, unless there are so many that the memtables would
    /// exceed memory.
    ///
    /// # Errors
    /// The checkpoint's error.
    pub(super) fn tend<S: Segments<Checkpoint = J>>(
        &mut self,
        segments: &mut S,
        wake: Option<impl FnOnce() + Send + 'static>,
    ) -> Result<(), J::Error> {
        if let Some(running) = &self.0 {
            let wait = || {
                segments.blocked();
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

    /// Waits for the running checkpoint and installs it, then makes another if `has_more` returns true.
    ///
    /// # Errors
    /// The checkpoint's error.
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

    /// Waits for the running checkpoint, and returns its error.
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
