//! Pages of a batch written by several threads at once, each page by one of them.
//!
//! The thread that has the batch writes as the helpers do, and at the end waits only for pages that a helper
//! has taken. So it works without helpers, too.

use crate::crew::Crew;
use crate::error::Error;
use crate::outgoing::Outgoing;
use base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex};
use std::io;
use std::ops::Range;

/// Some pages of a batch that are being written in their places.
#[derive(Debug)]
pub(crate) struct Run {
    pages: Arc<[Outgoing]>,
    range: Range<usize>,
    /// The next page that nobody has taken.
    next: AtomicUsize,
    progress: Mutex<Progress>,
    finished: Condvar,
}

#[derive(Debug)]
struct Progress {
    /// By page, in the order of the range.
    results: Vec<Result<(), Error>>,
    /// Pages whose result is not there yet.
    left: usize,
}

/// A page that a thread has taken. Its result is reported even if the write panics.
struct Taken<'r> {
    run: &'r Run,
    index: usize,
    result: Option<Result<(), Error>>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let page = &self.run.pages[self.index];
        let panicked =
            || Err(page.file.io_error(Some(page.id), io::Error::other("the thread that wrote it panicked")));
        let mut progress = self.run.progress.lock();
        progress.results[self.index - self.run.range.start] = self.result.take().unwrap_or_else(panicked);
        progress.left -= 1;
        if progress.left == 0 {
            self.run.finished.notify_all();
        }
    }
}

impl Run {
    /// Writes what nobody has taken.
    pub fn work(&self) {
        loop {
            // ORDER: each number is given out once. The results go through the mutex.
            let index = self.next.fetch_add(1, Relaxed);
            if index >= self.range.end {
                return;
            }
            let mut taken = Taken { run: self, index, result: None };
            let page = &self.pages[index];
            taken.result = Some(page.file.write_page(page.id, &page.copy));
        }
    }
}

/// Writes the pages of the range, with the crew's help, and gives the result for each.
pub(crate) fn write(
    crew: &Crew<Arc<Run>>,
    pages: &Arc<[Outgoing]>,
    range: Range<usize>,
) -> Vec<Result<(), Error>> {
    let count = range.len();
    let helpers = crew.size().min(count.saturating_sub(1));
    let run = Arc::new(Run {
        pages: pages.clone(),
        range: range.clone(),
        next: AtomicUsize::new(range.start),
        progress: Mutex::new(Progress { results: (0..count).map(|_| Ok(())).collect(), left: count }),
        finished: Condvar::new(),
    });
    crew.add((0..helpers).map(|_| run.clone()), usize::MAX);
    run.work();
    let mut progress = run.progress.lock();
    while progress.left > 0 {
        progress = run.finished.wait(progress);
    }
    std::mem::take(&mut progress.results)
}
