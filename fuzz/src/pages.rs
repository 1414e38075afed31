//! Tree pages with any content: torn reads hand such pages to every reader.

use base::{FileId, PageId, PageNo};
use engine::node::{Node, NodeHeader, NodeMut};
use pagecache::page::PageBuf;

const PAGE_BYTES: usize = 4096;

/// The bytes overwrite parts of a sound page: (offset, offset, length, bytes...) again and again.
pub fn pages(bytes: &[u8]) {
    let mut page = PageBuf::new(PAGE_BYTES);
    fill(&mut page);
    read_all(Node::new(page.page()));
    let mut rest = bytes;
    while let [low, high, length, tail @ ..] = rest {
        let length = usize::from(*length).min(tail.len());
        let offset = usize::from(u16::from_le_bytes([*low, *high])) % (PAGE_BYTES - length);
        page.page_mut().write(offset, &tail[..length]);
        rest = &tail[length..];
    }
    read_all(Node::new(page.page()));
}

fn fill(page: &mut PageBuf) {
    let id = PageId::new(FileId(1), PageNo(7));
    let mut node = NodeMut::new(page.page_mut());
    node.init(id, header());
    for number in 0..60u32 {
        let key = [b"key", &number.to_be_bytes()[..]].concat();
        if node.insert(number as usize, &key, &[&[0; 8], &key]).is_err() {
            break;
        }
    }
}

fn header() -> NodeHeader<'static> {
    NodeHeader {
        level: 0,
        tree: 3,
        lower: b"key",
        upper: Some(b"key\x01"),
        stamp_max: 9,
        first_child: 0,
        whole_keys: false,
    }
}

fn read_all(node: Node<'_>) {
    let mut out = Vec::new();
    let _ = (
        node.page_type(),
        node.level(),
        node.is_leaf(),
        node.prefix_len(),
        node.free_bytes(),
        node.used_bytes(),
    );
    node.append_lower_fence(&mut out);
    node.append_upper_fence(&mut out);
    for key in [&b""[..], b"key", b"key\0\0\0\x07", &[0xff; 40]] {
        let _ = (node.covers(key), node.compare_lower_fence(key), node.end_index(Some(key)));
        let (index, _) = node.search(key);
        let _ = (node.child_index(key), node.child_index_below(key));
        let _ = node.key_starts_with(index, key);
    }
    for index in 0..=node.count().min(2000) {
        out.clear();
        let _ = node.child(index);
        node.append_key(index, &mut out);
        node.append_value(index, &mut out);
        node.prefetch_cell(index, 64);
        assert!(out.len() <= 3 * PAGE_BYTES, "prefix, key and value each fit a page");
    }
    let _ = node.split_point(b"key");
}

#[cfg(test)]
pub fn seeds() -> Vec<Vec<u8>> {
    // Header fields one by one, a slot, a cell.
    let mut seeds: Vec<Vec<u8>> = (0..80).map(|offset| vec![offset, 0, 4, 0xff, 0xff, 0xff, 0xff]).collect();
    seeds.extend((0..80).map(|offset| vec![offset, 0, 2, 0x01, 0x10, offset, 15, 2, 9, 9]));
    seeds
}
