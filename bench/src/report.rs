//! The printed report.

use crate::options::Options;
use crate::rounds::Samples;
use crate::stores;

pub fn settings(options: &Options) {
    let first = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_once(':').map_or(line, |(_, value)| value).trim().to_string()
    };
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    println!("machine:   {} x {}", cores, first("/proc/cpuinfo", "model name"));
    println!("kernel:    {}", first("/proc/version", "Linux"));
    println!("memory:    {}", first("/proc/meminfo", "MemTotal"));
    println!("load:      {}", first("/proc/loadavg", ""));
    println!("rows:      4-byte key, {}-byte value, loaded in key order", stores::VALUE_BYTES);
    println!("lookups:   uniform over the keys, value copied to the caller's buffer and checked");
    println!(
        "rounds:    {} of {:?} a store after one for warming, order rotated; median [lowest .. highest]",
        options.rounds, options.turn
    );
    println!("stores:    {}", options.stores.join(", "));
}

pub fn table(rows: u32, threads: usize, samples: &[Samples]) {
    println!("\n{rows} rows, {threads} thread{}", if threads == 1 { "" } else { "s" });
    println!("{:<34} {:>11}   {:<19} {:>7}", "", "million/s", "[lowest .. highest]", "x LMDB");
    let peer = samples.iter().find(|samples| samples.name.starts_with("LMDB")).map(median);
    for sample in samples {
        let lowest = sample.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = sample.rates.iter().copied().fold(0.0, f64::max);
        let ratio = peer.map_or("-".into(), |peer| format!("{:.2}", median(sample) / peer));
        println!(
            "{:<34} {:>11.3}   [{:>7.3} .. {:>7.3}] {:>7}",
            sample.name,
            median(sample) / 1e6,
            lowest / 1e6,
            highest / 1e6,
            ratio
        );
    }
}

fn median(samples: &Samples) -> f64 {
    let mut rates = samples.rates.clone();
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    match rates.len() {
        0 => 0.0,
        length if length % 2 == 1 => rates[middle],
        _ => (rates[middle - 1] + rates[middle]) / 2.0,
    }
}
