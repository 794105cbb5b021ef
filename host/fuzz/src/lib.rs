//! Fuzz targets for everything that Steadfast reads from outside.
//!
//! | target | what an input is | what must hold |
//! |---|---|---|
//! | [`checkpoint`] | a checkpoint file, read as it is and with its hashes made right | no panic, bounded memory, valid files read back |
//! | [`store`] | a task's folder: claims, records, checkpoints, segments | the same decision twice, step 0 only where there is no work |
//! | [`job`] | a job's file, a configuration, options, an engine's variables | what is accepted reads back as the same |
//! | [`plugin`] | a module of `wasm-smith` made a component, or any bytes as a plugin's file | a guest's trap is an error with a message |
//! | [`ptx`] | the text of a PTX module | no panic, an error that points into the text, a module that agrees with itself |
//!
//! A target is a function here and a program of a few lines in `targets/`. `cargo xtask fuzz` builds the programs with
//! instrumentation (`instrument.sh`) and runs them; the tests here run the seeds (`seeds/`) without.

#![expect(clippy::expect_used, reason = "a fuzz target says by a panic what it found")]

pub mod checkpoint;
pub mod job;
pub mod meter_unsafe;
pub mod plugin;
pub mod ptx;
pub mod store;

/// Hands every committed seed of a target to `check`, with its name.
#[cfg(test)]
fn each_seed(target: &str, mut check: impl FnMut(&str, &[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("every target has seeds")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let bytes = std::fs::read(&path).expect("a seed can be read");
        check(&path.file_name().unwrap_or_default().to_string_lossy(), &bytes);
    }
}

/// Writes the seeds that a program has to make: `cargo test -p steadfast-fuzz -- --ignored`, after a change of the format.
#[cfg(test)]
mod seeds {
    use std::fs;
    use std::path::Path;

    use steadfast::checkpoint::format::{Compression, SectionKind, SectionRef, encode};

    fn write(target: &str, name: &str, bytes: &[u8]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target).join(name);
        fs::write(path, bytes).expect("a seed can be written");
    }

    fn checkpoint(sections: &[(SectionKind, &str, &[u8])], metadata: &[u8]) -> Vec<u8> {
        let sections: Vec<_> =
            sections.iter().map(|(kind, name, bytes)| SectionRef { kind: *kind, name, bytes }).collect();
        let mut file = Vec::new();
        encode(&mut file, &sections, metadata, Compression::default()).expect("the sections are in order");
        file
    }

    #[test]
    #[ignore = "writes files"]
    fn write_seeds() {
        let mut noise = [0; 60];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        let many: Vec<String> = (0..9).map(|number| format!("s{number}")).collect();
        let many: Vec<_> = many.iter().map(|name| (SectionKind::State, name.as_str(), &noise[..4])).collect();
        let golden = include_bytes!("../../tests/data/format-1.ckpt");
        write("checkpoint", "golden", golden);
        write("checkpoint", "empty", &checkpoint(&[], b""));
        write("checkpoint", "raw", &checkpoint(&[(SectionKind::State, "noise", &noise)], b"{}"));
        write("checkpoint", "packed", &checkpoint(&[(SectionKind::Memory, "zeros", &[0; 3000])], b"{\"a\":1}"));
        write("checkpoint", "many", &checkpoint(&many, b"null"));
        // What a host wrote, so that it is loaded too.
        let metadata = br#"{"host_version":"0.1.0","made":"","job":"job","task_index":0,"task_count":1,"lineage":"e0001-0000000a","tenure":"e0001-0000000a","next_step":5,"finished":null,"progress":{"done":5,"total":10},"plugin":{"name":"p","digest":"sha256:00","state_version":1},"config":"{}","input":null,"seed":7,"random":{"secure":{"words":0},"insecure":{"words":0}},"device":"cpu","elapsed_ms":5,"outputs":{"folders":["a"],"files":{"a/b":{"bytes":0,"ranges":[]}},"metrics":null}}"#;
        write("checkpoint", "of-a-job", &checkpoint(&[(SectionKind::State, "n", &noise[..8])], metadata));
        // Two chunks, small where they are stored.
        write(
            "checkpoint",
            "two-chunks",
            &checkpoint(&[(SectionKind::Buffer, "zeros", &vec![0; (1 << 20) + 5])], b"[]"),
        );
        let component = crate::plugin::component_of(&[]).expect("an empty input makes a component");
        write("plugin_bytes", "component", &component);
        let component = crate::plugin::component_of(&noise.repeat(4)).expect("so does noise");
        write("plugin_bytes", "component-with-bodies", &component);
    }
}
