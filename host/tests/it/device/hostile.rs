//! Kernels that mean harm: each ends in an error, and the host goes on.

use std::sync::Barrier;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use steadfast::device::{Argument, Backend, DeviceError, Launch, ModuleId};

use super::lab::{Lab, lost, ptx, refused};

const KERNELS: &str = "
.visible .entry nothing() {
    ret;
}
.visible .entry endless() {
again:
    bra again;
}
.visible .entry poke(.param .u64 to, .param .u64 offset) {
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [offset];
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], 7;
    ret;
}
.visible .entry half() {
    .reg .u32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra skip;
    bar.sync 0, 64;
skip:
    bar.sync 1, 64;
    ret;
}
.func (.reg .u32 %out) deeper(.reg .u32 %in) {
    .reg .u32 %r<3>;
    .reg .pred %p<2>;
    add.u32 %r1, %in, 1;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %out, %r1;
    @%p1 ret;
    call (%r2), deeper, (%r1);
    add.u32 %out, %r2, %r1;
    ret;
}
.visible .entry recursive(.param .u64 to) {
    .reg .u32 %r<3>;
    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, 1;
    call (%r2), deeper, (%r1);
    st.global.u32 [%rd1], %r2;
    ret;
}";

fn poke(lab: &mut Lab, base: Argument<'_>, offset: u64) -> Result<(), DeviceError> {
    let module = lab.module(KERNELS);
    lab.launch(module, "poke", 1, 1, &[base, Argument::Uint64(offset)])?;
    lab.context.finish_step()
}

pub fn wild_pointers(lab: &mut Lab) {
    let wild = [0, 8, 0x1000, 1 << 31, 1 << 40, 1 << 47, 1 << 63, u64::MAX - 2, u64::MAX - 100];
    for address in wild {
        let mut lab = lab.fresh();
        let text = lost(poke(&mut lab, Argument::Uint64(address), 0));
        assert!(text.contains("`poke`"), "{text}");
    }
    let beside = [65_536_u64, 0_u64.wrapping_sub(4), 1 << 33, 0_u64.wrapping_sub(1 << 33)];
    for offset in beside {
        let mut lab = lab.fresh();
        let buffer = lab.upload(&[1_u8; 65_536]);
        let outcome = poke(&mut lab, Argument::Buffer(buffer, 0), offset);
        // A GPU guards pages of megabytes: what lies just beside may be another buffer's, or nobody's.
        if outcome.is_err() || lab.context.facts().backend == Backend::Cpu {
            let text = lost(outcome);
            assert!(text.contains("`poke`"), "{text}");
        }
    }
    let freed = lab.upload(&[1_u8; 65_536]);
    lab.context.free(freed);
    refused(poke(lab, Argument::Buffer(freed, 0), 0));
}

pub fn own_parameters(lab: &mut Lab) {
    // Whether the text is refused, the kernel faults or nothing happens: the arguments of a launch are out of its reach.
    let text = ptx(".visible .entry over(.param .u64 to) {
    .reg .u64 %rd<3>;
    .reg .u32 %r<2>;
    mov.u64 %rd1, to;
    cvta.param.u64 %rd2, %rd1;
    st.u32 [%rd2], 7;
    ret;
}");
    let out = lab.upload(&[1_u32]);
    let Ok(module) = lab.context.load(&text) else { return };
    let outcome =
        lab.launch(module, "over", 1, 1, &[Argument::Buffer(out, 0)]).and_then(|()| lab.context.finish_step());
    assert!(matches!(outcome, Ok(()) | Err(DeviceError::Lost(_))), "{outcome:?}");
}

