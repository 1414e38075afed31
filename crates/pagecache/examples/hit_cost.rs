//! The cost of a hit: nanoseconds for both hit paths, one and two threads, in a small and a large cache.
//!
//! `cargo run -p latchwork-pagecache --release --example hit_cost`
//!
//! For instructions and cache misses run one case under perf or callgrind:
//! `perf stat -e instructions:u .../hit_cost optimistic 1 100 50000000` (hit path, threads, pages, hits a
//! thread).

use base::random::Random;
use base::sync::{Arc, thread};
use base::{FileId, PageId, PageNo};
use latchwork_pagecache::{CacheConfig, HitPath, Pool};
use std::time::Instant;
use vfs::Vfs;

const PAGE_SIZE: usize = 16 << 10;
const FILE: FileId = FileId(1);

fn cache_of(pages: u32, hit_path: HitPath, segments: u32) -> Arc<Pool> {
    let size_bytes = (pages as usize + 64) * (PAGE_SIZE + 256);
    let config = CacheConfig { hit_path, segments, ..CacheConfig::new(size_bytes, PAGE_SIZE) };
    let pool = Pool::new(config).expect("memory for the cache");
    let file = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).expect("a file in memory");
    pool.attach(FILE, "file".into(), file).expect("a new file");
    for page in 0..pages {
        let mut guard = pool.create(PageId::new(FILE, PageNo(page))).expect("room for every page");
        guard.page_mut().set_u64(64, u64::from(page));
    }
    pool
}

/// Hits random pages and gives the sum of what they hold.
fn hits(pool: &Pool, pages: u32, count: u64, seed: u64) -> u64 {
    let (mut random, mut sum) = (Random::new(seed, 0), 0_u64);
    for _ in 0..count {
        let page = random.below(pages);
        let guard = pool.read(PageId::new(FILE, PageNo(page))).expect("cached");
        let value = guard.page().u64_at(64);
        if guard.validate().is_ok() {
            sum = sum.wrapping_add(value);
        }
    }
    sum
}

fn nanoseconds_a_hit(pool: &Pool, threads: u64, pages: u32, count: u64) -> f64 {
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || std::hint::black_box(hits(pool, pages, count, number + 1)));
        }
    });
    start.elapsed().as_nanos() as f64 / count as f64
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [path, threads, pages, count] = &arguments[..] {
        let hit_path = if path == "locked" { HitPath::Locked } else { HitPath::Optimistic };
        let number = |text: &String| text.parse::<u64>().expect("a number");
        let pages = number(pages) as u32;
        let pool = cache_of(pages, hit_path, 8);
        let cost = nanoseconds_a_hit(&pool, number(threads), pages, number(count));
        println!("{cost:.1} ns a hit");
        return;
    }
    println!("| hit path | segments | pages | 1 thread, ns a hit | 2 threads, ns a hit |");
    println!("|---|---|---|---|---|");
    for (hit_path, segments) in
        [(HitPath::Optimistic, 8), (HitPath::Locked, 0), (HitPath::Locked, 8), (HitPath::Locked, 64)]
    {
        for pages in [100, 20_000] {
            let pool = cache_of(pages, hit_path, segments);
            nanoseconds_a_hit(&pool, 1, pages, 1_000_000);
            let [one, two] = [1, 2].map(|threads| nanoseconds_a_hit(&pool, threads, pages, 5_000_000));
            println!("| {hit_path:?} | {segments} | {pages} | {one:.1} | {two:.1} |");
        }
    }
}
