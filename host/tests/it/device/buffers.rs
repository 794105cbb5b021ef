//! Buffers: what is written is read, and everything else is refused.

use steadfast::checkpoint::format::CHUNK_BYTES;

use super::lab::{Lab, out_of_memory, refused, to_bytes};

pub fn new_ones_are_zero(lab: &mut Lab) {
    for bytes in [1, 4096, 4097, 3 << 20] {
        let buffer = lab.context.allocate(bytes).unwrap();
        assert_eq!(lab.context.size(buffer), Ok(bytes));
        assert!(lab.bytes(buffer).iter().all(|byte| *byte == 0));
        // The next one may get the same memory.
        lab.context.write(buffer, 0, &vec![7; bytes as usize]).unwrap();
        lab.context.free(buffer);
    }
}

pub fn written_is_read(lab: &mut Lab) {
    let buffer = lab.upload(&[0_u8, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    lab.context.write(buffer, 3, &[30, 40]).unwrap();
    lab.context.write(buffer, 9, &[90]).unwrap();
    let mut middle = [0; 4];
    lab.context.read(buffer, 2, &mut middle).unwrap();
    assert_eq!(middle, [2, 30, 40, 5]);
    assert_eq!(lab.bytes(buffer), [0, 1, 2, 30, 40, 5, 6, 7, 8, 90]);
}

pub fn filling(lab: &mut Lab) {
    let buffer = lab.upload(&[1_u8; 18]);
    lab.context.fill(buffer, 4, 8, 0x0403_0201).unwrap();
    assert_eq!(lab.bytes(buffer), [1, 1, 1, 1, 1, 2, 3, 4, 1, 2, 3, 4, 1, 1, 1, 1, 1, 1]);
    assert_eq!(refused(lab.context.fill(buffer, 2, 8, 0)), "fill: its offset, 2, is no multiple of 4");
    assert_eq!(refused(lab.context.fill(buffer, 4, 6, 0)), "fill: its length, 6, is no multiple of 4");
}

pub fn copying(lab: &mut Lab) {
    let bytes: Vec<u8> = (0..100).collect();
    let (from, to) = (lab.upload(&bytes), lab.upload(&[0_u8; 50]));
    lab.context.copy((to, 5), (from, 93), 7).unwrap();
    assert_eq!(lab.bytes(to)[4..13], [0, 93, 94, 95, 96, 97, 98, 99, 0]);
    // Both ways over itself: what arrives is what was there before.
    for (target, source) in [(10, 0), (0, 10), (20, 20)] {
        let buffer = lab.upload(&bytes);
        lab.context.copy((buffer, target), (buffer, source), 60).unwrap();
        let mut expected = bytes.clone();
        expected.copy_within(source as usize..source as usize + 60, target as usize);
        assert_eq!(lab.bytes(buffer), expected);
    }
}

/// In pieces, several at once, from another thread, given up, and after the device is closed.
pub fn read_while_it_changes(lab: &mut Lab) {
    let numbers: Vec<u32> = (0..2_700_000).collect();
    let mut expected = to_bytes(&numbers);
    let mut second = lab.fresh();
    let (large, small) = (second.upload(&numbers), second.upload(&[1_u8, 2, 3]));
    for round in 0..3 {
        let content = second.context.begin_read(large, vec![vec![9; round * 5]; round]).unwrap();
        let [little, unwanted] = [(); 2].map(|()| second.context.begin_read(small, Vec::new()).unwrap());
        let pattern = 0x0101_0101 * round as u32;
        second.context.fill(large, 0, expected.len() as u64, pattern).unwrap();
        drop(unwanted);
        assert_eq!((content.len(), little.len()), (expected.len() as u64, 3));
        let arrived = std::thread::spawn(move || content.whole().unwrap().into_owned()).join().unwrap();
        assert!(arrived == expected, "in round {round}");
        assert_eq!(little.whole().unwrap()[..], [1, 2, 3]);
        expected.fill(round as u8);
    }
    let content = second.context.begin_read(large, Vec::new()).unwrap();
    let none = second.context.allocate(0).unwrap();
    let nothing = second.context.begin_read(none, vec![vec![1]]).unwrap();
    second.context.finish_step().unwrap();
    drop(second);
    assert!(content.whole().unwrap()[..] == expected && nothing.is_empty());
    assert!(nothing.whole().unwrap().is_empty());
}

/// Large enough to come in several parts, whose memory is used again.
pub fn read_in_parts(lab: &mut Lab) {
    const PART: u64 = 128 << 20;
    let bytes = PART + 20;
    let buffer = lab.context.allocate(bytes).unwrap();
    lab.context.fill(buffer, 0, PART, 0x0706_0504).unwrap();
    lab.context.write(buffer, PART - 3, b"from part to part").unwrap();
    let expected = lab.bytes(buffer);
    let mut spare = Vec::new();
    for _ in 0..2 {
        let content = lab.context.begin_read(buffer, spare).unwrap();
        lab.context.fill(buffer, 0, bytes, 0).unwrap();
        let parts: Vec<_> = content.parts().map(Result::unwrap).collect();
        let (_, others) = parts.split_last().unwrap();
        assert!(
            others.iter().all(|part| part.len().is_multiple_of(CHUNK_BYTES)),
            "a checkpoint would have other chunks"
        );
        assert!(parts.concat() == expected);
        spare = content.into_memory();
        lab.context.write(buffer, 0, &expected).unwrap();
    }
}

pub fn nothing_is_fine(lab: &mut Lab) {
    let (none, some) = (lab.context.allocate(0).unwrap(), lab.upload(&[1_u8, 2, 3]));
    for (buffer, end) in [(none, 0), (some, 3)] {
        lab.context.write(buffer, end, &[]).unwrap();
        lab.context.read(buffer, end, &mut []).unwrap();
        lab.context.copy((buffer, end), (some, 3), 0).unwrap();
    }
    lab.context.fill(none, 0, 0, 9).unwrap();
    lab.context.fill(some, 0, 0, 9).unwrap();
    assert_eq!(lab.bytes(some), [1, 2, 3]);
    assert!(lab.bytes(none).is_empty());
}

pub fn out_of_range(lab: &mut Lab) {
    let buffer = lab.upload(&[5_u8; 16]);
    let context = &mut lab.context;
    let text = "write: 2 bytes from offset 15 on do not lie in a buffer of 16 bytes";
    assert_eq!(refused(context.write(buffer, 15, &[0, 0])), text);
    refused(context.read(buffer, 16, &mut [0]));
    refused(context.read(buffer, u64::MAX, &mut [0]));
    refused(context.read(buffer, 17, &mut []));
    refused(context.fill(buffer, 0, 20, 0));
    refused(context.fill(buffer, 4, u64::MAX - 3, 0));
    let other = context.allocate(8).unwrap();
    assert!(refused(context.copy((other, 0), (buffer, 0), 9)).starts_with("copy: the destination"));
    assert!(refused(context.copy((other, 0), (buffer, 12), 5)).starts_with("copy: the source"));
    assert_eq!(lab.bytes(buffer), [5; 16]);
}

pub fn after_dropping(lab: &mut Lab) {
    let (gone, there) = (lab.upload(&[1_u8; 8]), lab.upload(&[2_u8; 8]));
    lab.context.free(gone);
    lab.context.free(gone);
    let context = &mut lab.context;
    assert_eq!(refused(context.size(gone)), "the buffer was dropped");
    assert_eq!(refused(context.read(gone, 0, &mut [0])), "read: the buffer was dropped");
    refused(context.write(gone, 0, &[]));
    refused(context.fill(gone, 0, 4, 0));
    refused(context.copy((there, 0), (gone, 0), 1));
    refused(context.copy((gone, 0), (there, 0), 1));
    assert_eq!(lab.bytes(there), [2; 8]);
}

pub fn memory_runs_out(lab: &mut Lab) {
    let all = lab.context.facts().memory_bytes;
    let before = lab.upload(&[3_u8; 100]);
    for bytes in [all + 1, u64::MAX, u64::MAX - 4096] {
        assert!(out_of_memory(lab.context.allocate(bytes)).contains("were asked for"));
    }
    assert_eq!(lab.bytes(before), [3; 100]);
    lab.context.allocate(1 << 20).unwrap();
}
