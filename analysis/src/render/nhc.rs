//! Lines for the configuration of the LBNL Node Health Check (NHC, <https://github.com/mej/nhc>): `HOST || CHECK`. NHC runs
//! the check on the hosts that the first part matches. Here this is one host name: NHC compares it with the host's own name,
//! whatever Slurm calls the node. The check `die 1 "..."` fails, so NHC marks the node with this text.

/// The line with which a host fails, for this reason.
pub fn line(host: &str, reason: &str) -> String {
    // NHC evaluates the text twice, as shell text and in single quotes.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,:+-%()_/@".contains(c);
    let reason: String = reason.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{host} || die 1 \"{reason}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_text_and_no_command() {
        assert_eq!(
            line("n1.cluster", "pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261127T0119.5Z-8f"),
            "n1.cluster || die 1 \"pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261127T0119.5Z-8f\""
        );
        let odd = "a\"b'c`d$(e)|f\\g\nh=i *?[é]";
        assert_eq!(line("n1", odd), "n1 || die 1 \"a_b_c_d_(e)_f_g_h_i _____\"");
    }
}
