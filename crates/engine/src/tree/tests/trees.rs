use crate::format::node::Node;
use crate::tests::{CacheSize, matrix, tree, tree_of};
use crate::tree::*;
use base::Stamp;
use base::sync::thread;
use pagecache::HitPath;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Walks the whole tree and checks order, fences, levels, and that its pages and the free ones are all there
/// are.
pub(crate) fn check(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pages = BTreeSet::new();
    let mut entries = Vec::new();
    check_page(tree, tree.root(), None, &[], None, &mut pages, &mut entries);
    assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "keys are in order");
    let (count, free) = tree.space().occupancy();
    for page in free {
        assert!(pages.insert(page.0), "page {page} is free and in use, or free twice");
    }
    assert_eq!(pages.len(), count as usize - 2, "every page but the header and the map is in use or free");
    entries
}

fn check_page(
    tree: &Tree,
    page: PageNo,
    level: Option<u8>,
    lower: &[u8],
    upper: Option<&[u8]>,
    pages: &mut BTreeSet<u32>,
    entries: &mut Vec<(Vec<u8>, Vec<u8>)>,
) {
    assert!(pages.insert(page.0), "page {page} is in the tree twice");
    let (children, level) = {
        let guard = tree.pool().read_shared(tree.page_id(page)).unwrap();
        let node = Node::new(guard.page());
        let own_level = tree.level_of(guard.page()).expect("a page of the tree");
        assert!(level.is_none_or(|level| level == own_level));
        let (mut own_lower, mut own_upper) = (Vec::new(), Vec::new());
        node.append_lower_fence(&mut own_lower);
        let has_upper = node.append_upper_fence(&mut own_upper);
        assert_eq!(own_lower, lower);
        assert_eq!(has_upper.then_some(own_upper.as_slice()), upper);
        let keys: Vec<Vec<u8>> = (0..node.count())
            .map(|index| {
                let mut key = Vec::new();
                node.append_key(index, &mut key);
                assert!(node.covers(&key), "a key lies between the fences");
                key
            })
            .collect();
        if own_level == 0 {
            for (index, key) in keys.into_iter().enumerate() {
                let mut value = Vec::new();
                node.append_value(index, &mut value);
                entries.push((key, value));
            }
            return;
        }
        let children: Vec<_> = (0..=node.count())
            .map(|index| {
                let low = if index == 0 { lower.to_vec() } else { keys[index - 1].clone() };
                let high = keys.get(index).cloned().or(upper.map(<[u8]>::to_vec));
                (PageNo(node.child(index)), low, high)
            })
            .collect();
        (children, own_level)
    };
    for (child, low, high) in children {
        check_page(tree, child, Some(level - 1), &low, high.as_deref(), pages, entries);
    }
}

fn listed(model: &Model) -> Vec<(Vec<u8>, Vec<u8>)> {
    model.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    InsertRun(BTreeMap<Vec<u8>, u8>),
    Replace(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, Vec<u8>),
    Get(Vec<u8>),
    GetMany(Vec<Vec<u8>>),
    Forward(Vec<u8>, Option<Vec<u8>>, usize),
    Backward(Vec<u8>, Option<Vec<u8>>, usize),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(prop_oneof![Just(0u8), Just(255), 0..4u8], 0..6),
        (0..300u32).prop_map(|n| n.to_be_bytes().to_vec()),
        // The longest keys a page of 1 KiB allows.
        (0..20u8, 150..192usize).prop_map(|(n, len)| vec![n; len]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), prop_oneof![Just(0usize), Just(8), Just(20), Just(50)]).prop_map(|(b, len)| vec![b; len])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (key(), value()).prop_map(|(k, v)| Step::Insert(k, v)),
        2 => proptest::collection::btree_map(key(), any::<u8>(), 1..40).prop_map(Step::InsertRun),
        2 => (key(), value()).prop_map(|(k, v)| Step::Replace(k, v)),
        3 => key().prop_map(Step::Remove),
        1 => (key(), key()).prop_map(|(a, b)| Step::RemoveRange(a, b)),
        1 => key().prop_map(Step::Get),
        1 => proptest::collection::vec(key(), 0..40).prop_map(Step::GetMany),
        1 => (key(), proptest::option::of(key()), 1..50usize).prop_map(|(a, b, n)| Step::Forward(a, b, n)),
        1 => (key(), proptest::option::of(key()), 1..50usize).prop_map(|(a, b, n)| Step::Backward(a, b, n)),
    ]
}

