#!/bin/sh
# Stands between cargo and the compiler (RUSTC_WORKSPACE_WRAPPER) and has the code instrumented that is to be fuzzed.
#
# Cargo puts it before the compiler of this workspace's packages alone, so wasmtime and all other dependencies are those of
# an ordinary build, and it keeps what was compiled through it apart from what was not. The stable compiler knows the passes
# of LLVM, if not the option that cargo-fuzz uses: these flags give libFuzzer its counters, its table of places, and what
# is compared with what. Assertions for debugging are on, since a fuzzer looks for what must not be. Little is
# optimised: that builds in half the time, and code that was not merged has more places to be counted. Cargo does not see when
# this file changes: touch host/src/lib.rs then.
set -eu

case " $* " in
*" --crate-name steadfast "* | *" --crate-name steadfast_ptx "* | *" --crate-name steadfast_fuzz "* | *" --crate-name fuzz_"*)
	set -- "$@" --cfg fuzzing -Cdebug-assertions=on -Ccodegen-units=16 -Copt-level=1 \
		-Cpasses=sancov-module \
		-Cllvm-args=-sanitizer-coverage-level=4 \
		-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
		-Cllvm-args=-sanitizer-coverage-pc-table \
		-Cllvm-args=-sanitizer-coverage-trace-compares
	;;
esac
exec "$@"
