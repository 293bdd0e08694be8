//! Completions of all commands for bash, zsh and fish.

use crate::launcher::SCREEN_KERNELS;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::{Generator, Shell, generate};
use pmmpi::node::FACTS;
use pmmpi_events::metrics::catalogue;
use std::path::Path;

/// Keys of a class beside the facts of a node. A label can be a key, too.
const CLASS_KEYS: [&str; 9] =
    ["cpu", "microcode", "memory", "kernel", "command", "ranks", "labels", "class", "none"];

/// Prints the words that the list $1 can have next: each word once, and `none` only alone.
const NEXT_WORDS_BASH: &str = r#"
_pmmpi_next_words() {
    local last="${1##*,}" word
    local before="${1%"$last"}"
    shift
    for word in "$@"; do
        case ",$before" in *",$word,"*) continue ;; esac
        if [[ $word == none && -n $before ]]; then continue; fi
        if [[ $word == "$last"* ]]; then printf '%s\n' "$before$word"; fi
    done
}
"#;
/// The same for the token at the cursor. fish itself compares the beginnings.
const NEXT_WORDS_FISH: &str = r#"
function __fish_pmmpi_next_words
    set -l before (commandline -tc | string replace -r -- '^--?[^=,]*=' '' | string replace -rf -- '^(.*,)[^,]*$' '$1')
    set -l used (string split , -- "$before")
    for word in $argv
        contains -- $word $used; and continue
        test -n "$before"; and test $word = none; and continue
        echo "$before$word"
    end
end
"#;

/// The same for zsh, which itself leaves out earlier words of a list.
const NEXT_WORDS_ZSH: &str = r#"
_pmmpi_next_words() {
    if [[ $IPREFIX == *, ]]; then compadd "${@:#none}"; else compadd "$@"; fi
}
"#;

/// Writes one file for each shell into `folder`. The commands of `report` take the place of those that `launcher`
/// passes on to it.
pub fn write(folder: &Path, launcher: Command, report: Command) -> std::io::Result<()> {
    let all = all_commands(launcher, report);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        std::fs::write(folder.join(shell.file_name("pmmpi")), text(shell, &all))?;
    }
    Ok(())
}

fn all_commands(launcher: Command, report: Command) -> Command {
    let mut all = with_values(launcher).mut_subcommands(with_values);
    for command in report.get_subcommands().filter(|command| !command.is_hide_set()) {
        all = all.mut_subcommand(command.get_name(), |_| with_values(command.clone()));
    }
    all
}

/// With the names that options take as words: a shell offers them.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| match values(&name, arg.get_id().as_str()) {
            Some(values) => arg.value_parser(PossibleValuesParser::new(values)),
            None if is_list(&arg) => without_descriptions(arg),
            None => arg,
        })
        // This option splits its value itself.
        .mut_args(|arg| if arg.get_id() == "class_by" { arg.value_delimiter(',') } else { arg })
}

/// True for an option that takes several words, separated by commas.
fn is_list(arg: &Arg) -> bool {
    arg.get_value_delimiter() == Some(',')
}

