//! Hit ratios of the replacement policies on generated traces, beside LRU.
//!
//! `cargo run -p latchwork-pagecache --release --example hit_ratio`
//!
//! The traces are made by a fixed pseudo-random sequence, so that the figures are the same everywhere.

use base::random::{Random, Zipf};
use base::{FileId, PageId, PageNo};
use latchwork_pagecache::Limits;
use latchwork_pagecache::frames::{FrameNo, Frames};
use latchwork_pagecache::replacement::{Clock, Midpoint, Policy, S3Fifo, Sieve, Take};
use std::collections::HashMap;

const PAGES: u32 = 100_000;
const REQUESTS: usize = 2_000_000;

/// One request; `counted` requests make the hit ratio (a scan's own hits are not what we look for).
#[derive(Clone, Copy)]
struct Request {
    page: u32,
    counted: bool,
}

/// Spreads ranks over the page numbers, differently for each `epoch`.
fn spread(rank: u32, epoch: u32) -> u32 {
    ((u64::from(rank) * 48_271 + u64::from(epoch) * 7_919_777) % u64::from(PAGES)) as u32
}

fn zipf(skew: f64) -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(PAGES, skew), Random::new(42, 0));
    (0..REQUESTS).map(|_| Request { page: spread(zipf.draw(&mut random), 0), counted: true }).collect()
}

/// Every 50,000 requests somebody scans 20,000 other pages, touching each `touches` times in a row.
fn zipf_and_scans(skew: f64, touches: usize) -> Vec<Request> {
    let mut trace = Vec::new();
    for (n, request) in zipf(skew).into_iter().enumerate() {
        trace.push(request);
        if n % 50_000 == 49_999 {
            for page in 0..20_000 {
                let scan = Request { page: PAGES + page, counted: false };
                trace.extend(std::iter::repeat_n(scan, touches));
            }
        }
    }
    trace
}

/// The hot set changes every 200,000 requests.
fn shifting(skew: f64) -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(PAGES, skew), Random::new(43, 0));
    (0..REQUESTS)
        .map(|n| Request { page: spread(zipf.draw(&mut random), (n / 200_000) as u32), counted: true })
        .collect()
}

/// Pages in turn, again and again.
fn in_turn(pages: u32) -> Vec<Request> {
    (0..REQUESTS).map(|n| Request { page: n as u32 % pages, counted: true }).collect()
}

/// Lookups in a tree of three levels: the root, one of 200 inner pages, a leaf.
fn tree(skew: f64) -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(PAGES, skew), Random::new(44, 0));
    let mut trace = Vec::new();
    for _ in 0..REQUESTS / 3 {
        let leaf = spread(zipf.draw(&mut random), 0);
        for page in [2 * PAGES, 2 * PAGES + 1 + leaf / 500, leaf] {
            trace.push(Request { page, counted: true });
        }
    }
    trace
}

fn hit_ratio(policy: &mut dyn Policy, trace: &[Request], frames_max: usize) -> f64 {
    let frames = Frames::new(frames_max).expect("address space for the simulation");
    policy.set_limits(frames_max, Limits { division_limit: 30, age_threshold: 300 });
    let mut cached: HashMap<u32, FrameNo> = HashMap::new();
    let (mut hits, mut counted) = (0_u64, 0_u64);
    // The first fifth warms the cache.
    for (n, request) in trace.iter().enumerate() {
        let counts = request.counted && n >= trace.len() / 5;
        counted += u64::from(counts);
        if let Some(&frame) = cached.get(&request.page) {
            hits += u64::from(counts);
            policy.hit(&frames, frame);
            continue;
        }
        let frame = if cached.len() < frames_max {
            FrameNo(cached.len() as u32)
        } else {
            let victim = policy.evict(&frames, &mut |_| Take::Taken).expect("nothing is latched");
            cached.remove(&frames.header(victim).page_id().page.0);
            victim
        };
        frames.header(frame).set_page_id(PageId::new(FileId(1), PageNo(request.page)));
        policy.insert(&frames, frame);
        cached.insert(request.page, frame);
    }
    hits as f64 * 100.0 / counted as f64
}

fn policies() -> Vec<(&'static str, Box<dyn Policy>)> {
    vec![
        ("LRU", Box::new(Midpoint::default())),
        ("midpoint 30%", Box::new(Midpoint::default())),
        ("CLOCK", Box::new(Clock::default())),
        ("SIEVE", Box::new(Sieve::default())),
        ("S3-FIFO", Box::new(S3Fifo::default())),
    ]
}

/// Makes midpoint insertion plain LRU, whatever limits it is given.
struct PlainLru<'a>(&'a mut dyn Policy);

impl Policy for PlainLru<'_> {
    fn insert(&mut self, frames: &Frames, frame: FrameNo) {
        self.0.insert(frames, frame);
    }
    fn hit(&mut self, frames: &Frames, frame: FrameNo) {
        self.0.hit(frames, frame);
    }
    fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        self.0.remove(frames, frame);
    }
    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        self.0.substitute(frames, old, new);
    }
    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        self.0.evict(frames, take)
    }
    fn set_limits(&mut self, frames_expected: usize, _limits: Limits) {
        self.0.set_limits(frames_expected, Limits { division_limit: 100, age_threshold: 300 });
    }
    fn warm(&self) -> usize {
        self.0.warm()
    }
    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        self.0.drain(frames)
    }
}

fn main() {
    let traces: Vec<(&str, Vec<Request>)> = vec![
        ("zipf 0.8", zipf(0.8)),
        ("zipf 1.0", zipf(1.0)),
        ("zipf 1.2", zipf(1.2)),
        ("zipf 0.8 + scans", zipf_and_scans(0.8, 1)),
        ("zipf 1.0 + scans", zipf_and_scans(1.0, 1)),
        ("zipf 1.0 + scans, 3 touches", zipf_and_scans(1.0, 3)),
        ("shifting hot set, 1.0", shifting(1.0)),
        ("tree lookups, 0.8", tree(0.8)),
        ("loop of 12,000", in_turn(12_000)),
    ];
    for frames_max in [2_000, 10_000] {
        println!("{frames_max} frames, {PAGES} pages: hit ratio in percent (difference to LRU)\n");
        print!("| {:<28}", "trace");
        for (name, _) in policies() {
            print!("| {name:<14}");
        }
        println!("|\n|{0}|{1}|{1}|{1}|{1}|{1}|", "-".repeat(29), "-".repeat(15));
        for (name, trace) in &traces {
            print!("| {name:<28}");
            let mut lru = None;
            for (policy_name, mut policy) in policies() {
                let ratio = if policy_name == "LRU" {
                    hit_ratio(&mut PlainLru(policy.as_mut()), trace, frames_max)
                } else {
                    hit_ratio(policy.as_mut(), trace, frames_max)
                };
                let lru = *lru.get_or_insert(ratio);
                let cell = format!("{ratio:.1} ({:+.1})", ratio - lru);
                print!("| {:<14}", if policy_name == "LRU" { format!("{ratio:.1}") } else { cell });
            }
            println!("|");
        }
        println!();
    }
}
