//! Models: every interleaving that a randomised scheduler finds, in a tree so small that each step matters.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`

use crate::tree::{Chunk, Remainder, Tree};
use base::Stamp;
use base::sync::{Arc, shuttle, thread};
use pagecache::{CacheConfig, HitPath, WriteBack};

/// Four rows of this size fill a page of 1 KiB.
const VALUE: [u8; 200] = [7; 200];
const ITERATIONS: usize = 300;

fn tree(hit_path: HitPath) -> Arc<Tree> {
    let config = CacheConfig {
        hit_path,
        segments: 1,
        write_back: WriteBack::AtEvictionOnly,
        // A split or merge holds three pages and their free map.
        ..CacheConfig::new(pagecache::size_for_frames(5, 1024), 1024)
    };
    Arc::new(Tree::create(crate::tests::tablespace(config), 3, None, false).unwrap())
}

fn insert(tree: &Tree, key: u8) {
    assert!(tree.insert(&[key], &[&[key], &VALUE], Stamp(1)).unwrap());
}

fn get(tree: &Tree, key: u8) -> bool {
    let mut value = Vec::new();
    let found = tree.get(&[key], &mut value).unwrap();
    assert!(!found || value == [&[key], VALUE.as_slice()].concat(), "a value is never torn");
    found
}

fn scan(tree: &Tree) -> Vec<u8> {
    let mut rest = Remainder::new(Vec::new(), None);
    let mut chunk = Chunk::default();
    let mut keys = Vec::new();
    while !rest.done {
        tree.read_forward(&mut rest, &mut chunk, usize::MAX).unwrap();
        keys.extend((0..chunk.len()).map(|i| chunk.entry(i).0[0]));
    }
    keys
}

fn check(run: impl Fn(HitPath) + Send + Sync + 'static) {
    let run = Arc::new(run);
    for hit_path in [HitPath::Optimistic, HitPath::Locked] {
        let run = run.clone();
        shuttle::check_random(move || run(hit_path), ITERATIONS);
    }
}

#[test]
fn a_reader_finds_a_key_while_the_root_splits_under_it() {
    check(|hit_path| {
        let tree = tree(hit_path);
        [10, 20, 30, 40].iter().for_each(|key| insert(&tree, *key));
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || insert(&tree, 25))
        };
        assert!(get(&tree, 10) && get(&tree, 40));
        let keys = scan(&tree);
        assert!([10, 20, 30, 40].iter().all(|key| keys.contains(key)), "{keys:?}");
        writer.join().unwrap();
        assert_eq!(scan(&tree), [10, 20, 25, 30, 40]);
    });
}

#[test]
fn a_reader_finds_a_key_while_leaves_merge_under_it() {
    check(|hit_path| {
        let tree = tree(hit_path);
        [10, 20, 30, 40, 50].iter().for_each(|key| insert(&tree, *key));
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || [40, 20, 50].iter().for_each(|key| assert!(tree.remove(&[*key]).unwrap())))
        };
        assert!(get(&tree, 30) && get(&tree, 10));
        writer.join().unwrap();
        assert_eq!(scan(&tree), [10, 30]);
    });
}

#[test]
fn two_writers_of_one_full_leaf_both_get_their_keys_in() {
    check(|hit_path| {
        let tree = tree(hit_path);
        [10, 20, 30, 40].iter().for_each(|key| insert(&tree, *key));
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || insert(&tree, 15))
        };
        insert(&tree, 35);
        writer.join().unwrap();
        assert_eq!(scan(&tree), [10, 15, 20, 30, 35, 40]);
    });
}
