use super::write::Full;
use super::*;
use crate::format::layout::*;
use base::{FileId, PageId, PageNo};
use pagecache::page::{PageBuf, PageMut};
use pagecache::{HINT_WORDS, Hints};
use proptest::prelude::*;
use std::collections::BTreeMap;

const ID: PageId = PageId::new(FileId(3), PageNo(9));
const OTHER: PageId = PageId::new(FileId(3), PageNo(10));

fn leaf<'k>(lower: &'k [u8], upper: Option<&'k [u8]>) -> NodeHeader<'k> {
    NodeHeader { level: 0, tree: 5, lower, upper, stamp_max: 0, first_child: 0, whole_keys: false }
}

fn split(left: &mut NodeMut<'_>, left_id: PageId, right: PageMut<'_>, right_id: PageId, point: &SplitPoint) {
    build_part(left.node(), Part::Right, point, right_id, right);
    cut(left, left_id, point);
}

fn merge(left: &mut NodeMut<'_>, left_id: PageId, right: Node<'_>, separator: &[u8]) {
    with_scratch(1024, |page| {
        build_merged(left.node(), right, separator, left_id, page.page_mut());
        left.replace_by(left_id, page);
    });
}

fn contents(node: Node<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..node.count())
        .map(|index| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            node.append_key(index, &mut key);
            node.append_value(index, &mut value);
            (key, value)
        })
        .collect()
}

