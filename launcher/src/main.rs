//! `pmmpi`: starts a program, supervises it, and keeps what was measured. Links no MPI library.

#![cfg_attr(not(test), no_main)]

mod agent;
mod carrier;
mod command_line;
mod counting;
mod doctor;
mod elf;
mod environment;
mod host;
mod install;
mod launch;
mod list;
mod measure;
mod notices;
mod options;
mod out;
mod outside;
mod program;
mod repeat;
mod runner;
mod settings;
mod validate;
mod vendor;
mod work;

use options::Command;
use pmmpi::record::End;
use pmmpi_rounds::console::say;
use pmmpi_rounds::{Failure, process, signals};
use std::ffi::{c_char, c_int};

/// C's main, not Rust's: the workload is to inherit the descriptors and the signal dispositions that
/// this process was started with, and Rust's start-up changes both.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    signals::begin();
    process::occupy_standard_descriptors();
    match run() {
        Ok(end) => process::end_as(end),
        Err(failure) => {
            say(&failure);
            process::end_as(End::Exited(failure.code))
        }
    }
}

fn run() -> Result<End, Failure> {
    match command_line::parse() {
        Command::Run(typed) => measure::run(typed),
        Command::Repeat(typed) => repeat::run(&typed.validate()?),
        Command::Report { args } => install::exec_report("report", &args),
        Command::Export { args } => install::exec_report("export", &args),
        Command::List(typed) => list::run(&typed),
        Command::Bounds { args } => install::exec_report("bounds", &args),
        Command::Doctor(typed) => doctor::run(&typed).map(pmmpi::record::End::Exited),
        Command::Validate(typed) => validate::run(&typed).map(End::Exited),
    }
}
