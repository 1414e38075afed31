//! Interleaved rounds.

use crate::Result;
use crate::options::Options;
use crate::stores::{Lookup, Store};
use base::random::Random;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One store's way of looking up, and what it reached in each round.
#[derive(Debug)]
pub struct Samples {
    pub name: String,
    /// Lookups a second, all threads together, one figure a round.
    pub rates: Vec<f64>,
}

/// Keys are drawn in blocks, so that the clock and the stop flag are looked at rarely.
const BLOCK_KEYS: usize = 1024;

pub fn measure(
    stores: &[Box<dyn Store>],
    rows: u32,
    threads: usize,
    options: &Options,
) -> Result<Vec<Samples>> {
    let mut turns: Vec<(usize, Lookup)> = Vec::new();
    let mut samples = Vec::new();
    for (position, store) in stores.iter().enumerate() {
        for lookup in store.lookups(options.batch_keys) {
            samples.push(Samples { name: store.name(lookup), rates: Vec::new() });
            turns.push((position, lookup));
        }
    }
    // Round 0 warms caches and is not counted.
    for round in 0..=options.rounds {
        for step in 0..turns.len() {
            let turn = (step + round) % turns.len();
            let (store, lookup) = turns[turn];
            let rate = one_turn(stores[store].as_ref(), lookup, rows, threads, options.turn)?;
            if round > 0 {
                samples[turn].rates.push(rate);
            }
        }
    }
    Ok(samples)
}

fn one_turn(store: &dyn Store, lookup: Lookup, rows: u32, threads: usize, length: Duration) -> Result<f64> {
    let stop = AtomicBool::new(false);
    let start = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (stop, start) = (&stop, &start);
                scope.spawn(move || -> std::result::Result<(u64, Duration), String> {
                    let reader = store.reader(lookup).map_err(|error| error.to_string());
                    let mut random = Random::new(0x5eed, thread as u64);
                    let mut ids = vec![0; BLOCK_KEYS];
                    start.wait();
                    let mut reader = reader?;
                    let begin = Instant::now();
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        ids.iter_mut().for_each(|id| *id = random.below(rows));
                        reader.look_up(&mut ids).map_err(|error| error.to_string())?;
                        done += BLOCK_KEYS as u64;
                    }
                    Ok((done, begin.elapsed()))
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let mut rate = 0.0;
        for worker in workers {
            let (done, took) = worker.join().map_err(|_| "a reader panicked")??;
            rate += done as f64 / took.as_secs_f64();
        }
        Ok(rate)
    })
}