fn listed(model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    model.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// What heads, slots and heap say must agree.
fn check_shape(node: Node<'_>) {
    let page_size = node.page().size();
    let cells: usize = (0..node.count()).map(|i| node.cell_bytes(i)).sum();
    let mut fence = Vec::new();
    node.append_lower_fence(&mut fence);
    node.append_upper_fence(&mut fence);
    assert_eq!(node.heap_start() + node.dead_bytes() + cells + fence.len(), page_size);
    for index in 0..node.count() {
        let mut key = Vec::new();
        node.append_key(index, &mut key);
        assert_eq!(node.search(&key), (index, true));
        assert_eq!(node.slot(index).head(), super::read::head_of(&key[node.prefix_len()..]));
        assert!(node.covers(&key));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

/// Keys of few distinct bytes, so that heads, prefixes and zero padding collide.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..12).prop_map(
        |tail| {
            let mut key = b"mm".to_vec();
            key.extend(tail);
            key
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (key(), proptest::collection::vec(any::<u8>(), 0..60)).prop_map(|(k, v)| Step::Put(k, v)),
        1 => key().prop_map(Step::Remove),
    ]
}

fn put(node: &mut NodeMut<'_>, key: &[u8], value: &[u8]) -> Result<(), Full> {
    match node.node().search(key) {
        (index, true) => node.replace(index, &[value]),
        (index, false) => {
            let (front, back) = value.split_at(value.len() / 2);
            node.insert(index, key, &[front, back])
        }
    }
}

proptest! {
    #[test]
    fn a_leaf_behaves_like_a_sorted_map(
        steps in proptest::collection::vec(step(), 1..200),
        fenced in any::<bool>(),
    ) {
        let mut page = PageBuf::new(1024);
        let mut node = NodeMut::new(page.page_mut());
        // Fences that share "mm" give the page a prefix of two bytes.
        if fenced {
            node.init(ID, leaf(b"mm", Some(b"mm\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")));
        } else {
            node.init(ID, leaf(b"", None));
        }
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(key, value) => match put(&mut node, &key, &value) {
                    Ok(()) => { model.insert(key, value); }
                    Err(Full) => {
                        let old = model.get(&key).map_or(0, |v: &Vec<u8>| v.len() + key.len() + 10);
                        prop_assert!(node.node().free_bytes() < key.len() + value.len() + 10 + old);
                    }
                },
                Step::Remove(key) => {
                    let (index, exact) = node.node().search(&key);
                    prop_assert_eq!(exact, model.remove(&key).is_some());
                    if exact { node.remove(index); }
                }
            }
            check_shape(node.node());
            prop_assert_eq!(contents(node.node()), listed(&model));
        }
        // Searches for absent keys land where the map's range starts.
        for (probe, _) in listed(&model) {
            let mut longer = probe.clone();
            longer.push(0);
            let position = model.range(..longer.clone()).count();
            prop_assert_eq!(node.node().search(&longer).0, position);
            prop_assert_eq!(node.node().end_index(Some(&longer)), position);
            for len in 0..=probe.len() {
                let prefix = &probe[..len];
                for (index, (key, _)) in listed(&model).iter().enumerate() {
                    prop_assert_eq!(node.node().key_starts_with(index, prefix), key.starts_with(prefix));
                }
            }
        }
    }

    #[test]
    fn split_then_merge_gives_the_leaf_back(
        entries in proptest::collection::btree_map(key(), proptest::collection::vec(any::<u8>(), 0..60), 2..40),
        incoming in key(),
    ) {
        let mut page = PageBuf::new(1024);
        let mut left = NodeMut::new(page.page_mut());
        left.init(ID, leaf(b"", None));
        let mut model = BTreeMap::new();
        for (key, value) in entries {
            if put(&mut left, &key, &value).is_ok() { model.insert(key, value); }
        }
        prop_assume!(model.len() >= 2 && !model.contains_key(&incoming));
        let point = left.node().split_point(&incoming).unwrap();
        let mut right_page = PageBuf::new(1024);
        split(&mut left, ID, right_page.page_mut(), OTHER, &point);
        let right = Node::new(right_page.page());
        check_shape(left.node());
        check_shape(right);
        prop_assert_eq!(right.page().u32_at(PAGE_NO), 10);
        let mut both = contents(left.node());
        prop_assert_eq!(both.len(), point.index);
        both.extend(contents(right));
        prop_assert_eq!(&both, &listed(&model));
        for (key, _) in contents(left.node()) { prop_assert!(key < point.separator); }
        for (key, _) in contents(right) { prop_assert!(key >= point.separator); }
        prop_assert!(merged_bytes(left.node(), right, &point.separator) <= 1024 - HEADER_BYTES);
        merge(&mut left, ID, right, &point.separator);
        check_shape(left.node());
        prop_assert_eq!(left.node().used_bytes(), merged_bytes(left.node(), {
            let mut empty = NodeMut::new(right_page.page_mut());
            empty.init(OTHER, leaf(b"", None));
            Node::new(right_page.page())
        }, b""));
        prop_assert_eq!(contents(left.node()), listed(&model));
    }

    #[test]
    fn a_search_from_any_hints_ends_where_a_search_without_does(
        keys in proptest::collection::btree_set(prop_oneof![0u64..400, any::<u64>()], 0..300),
        stale in any::<[u64; HINT_WORDS]>(),
        as_many in any::<bool>(),
        probes in proptest::collection::vec(prop_oneof![0u64..400, any::<u64>()], 1..20),
    ) {
        let mut page = PageBuf::new(8192);
        let mut node = NodeMut::new(page.page_mut());
        node.init(ID, leaf(b"", None));
        for (index, key) in keys.iter().enumerate() {
            node.insert(index, &key.to_be_bytes(), &[b"", b""]).unwrap();
        }
        let hints = Hints::default();
        // Of as many slots as there are, or of any number.
        let count = if as_many { keys.len() as u64 | stale[0] & !0xffff_ffff } else { stale[0] };
        hints.store([count, stale[1], stale[2]]);
        for probe in keys.iter().chain(&probes) {
            let probe = probe.to_be_bytes();
            prop_assert_eq!(node.node().search_near(&probe, &hints), node.node().search(&probe));
        }
    }

    /// Keys in any order, many of them with the heads of separators or with heads in common.
    #[test]
    fn the_children_of_one_key_after_another_are_those_of_each(
        separators in proptest::collection::btree_set("[a-c]{1,6}", 0..40),
        mut probes in proptest::collection::vec("[a-c]{0,7}", 1..60),
        is_sorted in any::<bool>(),
    ) {
        let mut page = PageBuf::new(1024);
        let separators: Vec<&[u8]> = separators.iter().map(|key| key.as_bytes()).collect();
        inner(page.page_mut(), &separators);
        if is_sorted {
            probes.sort_unstable();
        }
        let node = Node::new(page.page());
        let mut children = node.children();
        for probe in probes.iter().map(|key| key.as_bytes()).chain(separators.iter().copied()) {
            prop_assert_eq!(children.of(probe), node.child(node.child_index(probe)));
        }
    }

    #[test]
    fn reading_a_torn_page_neither_panics_nor_runs_away(
        words in proptest::collection::vec(any::<u64>(), 128),
        level in 0u8..2,
        probe in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut page = PageBuf::new(1024);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        page.page_mut().write(0, &bytes);
        page.page_mut().set_u8(LEVEL, level);
        let node = Node::new(page.page());
        let mut out = Vec::new();
        node.search(&probe);
        node.search_near(&probe, &Hints::default());
        node.child(node.child_index(&probe));
        node.child(node.child_index_below(&probe));
        node.children().of(&probe);
        node.end_index(Some(&probe));
        node.covers(&probe);
        node.append_lower_fence(&mut out);
        node.append_upper_fence(&mut out);
        node.free_bytes();
        node.used_bytes();
        for index in [0, node.count() / 2, node.count(), usize::from(u16::MAX)] {
            node.append_key(index, &mut out);
            node.append_value(index, &mut out);
            node.key_starts_with(index, &probe);
            node.prefetch_cell(index, 200);
            out.clear();
        }
    }
}

