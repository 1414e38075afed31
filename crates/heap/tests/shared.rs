//! A program whose allocator is shared from its first line on: everything that Rust's library allocates goes
//! through the heap.

use latchwork_heap as heap;

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

/// One test, for the switch is the process's.
#[test]
fn a_program_goes_on_when_its_heap_is_shared_and_says_what_it_holds() {
    let before = String::from("allocated by the system");
    assert_eq!(heap::figures(), heap::Figures::default());
    heap::share().unwrap();
    heap::share().unwrap();
    drop(before);
    let mut lists: Vec<Vec<u64>> = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8u64)
            .map(|thread| {
                scope.spawn(move || (0..50_000).map(|number| number * thread).collect::<Vec<u64>>())
            })
            .collect();
        lists.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
    });
    let bytes = 8 * 50_000 * size_of::<u64>() as u64;
    let held = heap::figures();
    assert!(held.used >= bytes && held.mapped >= held.used, "{held:?}");
    for (thread, list) in lists.iter().enumerate() {
        assert!(list.iter().enumerate().all(|(number, value)| *value == (number * thread) as u64));
    }
    drop(lists);
    assert!(heap::figures().used + bytes <= held.used);
    assert!(heap::resident_bytes() > 0);

    // Metering other latches allocates while the heap's own is counted.
    base::sync::set_metering(true);
    let latch = base::sync::Mutex::<Vec<u8>>::new(Vec::new());
    latch.lock().push(1);
    let classes = base::sync::ClassFigures::all();
    let own = classes.iter().find(|class| class.name == "memory heap").unwrap();
    // One acquisition may sleep more than once.
    assert!(own.acquisitions > 0 && (own.waits == 0 || own.contended > 0));
    assert!(classes.iter().any(|class| class.name == "other" && class.acquisitions > 0));
}