pub fn shared_memory_beyond_the_limit(lab: &mut Lab) {
    let large = ".visible .entry large() { .shared .align 4 .b8 s[49153]; ret; }";
    if let Ok(module) = lab.context.load(&ptx(large)) {
        assert!(refused(lab.launch(module, "large", 1, 1, &[])).contains("shared memory"));
    }
    let module = lab.module(
        ".extern .shared .align 4 .b8 s[];
.visible .entry beyond(.param .u32 at) {
    .reg .u32 %r<3>;
    .reg .u64 %rd<4>;
    ld.param.u32 %r1, [at];
    cvt.u64.u32 %rd1, %r1;
    mov.u64 %rd2, s;
    add.u64 %rd3, %rd2, %rd1;
    st.shared.u32 [%rd3], 7;
    ret;
}",
    );
    let mut at = |at| {
        let arguments = [Argument::Uint32(at)];
        let launch =
            Launch { entry: "beyond", grid: [1; 3], block: [1; 3], shared_bytes: 48 << 10, arguments: &arguments };
        lab.context.launch(module, &launch).and_then(|()| lab.context.finish_step())
    };
    at((48 << 10) - 4).unwrap();
    lost(at(1 << 20));
}

/// Launches while another thread tells the device to stop. Whether that is before the kernel runs or while it does, the answer is the same.
fn stopped(lab: &mut Lab, module: ModuleId, launch: &Launch<'_>) {
    let (stopper, ready) = (lab.context.stopper(), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ready.wait();
            std::thread::sleep(Duration::from_millis(30));
            stopper.stop();
        });
        ready.wait();
        let outcome = lab.context.launch(module, launch).and_then(|()| lab.context.finish_step());
        assert_eq!(outcome, Err(DeviceError::Stopped));
    });
    // What was half done is not to be trusted, also when nobody wishes to stop any more.
    lab.context.stopper().clear();
    lost(lab.context.finish_step());
}

pub fn endless(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    stopped(
        lab,
        module,
        &Launch { entry: "endless", grid: [7, 1, 1], block: [33, 1, 1], shared_bytes: 0, arguments: &[] },
    );
}

pub fn many_blocks(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    let grid = [i32::MAX as u32, 65_535, 65_535];
    stopped(lab, module, &Launch { entry: "nothing", grid, block: [1; 3], shared_bytes: 0, arguments: &[] });
}

pub fn a_barrier_that_half_skip(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    lab.launch(module, "half", 1, 64, &[]).unwrap();
    let stopper = lab.context.stopper();
    let waits_for_ever = lab.context.facts().backend == Backend::Cuda;
    std::thread::scope(|scope| {
        // Nothing on a GPU notices: there it is as endless as a loop.
        let (over, ended) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(Duration::from_secs(5)).is_err_and(|why| why == RecvTimeoutError::Timeout)
                && waits_for_ever
            {
                stopper.stop();
            }
        });
        match lab.context.finish_step() {
            Err(DeviceError::Stopped) if waits_for_ever => {}
            outcome => assert!(lost(outcome).contains("`half`")),
        }
        drop(over);
    });
}

pub fn deep_recursion(lab: &mut Lab) {
    let Ok(module) = lab.context.load(&ptx(KERNELS)) else { return };
    let out = lab.upload(&[0_u32]);
    lab.launch(module, "recursive", 1, 1, &[Argument::Buffer(out, 0)]).unwrap();
    assert!(lost(lab.context.finish_step()).contains("`recursive`"));
}

pub fn a_million_launches(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    for _ in 0..1_000_000 {
        lab.launch(module, "nothing", 1, 1, &[]).unwrap();
    }
    lab.context.finish_step().unwrap();
    lab.context.stopper().stop();
    assert_eq!(lab.launch(module, "nothing", 1, 1, &[]), Err(DeviceError::Stopped));
}

pub fn nul_bytes(lab: &mut Lab) {
    refused(lab.context.load("\0"));
    refused(lab.context.load(&ptx(".visible .entry f\0() { ret; }")));
    let module = lab.module(KERNELS);
    refused(lab.launch(module, "noth\0ing", 1, 1, &[]));
    refused(lab.context.read_variable(module, "\0", 0, &mut []));
}

pub fn a_hundred_megabytes(lab: &mut Lab) {
    refused(lab.context.load(&".".repeat(100 << 20)));
    let far = format!("{}{}.visible .entry f() {{ ret; }}", ptx(""), " \n".repeat(50 << 20));
    // Such a text is either too long or only long; it is never the end.
    if let Ok(module) = lab.context.load(&far) {
        lab.launch(module, "f", 1, 1, &[]).unwrap();
    }
    lab.context.finish_step().unwrap();
}