fn inner(page: PageMut<'_>, keys: &[&[u8]]) {
    let mut node = NodeMut::new(page);
    node.init(ID, NodeHeader { level: 1, first_child: 100, ..leaf(b"", None) });
    for (index, key) in keys.iter().enumerate() {
        node.insert_child(index, key, 101 + index as u32).unwrap();
    }
}

fn children(node: Node<'_>) -> Vec<u32> {
    (0..=node.count()).map(|index| node.child(index)).collect()
}

#[test]
fn a_key_equal_to_a_separator_belongs_to_the_right_child_and_keys_below_it_to_the_left() {
    let mut page = PageBuf::new(1024);
    inner(page.page_mut(), &[b"b", b"d", b"dd"]);
    let node = Node::new(page.page());
    for (key, covering, below) in [
        ("a", 100, 100),
        ("b", 101, 100),
        ("c", 101, 101),
        ("d", 102, 101),
        ("dc", 102, 102),
        ("dd", 103, 102),
    ] {
        assert_eq!(node.child(node.child_index(key.as_bytes())), covering, "{key}");
        assert_eq!(node.child(node.child_index_below(key.as_bytes())), below, "{key}");
    }
}

#[test]
fn an_inner_page_moves_its_middle_key_up_and_takes_it_back_when_merged() {
    let mut page = PageBuf::new(1024);
    inner(page.page_mut(), &[b"b", b"d", b"f", b"h", b"j"]);
    let mut left = NodeMut::new(page.page_mut());
    let point = left.node().split_point(b"c").unwrap();
    let mut right_page = PageBuf::new(1024);
    split(&mut left, ID, right_page.page_mut(), OTHER, &point);
    let right = Node::new(right_page.page());
    assert_eq!(left.node().count() + right.count(), 4);
    let mut all = children(left.node());
    all.extend(children(right));
    assert_eq!(all, [100, 101, 102, 103, 104, 105]);
    merge(&mut left, ID, right, &point.separator);
    assert_eq!(children(left.node()), [100, 101, 102, 103, 104, 105]);
}

#[test]
fn an_inner_page_that_two_of_the_longest_keys_fill_can_be_split() {
    let mut page = PageBuf::new(1024);
    let key = |byte: u8| vec![byte; key_bytes_max(1024)];
    let mut left = NodeMut::new(page.page_mut());
    let (lower, upper) = (key(b'a'), key(b'z'));
    left.init(ID, NodeHeader { level: 1, first_child: 100, ..leaf(&lower, Some(&upper)) });
    let mut count = 0;
    while left.insert_child(count, &key(b'b' + count as u8), 101 + count as u32).is_ok() {
        count += 1;
    }
    assert_eq!(count, 2);
    let point = left.node().split_point(&key(b'q')).unwrap();
    let mut right_page = PageBuf::new(1024);
    split(&mut left, ID, right_page.page_mut(), OTHER, &point);
    let mut all = children(left.node());
    all.extend(children(Node::new(right_page.page())));
    assert_eq!(all, [100, 101, 102]);
    let mut right = NodeMut::new(right_page.page_mut());
    let at = right.node().search(&key(b'q')).0;
    right.insert_child(at, &key(b'q'), 103).unwrap();
}

