#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;

const SIZE: u64 = 100;
const ALIVE: BufferId = BufferId(1);

fn parameter(name: &str, element: Type, offset: u32) -> Parameter {
    let bytes = element.bytes();
    Parameter { name: name.into(), element, align: bytes, bytes, offset, array: false, register: None }
}

/// `saxpy(.u32 n, .f32 a, .u64 x, .b8 extra[12])`
fn saxpy() -> EntryFacts {
    let extra = Parameter { align: 4, bytes: 12, array: true, ..parameter("extra", Type::B8, 16) };
    let parameters =
        vec![parameter("n", Type::U32, 0), parameter("a", Type::F32, 4), parameter("x", Type::U64, 8), extra];
    EntryFacts { parameters, static_shared: 1000, max_threads: None, required_threads: None }
}

const GOOD: [Argument<'static>; 4] =
    [Argument::Int32(7), Argument::Float32(1.5), Argument::Buffer(ALIVE, 4), Argument::Bytes(&[9; 12])];

fn launch<'a>(arguments: &'a [Argument<'a>]) -> Launch<'a> {
    Launch { entry: "saxpy", grid: [1, 1, 1], block: [32, 1, 1], shared_bytes: 0, arguments }
}

fn validate(entry: &EntryFacts, launch: &Launch<'_>) -> Result<ValidatedLaunch> {
    ValidatedLaunch::new(ModuleId(1), Some(entry), launch, |buffer| (buffer == ALIVE).then_some(SIZE))
}

fn refusal(entry: &EntryFacts, launch: &Launch<'_>) -> String {
    let DeviceError::InvalidArgument(text) = validate(entry, launch).unwrap_err() else { panic!("another kind") };
    text
}

#[test]
fn a_good_launch_is_laid_out_as_the_entry_says() {
    let validated = validate(&saxpy(), &launch(&GOOD)).unwrap();
    assert_eq!(validated.offsets(), [0, 4, 8, 16]);
    assert_eq!(validated.buffers(), [BufferArgument { at: 8, buffer: ALIVE, offset: 4 }]);
    let mut block = vec![7, 0, 0, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0];
    block.extend([9; 12]);
    assert_eq!(validated.parameters(), block);
}

#[test]
fn an_unparsed_entry_takes_arguments_at_their_own_alignment() {
    let validated = ValidatedLaunch::new(ModuleId(1), None, &launch(&GOOD), |_| Some(SIZE)).unwrap();
    assert_eq!(validated.offsets(), [0, 4, 8, 16]);
    assert_eq!(validated.parameters().len(), 28);
}

#[test]
fn wrong_arguments_are_named_by_number_and_type() {
    let with = |index: usize, argument| {
        let mut arguments = GOOD;
        arguments[index] = argument;
        refusal(&saxpy(), &launch(&arguments))
    };
    insta::assert_snapshot!(
        [
            with(1, Argument::Buffer(ALIVE, 0)),
            with(0, Argument::Float32(1.0)),
            with(0, Argument::Uint64(1)),
            with(2, Argument::Int32(1)),
            with(3, Argument::Bytes(&[0; 11])),
            with(3, Argument::Uint32(1)),
            with(1, Argument::Bytes(&[0; 8])),
            with(2, Argument::Buffer(ALIVE, SIZE + 1)),
            with(2, Argument::Buffer(BufferId(2), 0)),
            refusal(&saxpy(), &launch(&GOOD[..1])),
            refusal(&saxpy(), &launch(&[])),
            refusal(&EntryFacts { parameters: vec![parameter("n", Type::U32, 0)], ..saxpy() }, &launch(&GOOD)),
        ]
        .join("\n"),
        @r"
        argument 2 of `saxpy` is a buffer, but the kernel takes .f32
        argument 1 of `saxpy` is a float32, but the kernel takes .u32
        argument 1 of `saxpy` is a uint64, but the kernel takes .u32
        argument 3 of `saxpy` is an int32, but the kernel takes .u64
        argument 4 of `saxpy` is 11 bytes, but the kernel takes a structure of 12 bytes
        argument 4 of `saxpy` is a uint32, but the kernel takes a structure of 12 bytes
        argument 2 of `saxpy` is 8 bytes, but the kernel takes .f32
        argument 3 of `saxpy` is offset 101 of a buffer of 100 bytes
        argument 3 of `saxpy` is a buffer that was dropped
        `saxpy` takes 4 arguments, and 1 was given
        `saxpy` takes 4 arguments, and 0 were given
        `saxpy` takes 1 argument, and 4 were given
        "
    );
}

#[test]
fn wrong_shapes_are_refused() {
    let shape = |grid, block, shared_bytes| refusal(&saxpy(), &Launch { grid, block, shared_bytes, ..launch(&GOOD) });
    let limited = EntryFacts { max_threads: Some([64, 2, 1]), required_threads: None, ..saxpy() };
    let exact = EntryFacts { max_threads: Some([64, 2, 1]), required_threads: Some([64, 2, 1]), ..saxpy() };
    let block = |entry: &EntryFacts, block| refusal(entry, &Launch { block, ..launch(&GOOD) });
    insta::assert_snapshot!(
        [
            shape([0, 1, 1], [1, 1, 1], 0),
            shape([1 << 31, 1, 1], [1, 1, 1], 0),
            shape([1, 65_536, 1], [1, 1, 1], 0),
            shape([1, 1, 1], [1, 0, 1], 0),
            shape([1, 1, 1], [1025, 1, 1], 0),
            shape([1, 1, 1], [1, 1, 65], 0),
            shape([1, 1, 1], [1024, 2, 1], 0),
            shape([1, 1, 1], [1, 1, 1], 48 << 10),
            shape([1, 1, 1], [1, 1, 1], u32::MAX),
            block(&limited, [129, 1, 1]),
            block(&exact, [128, 1, 1]),
        ]
        .join("\n"),
        @r"
        launch of `saxpy`: grid.x is 0; launch nothing instead
        launch of `saxpy`: grid.x is 2147483648, and 2147483647 is the most
        launch of `saxpy`: grid.y is 65536, and 65535 is the most
        launch of `saxpy`: block.y is 0; launch nothing instead
        launch of `saxpy`: block.x is 1025, and 1024 is the most
        launch of `saxpy`: block.z is 65, and 64 is the most
        launch of `saxpy`: a block of 1024 × 2 × 1 has 2048 threads, and 1024 is the most
        launch of `saxpy`: 1000 bytes of static and 49152 of dynamic shared memory are more than the 49152 that a block may have
        launch of `saxpy`: 1000 bytes of static and 4294967295 of dynamic shared memory are more than the 49152 that a block may have
        launch of `saxpy`: the block is 129 × 1 × 1, and the kernel says .maxntid 64, 2, 1
        launch of `saxpy`: the block is 128 × 1 × 1, and the kernel says .reqntid 64, 2, 1
        "
    );
}

#[test]
fn the_limits_themselves_are_fine() {
    let most = [([i32::MAX as u32, 65_535, 65_535], [16, 1, 64]), ([1, 1, 1], [1024, 1, 1]), ([1, 1, 1], [1, 1024, 1])];
    for (grid, block) in most {
        validate(&saxpy(), &Launch { grid, block, shared_bytes: (48 << 10) - 1008, ..launch(&GOOD) }).unwrap();
    }
    // `.maxntid` counts threads, whatever their axes; the end of a buffer is an address too.
    let limited = EntryFacts { max_threads: Some([64, 2, 1]), ..saxpy() };
    let end = [GOOD[0], GOOD[1], Argument::Buffer(ALIVE, SIZE), GOOD[3]];
    validate(&limited, &Launch { block: [128, 1, 1], ..launch(&end) }).unwrap();
}