/// Collects what a batch finds.
#[derive(Default)]
struct Collect(Vec<Option<Vec<u8>>>);

impl LeafVisitor for Collect {
    fn visit(&mut self, position: usize, found: Found<'_>) {
        assert_eq!(position, self.0.len(), "positions come in order");
        self.0.push(found.exact.then(|| {
            let mut value = Vec::new();
            found.leaf.append_value(found.index, &mut value);
            value
        }));
    }
    fn undo(&mut self, _position: usize) {
        self.0.pop();
    }
    fn cell_bytes(&self) -> usize {
        100
    }
}

fn scan(
    tree: &Tree,
    start: &[u8],
    end: Option<&[u8]>,
    limit: usize,
    forward: bool,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rest = Remainder::new(start.to_vec(), end.map(<[u8]>::to_vec));
    let mut chunk = Chunk::default();
    let mut found = Vec::new();
    while !rest.done {
        if forward {
            tree.read_forward(&mut rest, &mut chunk, limit).unwrap();
        } else {
            tree.read_backward(&mut rest, &mut chunk, limit).unwrap();
        }
        found.extend((0..chunk.len()).map(|i| {
            let (key, value) = chunk.entry(i);
            (key.to_vec(), value.to_vec())
        }));
    }
    found
}

fn apply(tree: &Tree, model: &mut Model, step: Step) {
    let stamp = Stamp(9);
    match step {
        Step::Insert(key, value) => {
            let (front, back) = value.split_at(value.len() / 3);
            let inserted = tree.insert(&key, &[front, back], stamp).unwrap();
            assert_eq!(inserted, !model.contains_key(&key));
            model.entry(key).or_insert(value);
        }
        Step::InsertRun(run) => {
            let run: Vec<_> = run.into_iter().map(|(key, byte)| (key, [byte; 10])).collect();
            let mut done = 0;
            let end = tree.insert_run(
                run.len(),
                stamp,
                &mut done,
                |i| (run[i].0.as_slice(), [&run[i].1[..]]),
                |_| None,
                |_| false,
            );
            let fresh = run.iter().take_while(|(key, _)| !model.contains_key(key)).count();
            assert_eq!(done, fresh);
            let expected = if fresh == run.len() { RunEnd::Done } else { RunEnd::Duplicate };
            assert_eq!(end.unwrap(), expected);
            model.extend(run.into_iter().take(fresh).map(|(key, value)| (key, value.to_vec())));
        }
        Step::Replace(key, value) => {
            let replaced = tree.replace(&key, &[&value], stamp).unwrap();
            assert_eq!(replaced, model.contains_key(&key));
            if replaced {
                model.insert(key, value);
            }
        }
        Step::Remove(key) => {
            assert_eq!(tree.remove(&key).unwrap(), model.remove(&key).is_some());
        }
        Step::RemoveRange(a, b) => {
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            let keys: Vec<_> = model.range(low..high).map(|(key, _)| key.clone()).collect();
            for key in keys {
                assert!(tree.remove(&key).unwrap());
                model.remove(&key);
            }
        }
        Step::Get(key) => {
            let mut out = vec![1];
            let found = tree.get(&key, &mut out).unwrap();
            assert_eq!(found.then(|| out[1..].to_vec()), model.get(&key).cloned());
        }
        Step::GetMany(keys) => {
            let mut found = Collect::default();
            tree.lookup_many(keys.len(), |i| keys[i].as_slice(), &mut found).unwrap();
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
            assert_eq!(found.0, expected);
        }
        Step::Forward(start, end, limit) | Step::Backward(start, end, limit)
            if end.as_ref().is_some_and(|end| *end <= start) =>
        {
            assert!(scan(tree, &start, end.as_deref(), limit, true).is_empty());
        }
        Step::Forward(start, end, limit) => {
            let expected: Vec<_> = in_range(model, &start, end.as_deref());
            assert_eq!(scan(tree, &start, end.as_deref(), limit, true), expected);
        }
        Step::Backward(start, end, limit) => {
            let mut expected: Vec<_> = in_range(model, &start, end.as_deref());
            expected.reverse();
            assert_eq!(scan(tree, &start, end.as_deref(), limit, false), expected);
        }
    }
}

