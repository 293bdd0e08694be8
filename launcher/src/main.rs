//! `pmmpi`: starts a program, supervises it, and saves the measurement. It links no MPI library.

#![cfg_attr(not(test), no_main)]

mod cli;
mod doctor;
mod launch;
mod list;
mod own_files;
mod program;
mod repeat;
mod run;
mod screen;
mod stdout;
mod validate;
mod vendor_names;

use cli::command_line;
use cli::options::Command;
use pmmpi::record::End;
use pmmpi_workload::console::say;
use pmmpi_workload::{Failure, process, signals};
use std::ffi::{c_char, c_int};

/// C's main, not Rust's: the workload must inherit the descriptors and signal dispositions that this process
/// inherited. Rust's start-up changes both.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    signals::begin();
    process::occupy_standard_descriptors();
    match command() {
        Ok(end) => process::end_as(end),
        Err(failure) => {
            say(&failure);
            process::end_as(End::Exited(failure.code))
        }
    }
}

fn command() -> Result<End, Failure> {
    match command_line::parse() {
        Command::Run(typed) => run::run(typed),
        Command::Screen(typed) => screen::run(*typed),
        Command::ScreenAct(typed) => screen::run_act(&typed),
        Command::ScreenKernel(typed) => screen::run_kernel(&typed),
        Command::Repeat(typed) => repeat::run(&typed.validate()?),
        Command::Report { args } => own_files::exec_report("report", &args),
        Command::Compare { args } => own_files::exec_report("compare", &args),
        Command::Export { args } => own_files::exec_report("export", &args),
        Command::Show { args } => own_files::exec_report("show", &args),
        Command::Diff { args } => own_files::exec_report("diff", &args),
        Command::List(typed) => list::run(&typed),
        Command::Bounds { args } => own_files::exec_report("bounds", &args),
        Command::Doctor(typed) => doctor::run(&typed).map(End::Exited),
        Command::Validate(typed) => validate::run(&typed).map(End::Exited),
    }
}