/// A shell shows no descriptions of words behind a comma.
fn without_descriptions(arg: Arg) -> Arg {
    let values = arg.get_possible_values();
    if values.is_empty() {
        return arg;
    }
    let names = values.into_iter().map(|value| value.help(None::<&'static str>));
    arg.value_parser(PossibleValuesParser::new(names))
}

/// The values of an option whose type does not know them.
fn values(command: &str, option: &str) -> Option<Vec<&'static str>> {
    match (command, option) {
        (_, "group" | "groups") => Some(catalogue().groups.iter().map(|group| group.name.as_str()).collect()),
        // `screen` has kernels of its own.
        ("screen", "kernels") => Some(SCREEN_KERNELS.iter().map(|(name, ..)| *name).collect()),
        (_, "kernels") => Some(pmmpi_kernels::all().iter().map(|kernel| kernel.name).collect()),
        // Without a percentage, `slower` and `faster` mean any size.
        ("compare", "fail_on") => Some(vec!["different", "slower", "faster"]),
        (_, "class_by") => Some(CLASS_KEYS.into_iter().chain(FACTS.iter().map(|(name, _)| *name)).collect()),
        _ => None,
    }
}

/// The completions for one shell.
fn text(shell: Shell, all: &Command) -> String {
    let mut offered = offered(shell, all);
    let mut text = Vec::new();
    generate(shell, &mut offered, "pmmpi", &mut text);
    let text = with_lists(shell, &String::from_utf8_lossy(&text), &offered);
    match shell {
        Shell::Zsh => {
            with_programs(&text).replacen("\nautoload ", &format!("{NEXT_WORDS_ZSH}\nautoload "), 1)
        }
        Shell::Fish => with_unfinished_options(&text) + &positional_values(&offered) + NEXT_WORDS_FISH,
        Shell::Bash => text + NEXT_WORDS_BASH,
        _ => text,
    }
}

/// With the values of lists also behind a comma: clap's text offers only the first word of a list.
fn with_lists(shell: Shell, text: &str, offered: &Command) -> String {
    let commands = std::iter::once(offered).chain(offered.get_subcommands());
    let lists = commands.flat_map(|command| command.get_arguments().filter(|arg| is_list(arg)));
    lists.fold(text.to_owned(), |text, list| {
        let values = list.get_possible_values();
        let names: Vec<&str> =
            values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
        let words = names.join(" ");
        match shell {
            Shell::Bash => text.replace(
                &format!(r#"compgen -W "{words}" -- "${{cur}}""#),
                &format!(r#"_pmmpi_next_words "${{cur}}" {words}"#),
            ),
            Shell::Zsh => {
                text.replace(&format!(":({words})'"), &format!(":_sequence _pmmpi_next_words - {words}'"))
            }
            Shell::Fish => {
                let lines: Vec<String> = names.iter().map(|name| format!("{name}\\t''")).collect();
                text.replace(
                    &format!("-a \"{}\"", lines.join("\n")),
                    &format!("-a \"(__fish_pmmpi_next_words {words})\""),
                )
            }
            _ => text,
        }
    })
}

/// With values of options before the first word: `pmmpi --group <Tab>`. There, clap's text for fish refuses the
/// command line, because the option has no value yet.
fn with_unfinished_options(fish: &str) -> String {
    const PARSE: &str = "    argparse -s (__fish_pmmpi_global_optspecs) -- $cmd 2>/dev/null\n";
    let with_value = PARSE.replace("argparse", "or argparse").replace("$cmd", "$cmd ''");
    fish.replacen(PARSE, &format!("{PARSE}{with_value}"), 1)
}

/// The same command without options and commands that help does not show.
fn offered(shell: Shell, command: &Command) -> Command {
    // In zsh, PROGRAM before the commands would take the place of the command: see `with_programs`.
    let has_positionals = shell != Shell::Zsh || !command.has_subcommands();
    let is_offered = |arg: &&Arg| if arg.is_positional() { has_positionals } else { !arg.is_hide_set() };
    // `run` is hidden only because its row does not fit in the help.
    let commands = command.get_subcommands().filter(|sub| !sub.is_hide_set() || sub.get_name() == "run");
    let name: &'static str = Box::leak(command.get_name().into()); // this program ends at once
    Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .args(command.get_arguments().filter(is_offered).cloned())
        .subcommands(commands.map(|sub| offered(shell, sub)))
}

/// With files where clap's text for zsh offers only commands: the first word can also be a program, and the words
/// after a program are its arguments.
fn with_programs(zsh: &str) -> String {
    zsh.replacen(r#"":: :_pmmpi_commands""#, r#"":: :{_pmmpi_commands; _files}""#, 1).replacen(
        "\n        esac\n    ;;\nesac",
        "\n(*)\n_files\n;;\n        esac\n    ;;\nesac",
        1,
    )
}

/// Lines for fish, for which clap offers only the values of options: the values of positional arguments.
fn positional_values(offered: &Command) -> String {
    let mut lines = String::new();
    for command in offered.get_subcommands() {
        for value in command.get_positionals().flat_map(Arg::get_possible_values) {
            let (command, value) = (command.get_name(), value.get_name());
            let condition = format!("__fish_pmmpi_using_subcommand {command}");
            lines += &format!("complete -c pmmpi -n \"{condition}\" -f -a \"{value}\"\n");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn of(shell: Shell) -> String {
        text(shell, &all_commands(crate::launcher::Options::command(), crate::report::Options::command()))
    }

    #[test]
    fn no_shell_offers_a_hidden_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = of(shell);
            for hidden in ["screen-kernel", "screen-act", "never"] {
                assert!(!text.contains(hidden), "{shell}: {hidden}");
            }
            assert!(text.contains("validate") && text.contains("run"), "{shell}");
        }
    }

    #[test]
    fn zsh_offers_commands_and_programs_as_the_first_word() {
        let text = of(Shell::Zsh);
        let (root, commands) = text.split_once("case $state in").unwrap();
        assert!(!root.contains("argv"), "{root}");
        assert!(root.contains(r#"":: :{_pmmpi_commands; _files}""#), "{root}");
        assert!(
            commands.contains("case $line[1] in") && commands.contains("\n(*)\n_files\n;;\n"),
            "{commands}"
        );
    }

    #[test]
    fn shells_offer_the_values_of_lists() {
        let groups: Vec<&str> = catalogue().groups.iter().map(|group| group.name.as_str()).collect();
        let kernels: Vec<&str> = SCREEN_KERNELS.iter().map(|(name, ..)| *name).collect();
        let (groups, kernels) = (groups.as_slice(), kernels.as_slice());
        let fail_on = &["different", "slower", "faster"][..];
        let (bash, zsh, fish) = (of(Shell::Bash), of(Shell::Zsh), of(Shell::Fish));
        for (command, option, values) in
            [("screen", "kernels", kernels), ("repeat", "groups", groups), ("compare", "fail-on", fail_on)]
        {
            let words = values.join(" ");
            let case = bash.split_once(&format!("pmmpi__subcmd__{command})\n            opts=")).unwrap().1;
            let case = case.split_once(&format!("--{option})\n")).unwrap().1;
            let first = case.lines().next().unwrap();
            assert!(
                first.contains(&format!("_pmmpi_next_words \"${{cur}}\" {words})")),
                "bash: {command}: {first}"
            );

            let case = zsh.split_once(&format!("({command})\n_arguments")).unwrap().1;
            let line = case.lines().find(|line| line.contains(&format!("--{option}=["))).unwrap();
            assert!(line.contains(&format!(":_sequence _pmmpi_next_words - {words}'")), "zsh: {line}");

            let (condition, option) = (format!("subcommand {command}\""), format!(" -l {option} "));
            let mut lines = fish.split("complete -c pmmpi");
            let line = lines.find(|line| line.contains(&condition) && line.contains(&option)).unwrap();
            assert!(line.contains(&format!("-a \"(__fish_pmmpi_next_words {words})\"")), "fish: {line}");
        }
    }

    /// Asks bash itself.
    #[test]
    fn bash_offers_values_behind_a_comma() {
        let script = of(Shell::Bash);
        let offers = |words: &str| {
            let ask = format!(
                "{script}\nCOMP_WORDS=(pmmpi {words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
                 _pmmpi pmmpi \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"\necho \"${{COMPREPLY[*]}}\""
            );
            let output = std::process::Command::new("bash").args(["-c", &ask]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
        };
        for (words, offered) in [
            ("screen --kernels tr", "triad"),
            ("screen --kernels triad,d", "triad,dgemm triad,disk"),
            ("screen --kernels triad,dgemm,d", "triad,dgemm,disk"),
            ("screen --fail-on slow,mo", "slow,moved"),
            ("report --class-by non", "none"),
            ("report --class-by cpu,non", ""),
            ("report --class-by cpu,mem", "cpu,memory cpu,memory_policy"),
            ("--group cache,tl", "cache,tlb"),
            ("doctor --fail-on li", "limits"),
            ("doctor --fail-on limits,", ""),
        ] {
            assert_eq!(offers(words), offered, "{words}");
        }
    }

    #[test]
    fn fish_offers_the_value_of_an_option_before_the_first_word() {
        let text = of(Shell::Fish);
        let condition = text.split_once("function __fish_pmmpi_needs_command").unwrap().1;
        let condition = condition.split_once("or return").unwrap().0;
        assert!(
            condition.contains("or argparse -s (__fish_pmmpi_global_optspecs) -- $cmd ''"),
            "{condition}"
        );
    }

    #[test]
    fn fish_offers_what_list_can_list() {
        let text = of(Shell::Fish);
        for what in ["events", "groups", "metrics", "kernels"] {
            assert!(text.contains(&format!("using_subcommand list\" -f -a \"{what}\"")), "{what}");
        }
    }
}