#[test]
fn an_ascending_load_leaves_a_full_left_page() {
    let mut page = PageBuf::new(1024);
    let mut node = NodeMut::new(page.page_mut());
    node.init(ID, leaf(b"", None));
    let mut next = 0u32;
    while put(&mut node, &next.to_be_bytes(), &[7; 20]).is_ok() {
        next += 1;
    }
    let point = node.node().split_point(&next.to_be_bytes()).unwrap();
    assert_eq!(point.index, node.node().count());
    let mut right = PageBuf::new(1024);
    split(&mut node, ID, right.page_mut(), OTHER, &point);
    assert_eq!(node.node().count(), next as usize);
    assert_eq!(Node::new(right.page()).count(), 0);
    assert!(Node::new(right.page()).covers(&next.to_be_bytes()));
}

#[test]
fn a_root_keeps_its_page_when_it_splits_and_when_it_is_pulled_up_again() {
    let mut page = PageBuf::new(1024);
    let mut root = NodeMut::new(page.page_mut());
    root.init(ID, leaf(b"", None));
    for key in 0..20u32 {
        put(&mut root, &key.to_be_bytes(), &[1; 30]).unwrap();
    }
    let before = contents(root.node());
    let point = root.node().split_point(&3u32.to_be_bytes()).unwrap();
    let (mut left, mut right) = (PageBuf::new(1024), PageBuf::new(1024));
    let left_id = PageId::new(FileId(3), PageNo(11));
    build_part(root.node(), Part::Left, &point, left_id, left.page_mut());
    build_part(root.node(), Part::Right, &point, OTHER, right.page_mut());
    let mut scratch = PageBuf::new(1024);
    build_root(root.node(), &point, ID, left_id.page, OTHER.page, scratch.page_mut());
    root.replace_by(ID, &scratch);
    assert_eq!(root.node().level(), 1);
    assert_eq!(children(root.node()), [11, 10]);
    let halves = (Node::new(left.page()), Node::new(right.page()));
    build_merged(halves.0, halves.1, &point.separator, ID, scratch.page_mut());
    root.replace_by(ID, &scratch);
    assert_eq!(root.node().page().u32_at(PAGE_NO), 9);
    assert_eq!(contents(root.node()), before);
    check_shape(root.node());
}

#[test]
fn separators_are_no_longer_than_they_need_to_be() {
    assert_eq!(shortest_separator(b"abcdef", b"abxyz"), b"abx");
    assert_eq!(shortest_separator(b"ab", b"abc"), b"abc");
    assert_eq!(shortest_separator(b"", b"q"), b"q");
}

#[test]
fn keys_at_even_distances_are_guessed_to_the_slot_once_there_is_a_sample() {
    let mut page = PageBuf::new(16384);
    let mut node = NodeMut::new(page.page_mut());
    node.init(ID, leaf(b"", None));
    let key = |index: usize| (1_000 + 3 * index as u32).to_be_bytes();
    for index in 0..700 {
        node.insert(index, &key(index), &[b"", b""]).unwrap();
    }
    let hints = Hints::default();
    assert_eq!(node.node().search_near(&key(0), &hints), (0, true));
    assert_ne!(hints.load(), [0; HINT_WORDS]);
    for index in 0..700 {
        let head = u32::from_be_bytes(key(index));
        assert!(guess::first_place(node.node(), &hints, head, 700).abs_diff(index) <= 1, "{index}");
    }
    // Half of them gone: a sample of what is left.
    for index in (0..350).rev() {
        node.remove(index);
    }
    assert_eq!(node.node().search_near(&key(400), &hints), (50, true));
    assert_eq!(guess::first_place(node.node(), &hints, u32::from_be_bytes(key(400)), 350), 50);
}
