//! How the Linux kernel allocates memory.

use super::check::Check;
use super::machine::Machine;

/// Whether the kernel gives huge pages to programs that do not ask for them.
pub fn huge_pages(machine: &dyn Machine) -> Check {
    const NAME: &str = "huge_pages";
    const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    const NONE: &str = "programs get no transparent huge pages for ordinary memory";
    match machine.facts().settings.transparent_hugepage.as_deref() {
        None => Check::ok(NAME, "no transparent huge pages in this Linux kernel", NONE),
        Some("always") => Check::limits(
            NAME,
            "transparent huge pages: always",
            "the Linux kernel gives huge pages only while physical memory is not fragmented, so page \
             faults and TLB misses vary between runs and nodes. If your production jobs also use `always`, do \
             not change this setting",
            format!(
                "echo madvise > /{ENABLED}\n# to keep madvise after a reboot, add \
                 transparent_hugepage=madvise to the Linux kernel's command line"
            ),
        ),
        Some("never") => Check::ok(NAME, "transparent huge pages: never", NONE),
        Some(other) => Check::ok(
            NAME,
            format!("transparent huge pages: {other}"),
            "programs get huge pages only if they request huge pages",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::machine::tests::Fake;
    use super::*;

    #[test]
    fn huge_pages_for_all_vary() {
        let with =
            |text: &str| huge_pages(&Fake::new().file("sys/kernel/mm/transparent_hugepage/enabled", text));
        let check = with("[always] madvise never\n");
        assert_eq!(check.status, Status::Limits);
        assert!(
            check.fix.unwrap().starts_with("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n")
        );
        for ok in ["always [madvise] never", "always madvise [never]", ""] {
            assert_eq!(with(ok).status, Status::Ok, "{ok}");
        }
    }
}
