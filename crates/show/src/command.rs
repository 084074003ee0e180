//! What people call a process: the script or the module that an interpreter runs, not the interpreter.

use model::Process;
use std::borrow::Cow;

/// `train.py` for `python3 train.py`, `vllm.entrypoints` for `python3 -m vllm.entrypoints`; else the name that the process has.
pub fn display_name(process: &Process) -> Option<Cow<'_, str>> {
    name_of(process.name.as_deref(), process.command.as_deref())
}

/// The same, of a name and a command line.
pub fn name_of<'a>(name: Option<&'a str>, command: Option<&'a str>) -> Option<Cow<'a, str>> {
    let script = command.filter(|_| name.is_none_or(is_interpreter)).and_then(script);
    script.or_else(|| name.map(Cow::Borrowed))
}

/// A command line from what is run on: without the interpreter, its options and the folder of the script.
pub fn from_script(command: &str) -> &str {
    let Some(name) = script(command).filter(|name| matches!(name, Cow::Borrowed(_))) else { return command };
    let mut rest = command;
    for word in command.split_ascii_whitespace() {
        rest = &rest[rest.find(word).unwrap_or(0)..];
        if base(word) == name {
            return &rest[word.len() - name.len()..];
        }
        rest = &rest[word.len()..];
    }
    command
}

/// Whether a program runs scripts: its own name says nothing of what it does.
fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(plain, "python" | "pypy" | "bash" | "sh" | "dash" | "zsh" | "perl" | "ruby" | "node")
}

/// What the interpreter of a command line was told to run.
fn script(command: &str) -> Option<Cow<'_, str>> {
    let mut words = command.split_ascii_whitespace();
    let interpreter = base(words.next()?);
    if !is_interpreter(interpreter) {
        return None;
    }
    while let Some(word) = words.next() {
        match word {
            "-m" => return words.next().map(Cow::Borrowed),
            // The text that follows is a program, and no name.
            "-c" | "-e" => return Some(format!("{interpreter} {word}").into()),
            "-W" | "-X" => drop(words.next()),
            option if option.starts_with('-') => {}
            script => return Some(Cow::Borrowed(base(script))).filter(|name| !name.is_empty()),
        }
    }
    None
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_called_by_its_name_and_a_program_by_its_own() {
        let name = |name: &str, command: &str| name_of(Some(name), Some(command)).map(Cow::into_owned);
        for (process, command, expected) in [
            ("python3", "python3 train.py --batch-size 64", "train.py"),
            ("python3.10", "/usr/bin/python3.10 -u -X dev /srv/models/serve_llama.py", "serve_llama.py"),
            ("python3", "python3 -m vllm.entrypoints.openai --port 1", "vllm.entrypoints.openai"),
            ("python", "python -c import ttnn", "python -c"),
            ("python3", "python3", "python3"),
            ("python3", "python3 -i", "python3"),
            ("python3", "", "python3"),
            ("bash", "bash ./run.sh", "run.sh"),
            ("matmul_sweep", "./matmul_sweep --iterations 3", "matmul_sweep"),
            // Who gave itself a name wants to be called by it.
            ("VLLM::Worker", "python3 serve.py", "VLLM::Worker"),
            // An interpreter that says something else than its command line.
            ("python3", "pt_main_thread x.py", "python3"),
        ] {
            assert_eq!(name(process, command).as_deref(), Some(expected), "{command}");
        }
        assert_eq!(from_script("/usr/bin/python3 -u  /srv/serve.py  --a b"), "serve.py  --a b");
        assert_eq!(from_script("python3 -m vllm.x --port 1"), "vllm.x --port 1");
        assert_eq!(from_script("python3 -c 1"), "python3 -c 1");
        assert_eq!(from_script("./matmul --n 3"), "./matmul --n 3");
        assert_eq!(name_of(None, None), None);
        assert_eq!(name_of(Some("python3"), None).as_deref(), Some("python3"));
    }
}