fn in_range(model: &Model, start: &[u8], end: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    use std::ops::Bound::*;
    let end = end.map_or(Unbounded, Excluded);
    model.range::<[u8], _>((Included(start), end)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

proptest! {
    #![proptest_config(crate::tests::cases(64))]
    #[test]
    fn a_tree_behaves_like_a_sorted_map(
        steps in proptest::collection::vec(step(), 1..250),
        whole_keys in any::<bool>(),
    ) {
        for (hit_path, size) in matrix() {
            let tree = tree_of(1024, hit_path, size, whole_keys);
            let mut model = Model::new();
            for step in steps.clone() {
                apply(&tree, &mut model, step);
            }
            prop_assert_eq!(check(&tree), listed(&model));
        }
    }

    #[test]
    fn a_bulk_built_tree_is_like_one_that_was_inserted_into(
        model in proptest::collection::btree_map(key(), value(), 0..400),
        whole_keys in any::<bool>(),
    ) {
        let other = tree(1024, HitPath::Optimistic, CacheSize::from_environment());
        let space = other.space().clone();
        other.free_all().unwrap();
        let mut builder = crate::tree::build::TreeBuilder::new(space, 4, None, whole_keys, Stamp(1)).unwrap();
        for (key, value) in &model {
            builder.push(key, value).unwrap();
        }
        let tree = builder.finish().unwrap();
        prop_assert_eq!(check(&tree), listed(&model));
        // It takes changes like any other.
        let mut left = model.clone();
        for (key, value) in model.iter().step_by(2) {
            prop_assert!(tree.remove(key).unwrap());
            left.remove(key);
            let longer = [key.as_slice(), b"x"].concat();
            if longer.len() <= tree.key_bytes_max() && !left.contains_key(&longer) {
                prop_assert!(tree.insert(&longer, &[value], Stamp(2)).unwrap());
                left.insert(longer, value.clone());
            }
        }
        prop_assert_eq!(check(&tree), listed(&left));
    }
}

#[test]
fn an_ascending_load_fills_its_pages() {
    for (hit_path, size) in matrix() {
        let tree = tree(4096, hit_path, size);
        for key in 0..20_000u32 {
            assert!(tree.insert(&key.to_be_bytes(), &[&[7; 30]], Stamp(1)).unwrap());
        }
        let entries = check(&tree);
        assert_eq!(entries.len(), 20_000);
        let (pages, free) = tree.space().occupancy();
        let used = (pages as usize - free.len()) * 4096;
        assert!(used * 9 / 10 < 20_000 * 44, "{used} bytes in pages for {} of cells", 20_000 * 44);
    }
}

#[test]
fn emptying_a_tree_gives_its_pages_back() {
    for (hit_path, size) in matrix() {
        let tree = tree(1024, hit_path, size);
        for key in 0..5_000u32 {
            tree.insert(&key.to_be_bytes(), &[&[7; 30]], Stamp(1)).unwrap();
        }
        for key in (0..5_000u32).rev() {
            assert!(tree.remove(&key.to_be_bytes()).unwrap());
        }
        assert!(check(&tree).is_empty());
        let (pages, free) = tree.space().occupancy();
        assert!(pages as usize - free.len() <= 4, "{} pages of {pages} are free", free.len());
    }
}

#[test]
fn an_estimate_is_exact_within_a_leaf_and_near_across_leaves() {
    let tree = tree(4096, HitPath::Optimistic, CacheSize::from_environment());
    for key in 0..50_000u32 {
        tree.insert(&key.to_be_bytes(), &[&[7; 10]], Stamp(1)).unwrap();
    }
    let estimate = |a: u32, b: u32| tree.estimate(&a.to_be_bytes(), Some(&b.to_be_bytes())).unwrap();
    assert_eq!(estimate(10, 13), 3);
    for (a, b) in [(0, 50_000), (10_000, 20_000), (31_000, 31_500)] {
        let (guess, truth) = (estimate(a, b), u64::from(b - a));
        assert!(guess * 4 > truth * 3 && guess * 3 < truth * 4, "{guess} for {truth}");
    }
}

/// Threads insert, remove, look up and scan at once, in pages so small that they split and merge all the
/// time.
fn stress(hit_path: HitPath, size: CacheSize, rounds: u32) {
    const KEYS: u32 = 600;
    let tree = tree(1024, hit_path, size);
    // Even keys stay throughout; the threads fight over the odd ones, each over its own.
    for key in (0..KEYS).step_by(2) {
        tree.insert(&key.to_be_bytes(), &[&key.to_le_bytes(), &[1; 40]], Stamp(1)).unwrap();
    }
    let value = |key: u32| [key.to_le_bytes().to_vec(), vec![1; 40]].concat();
    thread::scope(|scope| {
        for writer in 0..3u32 {
            let tree = &tree;
            scope.spawn(move || {
                for round in 0..rounds {
                    let mine = (0..KEYS).filter(|key| key % 2 == 1 && (key / 2) % 3 == writer);
                    for key in mine.clone() {
                        assert!(tree.insert(&key.to_be_bytes(), &[&value(key)], Stamp(2)).unwrap());
                    }
                    let keys: Vec<u32> = if round % 2 == 0 { mine.collect() } else { mine.rev().collect() };
                    for key in keys {
                        assert!(tree.replace(&key.to_be_bytes(), &[&value(key)], Stamp(3)).unwrap());
                        assert!(tree.remove(&key.to_be_bytes()).unwrap());
                    }
                }
            });
        }
        let tree = &tree;
        scope.spawn(move || {
            for round in 0..rounds * 3 {
                let found = scan(tree, &[], None, 1 + round as usize % 40, round % 2 == 0);
                let even = found.iter().filter(|(key, _)| key[3] % 2 == 0).count();
                assert_eq!(even, KEYS as usize / 2, "every key that stays is seen once");
                for (key, seen) in found {
                    assert_eq!(seen, value(u32::from_be_bytes(key.try_into().unwrap())));
                }
            }
        });
        scope.spawn(move || {
            let keys: Vec<_> = (0..KEYS).step_by(2).map(u32::to_be_bytes).collect();
            for round in 0..rounds * 3 {
                if round % 2 == 0 {
                    let mut found = Collect::default();
                    tree.lookup_many(keys.len(), |i| &keys[i][..], &mut found).unwrap();
                    for (position, found) in found.0.into_iter().enumerate() {
                        assert_eq!(found, Some(value(position as u32 * 2)));
                    }
                } else {
                    for key in &keys {
                        let mut out = Vec::new();
                        assert!(tree.get(key, &mut out).unwrap());
                        assert_eq!(out, value(u32::from_be_bytes(*key)));
                    }
                }
            }
        });
    });
    let entries = check(&tree);
    assert_eq!(entries.len(), KEYS as usize / 2);
}

#[test]
fn readers_and_writers_agree_while_pages_split_and_merge() {
    for (hit_path, size) in matrix() {
        stress(hit_path, size, 12);
    }
}
