//! Which Python is the current one, and whether ttnn and the agent are in it. Nothing of it is run.

use std::path::{Path, PathBuf};

/// A Python environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFound {
    pub prefix: PathBuf,
    /// The version of ttnn, as far as it is known. Absent where there is no ttnn.
    pub ttnn: Option<Option<String>>,
    /// Whether programs in it load the agent.
    pub has_agent: bool,
}

impl PythonFound {
    /// That of the active environment, or of the first `python3` that the shell would run.
    pub fn current() -> Option<PythonFound> {
        let absolute = |name: Option<std::ffi::OsString>| name.map(PathBuf::from).filter(|path| path.is_absolute());
        let active = absolute(std::env::var_os("VIRTUAL_ENV")).or(absolute(std::env::var_os("CONDA_PREFIX")));
        let prefix = active.or_else(|| {
            let path = std::env::var_os("PATH")?;
            let program =
                std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|file| file.is_file())?;
            Some(program.parent()?.parent()?.to_owned())
        })?;
        Some(PythonFound::at(&prefix))
    }

    pub fn at(prefix: &Path) -> PythonFound {
        let mut found = PythonFound { prefix: prefix.to_owned(), ttnn: None, has_agent: false };
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        for python in names(&prefix.join("lib")).iter().filter(|name| name.starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                for name in names(&prefix.join("lib").join(python).join(packages)) {
                    let version = name.strip_prefix("ttnn-").and_then(|rest| rest.strip_suffix(".dist-info"));
                    if let Some(version) = version {
                        found.ttnn = Some(Some(version.to_owned()));
                    } else if matches!(&*name, "ttnn" | "ttnn.pth" | "ttnn.egg-link") {
                        found.ttnn.get_or_insert(None);
                    } else if name == "ttmon.pth" {
                        found.has_agent = true;
                    }
                }
            }
        }
        found
    }
}
