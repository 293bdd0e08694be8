//! The kernels that `pmmpi screen` runs, with their options.

use super::kernel::{self, Size};
use crate::cli::options::{KernelArgs, ScreenArgs, StoresArg};
pub use crate::cli::options::{NET, SCREEN_KERNELS as KERNELS};
use pmmpi_workload::Failure;
use std::ffi::OsString;

const DEFAULT: [&str; 4] = ["triad", "dgemm", "latency", "spin"];

/// The kernels of the command line, each once, with the options for [`kernel::run`].
pub fn with_options(typed: &ScreenArgs) -> Result<Vec<(&'static str, Vec<OsString>)>, Failure> {
    let mut names: Vec<&'static str> = Vec::new();
    for typed in &typed.kernels {
        let known = KERNELS.iter().map(|(name, ..)| *name).find(|name| name == typed);
        let name = known.ok_or_else(|| unknown(typed))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.extend(DEFAULT);
        names.extend(typed.disk.is_some().then_some("disk"));
    }
    if typed.disk.is_some() != names.contains(&"disk") {
        return Err(Failure::usage(match typed.disk {
            Some(_) => "--disk needs the kernel `disk`: add `disk` to --kernels",
            None => "the kernel `disk` writes a file: name its folder with --disk DIR",
        }));
    }
    if typed.blas.is_some() && !names.contains(&"dgemm") {
        return Err(Failure::usage(
            "--blas has no effect without the kernel `dgemm`: add `dgemm` to --kernels",
        ));
    }
    if let Some(text) = &typed.memory {
        Size::parse(text).ok_or_else(|| {
            Failure::usage(format_args!(
                "--memory {text}: expected a share of the node's memory or a size, such as 85% or 2G"
            ))
        })?;
    }
    names.into_iter().map(|name| Ok((name, options(name, typed)?))).collect()
}

fn options(name: &str, typed: &ScreenArgs) -> Result<Vec<OsString>, Failure> {
    let mut options: Vec<OsString> = Vec::new();
    if let (Some(memory), "triad" | "latency") = (&typed.memory, name) {
        options.extend(["--memory".into(), memory.into()]);
    }
    match name {
        "triad" if typed.stores == StoresArg::NonTemporal => {
            options.extend(["--stores".into(), "non-temporal".into()]);
        }
        "dgemm" => {
            if let Some(blas) = &typed.blas {
                kernel::check_blas(blas)?;
                options.extend([KernelArgs::BLAS.into(), blas.into()]);
            }
        }
        "disk" => options.extend(typed.disk.iter().flat_map(|folder| ["--disk".into(), folder.into()])),
        _ => {}
    }
    Ok(options)
}

fn unknown(name: &str) -> Failure {
    let names = KERNELS.map(|(name, ..)| name).join(", ");
    Failure::usage(match name {
        "" => format!("--kernels: no kernel is named; choose from {names}"),
        _ => format!("--kernels {name}: unknown kernel; the kernels are {names}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        screen: ScreenArgs,
    }

    fn typed(words: &[&str]) -> Result<Vec<(&'static str, Vec<OsString>)>, String> {
        let typed = Typed::try_parse_from(["screen"].iter().chain(words)).unwrap();
        with_options(&typed.screen).map_err(|failure| failure.message)
    }

    #[test]
    fn each_kernel_runs_once_and_gets_its_own_options() {
        let names =
            |words: &[&str]| typed(words).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&[]), DEFAULT);
        assert_eq!(names(&["--kernels", "fma,triad,fma,net"]), ["fma", "triad", "net"]);
        assert_eq!(names(&["--disk", "/tmp"]), ["triad", "dgemm", "latency", "spin", "disk"]);
        let with = typed(&["--kernels", "triad,spin", "--memory", "1G", "--stores", "non-temporal"]).unwrap();
        assert_eq!(with[0].1, ["--memory", "1G", "--stores", "non-temporal"]);
        assert!(with[1].1.is_empty());
    }

    #[test]
    fn what_cannot_run_is_refused() {
        for (words, told) in [
            (&["--kernels", "stream"][..], "triad, dgemm"),
            (&["--kernels", ""], "--kernels: no kernel is named; choose from triad, dgemm"),
            (&["--kernels", "disk"], "--disk DIR"),
            (&["--kernels", "triad", "--disk", "/tmp"], "add `disk` to --kernels"),
            (&["--kernels", "triad", "--blas", "/tmp/libblas.so"], "--blas has no effect"),
            (&["--memory", "0"], "--memory 0"),
            (&["--memory", "101%"], "such as 85%"),
        ] {
            let error = typed(words).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
