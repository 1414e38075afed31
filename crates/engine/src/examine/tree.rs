//! The walk through a tree.

use super::FileCheck;
use crate::format::layout::{FORMAT, FORMAT_AT, PageType};
use crate::format::node::Node;
use base::PageNo;

/// Gets each entry of a tree in key order: the file check, the page, key and value.
pub(super) type Visitor<'v> = dyn FnMut(&mut FileCheck<'_>, u32, &[u8], &[u8]) + 'v;

/// What a parent says about a page.
struct Expected {
    page: PageNo,
    level: Option<u8>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

impl FileCheck<'_> {
    /// Verifies a tree, page by page, and hands out its entries.
    pub(super) fn tree(&mut self, root: PageNo, tree: u32, each: &mut Visitor<'_>) {
        let expected = Expected { page: root, level: None, lower: Vec::new(), upper: None };
        self.subtree(tree, expected, each);
    }

    fn subtree(&mut self, tree: u32, expected: Expected, each: &mut Visitor<'_>) {
        let number = expected.page.0;
        let by = if expected.level.is_some() { "a parent names it" } else { "it is the root" };
        if !self.meet(expected.page, by) {
            return;
        }
        let buffer = match self.source.page(expected.page) {
            Ok(buffer) => buffer,
            Err(why) => return self.find(Some(number), why),
        };
        let node = Node::new(buffer.page());
        if let Some(error) = header_error(node, tree, &expected).or_else(|| node.shape_error()) {
            return self.find(Some(number), error);
        }
        let (lower, upper) = node.fences();
        if lower != expected.lower || upper != expected.upper {
            // What lies below is examined all the same, by this page's own fences.
            self.find(Some(number), "its fences are not the parent's separators");
        }
        if node.is_leaf() {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for index in 0..node.count() {
                key.clear();
                value.clear();
                node.append_key(index, &mut key);
                node.append_value(index, &mut value);
                each(self, number, &key, &value);
            }
            return;
        }
        for index in 0..=node.count() {
            let below = Expected {
                page: PageNo(node.child(index)),
                level: Some(node.level() - 1),
                lower: if index == 0 { lower.clone() } else { node.key(index - 1) },
                upper: if index == node.count() { upper.clone() } else { Some(node.key(index)) },
            };
            self.subtree(tree, below, each);
        }
    }
}

fn header_error(node: Node<'_>, tree: u32, expected: &Expected) -> Option<String> {
    let page_type = if node.level() == 0 { PageType::Leaf } else { PageType::Inner };
    if node.page().u8_at(FORMAT_AT) != FORMAT || node.page_type() != Some(page_type) {
        return Some(format!("not a tree page of format {FORMAT} at level {}", node.level()));
    }
    if node.tree() != tree {
        return Some(format!("a page of tree {} in tree {tree}", node.tree()));
    }
    match expected.level {
        Some(level) if level != node.level() => {
            Some(format!("at level {} where level {level} is expected", node.level()))
        }
        _ => None,
    }
}
