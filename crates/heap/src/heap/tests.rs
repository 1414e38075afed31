//! In the interpreter: `MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-stacked-borrows"
//! cargo +nightly miri test -p latchwork-heap --lib`. Borrows cannot be checked: the heads of dlmalloc's
//! lists lie in the value that each of its calls borrows anew, and blocks point at them. Neither Stacked nor
//! Tree Borrows allow for that (`unlink_small_chunk` writes through such a pointer), and nothing on this side
//! of the crate changes it.

use super::*;
use base::random::Random;
use std::collections::VecDeque;
use std::sync::Mutex as Handover;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// A block, filled with a number of its own, so that blocks that overlap are noticed.
struct Block<'h> {
    heap: &'h Heap,
    start: *mut u8,
    layout: Layout,
    mark: u8,
}

// SAFETY: whoever has the block alone touches its memory.
unsafe impl Send for Block<'_> {}

impl<'h> Block<'h> {
    fn new(heap: &'h Heap, layout: Layout, mark: u8) -> Block<'h> {
        // SAFETY: all layouts here have a size.
        let start = unsafe { heap.alloc(layout) };
        assert!(!start.is_null() && start.addr().is_multiple_of(layout.align()));
        let mut block = Block { heap, start, layout, mark };
        block.fill();
        block
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as many bytes were allocated, and written to before they are read.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }

    fn fill(&mut self) {
        // SAFETY: as many bytes were allocated.
        unsafe { std::ptr::write_bytes(self.start, self.mark, self.layout.size()) };
    }

    fn resize(&mut self, size: usize) {
        // SAFETY: the block is this one's, with this layout.
        self.start = unsafe { self.heap.realloc(self.start, self.layout, size) };
        let kept = size.min(self.layout.size());
        self.layout = layout(size, self.layout.align());
        assert!(!self.start.is_null() && self.start.addr().is_multiple_of(self.layout.align()));
        // SAFETY: what both sizes hold was written and is kept.
        let kept = unsafe { std::slice::from_raw_parts(self.start, kept) };
        assert!(kept == vec![self.mark; kept.len()]);
        self.fill();
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        let expected = vec![self.mark; self.layout.size()];
        assert!(self.bytes() == expected, "somebody else wrote to it");
        // SAFETY: nobody uses the block any more.
        unsafe { self.heap.dealloc(self.start, self.layout) };
    }
}

#[test]
fn blocks_of_many_threads_never_overlap_wherever_they_are_freed() {
    const ROUNDS: usize = if cfg!(miri) { 60 } else { 20_000 };
    let heap = Heap::reserve(if cfg!(miri) { 8 << 20 } else { 256 << 20 }).unwrap();
    let handed_over = Handover::new(VecDeque::new());
    std::thread::scope(|scope| {
        for thread in 0..if cfg!(miri) { 2 } else { 6 } {
            let (heap, handed_over) = (&heap, &handed_over);
            scope.spawn(move || {
                let mut random = Random::new(1, thread);
                let mut own = Vec::new();
                for _ in 0..ROUNDS {
                    let size_max = if random.below(50) == 0 { 100_000 } else { 600 };
                    let size = 1 + random.index(size_max);
                    let align = 1 << random.below(8);
                    own.push(Block::new(heap, layout(size, align), random.below(256) as u8));
                    let chosen = random.index(own.len());
                    match random.below(5) {
                        0 => own[chosen].resize(size * 3 / 2),
                        1 => drop(own.swap_remove(chosen)),
                        2 => handed_over.lock().unwrap().push_back(own.swap_remove(chosen)),
                        3 => drop(handed_over.lock().unwrap().pop_front()),
                        _ if own.len() > 400 => own.truncate(100),
                        _ => {}
                    }
                }
            });
        }
    });
    handed_over.lock().unwrap().clear();
    let Figures { used, mapped } = heap.figures();
    assert_eq!(used, 0);
    assert!(mapped > 0 && mapped <= heap.len as u64);
    let figures = heap.latch_figures();
    assert!(figures.acquisitions >= ROUNDS as u64);
    assert_eq!(figures.times.iter().sum::<u64>(), figures.contended);
}

#[test]
fn a_full_heap_lets_the_system_help_out_and_each_block_goes_back_to_where_it_came_from() {
    let heap = Heap::reserve(1 << 20).unwrap();
    let mut blocks: Vec<Block<'_>> =
        (0..40).map(|mark| Block::new(&heap, layout(60_000, 16), mark)).collect();
    let inside = blocks.iter().filter(|block| heap.contains(block.start)).count();
    assert!((1..40).contains(&inside), "{inside} of 40 blocks are the heap's");
    assert_eq!(heap.figures(), Figures { used: inside as u64 * 60_000, mapped: 1 << 20 });
    let first = blocks.iter().position(|block| heap.contains(block.start)).unwrap();
    blocks[first].resize(2 << 20);
    assert!(!heap.contains(blocks[first].start), "there was no room for it");
    blocks[first].resize(100);
    drop(blocks);
    assert_eq!(heap.figures().used, 0);
    assert!(heap.contains(Block::new(&heap, layout(60_000, 16), 1).start), "there is room again");
}

#[test]
fn zeroed_memory_is_zero_though_it_was_used_before() {
    let heap = Heap::reserve(1 << 20).unwrap();
    for size in [1, 24, 1000, 100_000] {
        let first = Block::new(&heap, layout(size, 8), 255);
        let place = first.start;
        drop(first);
        // SAFETY: the layout has a size.
        let start = unsafe { heap.alloc_zeroed(layout(size, 8)) };
        assert_eq!(start, place, "the test means to get the same memory again");
        let mut block = Block { heap: &heap, start, layout: layout(size, 8), mark: 0 };
        assert!(block.bytes() == vec![0; size]);
    }
}
