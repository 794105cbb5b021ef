//! Launches a kernel that misbehaves: `{"in": "step", "at": 7, "how": "fault"}`.

use serde::Deserialize;
use steadfast_guest::device::{Buffer, Module};
use steadfast_guest::{Result, plugin};
use test_guests::{Trouble, Troubled};

const PTX: &str = "
.version 8.2
.target sm_75
.address_size 64
.visible .entry wild(.param .u64 values) {
    .reg .b64 %values;
    ld.param.u64 %values, [values];
    add.u64 %values, %values, 0x7fffffff0000;
    st.global.u32 [%values], 1;
    ret;
}
.visible .entry endless(.param .u64 values) {
    .reg .b64 %values;
    .reg .b32 %count;
    ld.param.u64 %values, [values];
AGAIN:
    ld.volatile.global.u32 %count, [%values];
    add.u32 %count, %count, 1;
    st.volatile.global.u32 [%values], %count;
    bra AGAIN;
}";

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// Writes far beyond its buffer. The guest goes on as if nothing were wrong.
    #[default]
    Fault,
    /// The same, and the guest makes an error of its own of what a read answers.
    FaultAndRead,
    /// Never ends.
    Endless,
}

#[derive(Deserialize)]
struct BadKernel {
    #[serde(default)]
    how: How,
}

impl Trouble for BadKernel {
    type Options = Self;

    fn strike(options: &Self) -> Result<()> {
        let (module, values) = (Module::from_ptx(PTX)?, Buffer::<u32>::scratch(1)?);
        let endless = matches!(options.how, How::Endless);
        if endless {
            println!("a kernel goes round for ever");
        }
        let entry = if endless { "endless" } else { "wild" };
        module.kernel(entry).arg(&values).launch()?;
        if matches!(options.how, How::FaultAndRead) {
            values.read()?;
        }
        Ok(())
    }
}

plugin!(Troubled<BadKernel>);
