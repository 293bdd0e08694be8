//! Links the stack unwinder statically, so that the agent needs only libc at load time.
//!
//! Rust's standard library asks for libgcc_s.so. A program that brings another one, or none, must not
//! notice that it is measured, so the name is answered by a linker script that takes the static form.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("libgcc_s.so"), "INPUT ( -lgcc_eh )\n").expect("OUT_DIR can be written");
    println!("cargo::rustc-link-search=native={}", out.display());
}
