//! The tarball and the Debian package. Both have the same files, below `/usr/local` and `/usr`.

use super::build::Built;
use super::output;
use anyhow::Context;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is packed, by its path below the prefix.
pub struct Package {
    version: String,
    epoch: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Package {
    pub fn new(top: &Path, built: &Built, version: &str) -> anyhow::Result<Package> {
        let read = |path: &str| fs::read(top.join(path)).with_context(|| path.to_owned());
        let mut files = vec![
            ("bin/ttmon".to_owned(), fs::read(&built.program)?),
            ("lib/systemd/system/ttmon.service".into(), read("packaging/ttmon.service")?),
            ("lib/systemd/system/ttmon.socket".into(), read("packaging/ttmon.socket")?),
            ("share/ttmon/systemd/deep.conf".into(), read("packaging/ttmon.service.d/deep.conf")?),
            ("share/ttmon/systemd/fleet.conf".into(), read("packaging/ttmon.service.d/fleet.conf")?),
            ("share/ttmon/systemd/kernel-log.conf".into(), read("packaging/ttmon.service.d/kernel-log.conf")?),
            ("share/doc/ttmon/README.md".into(), read("README.md")?),
            ("share/doc/ttmon/copyright".into(), read("LICENSE")?),
            ("share/doc/ttmon/examples/config.toml".into(), example(&built.program)?.into_bytes()),
        ];
        files.extend(documents(top)?);
        files.extend(man_pages(&built.program, &built.target, &built.epoch)?);
        files.extend(completions(&built.program)?);
        files.sort();
        Ok(Package { version: version.into(), epoch: built.epoch.clone(), files })
    }

    /// The same with other names or contents.
    fn with(&self, change: impl Fn(&mut String, &mut Vec<u8>)) -> Package {
        let mut files = self.files.clone();
        files.iter_mut().for_each(|(name, bytes)| change(name, bytes));
        Package { version: self.version.clone(), epoch: self.epoch.clone(), files }
    }

    /// Writes the files below a folder.
    fn unpack(&self, folder: &Path) -> anyhow::Result<()> {
        let _ = fs::remove_dir_all(folder);
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            fs::write(&path, bytes)?;
            let mode = if name.starts_with("bin/") { 0o755 } else { 0o644 };
            fs::set_permissions(&path, Permissions::from_mode(mode))?;
        }
        Ok(())
    }
}

/// Settings with their defaults, as comments explain them.
fn example(program: &Path) -> anyhow::Result<String> {
    let settings = output(Command::new(program).args(["config", "print"]).env("XDG_CONFIG_HOME", "/nonexistent"))?;
    Ok(format!(
        "# All settings of `ttmon top`, with their defaults. Copy it to ~/.config/ttmon/config.toml.\n\n{settings}"
    ))
}

/// The manual, compressed as Debian wants it.
fn man_pages(program: &Path, target: &Path, epoch: &str) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let folder = target.join("man");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    output(Command::new(program).arg("man").arg(&folder).env("SOURCE_DATE_EPOCH", epoch))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        output(Command::new("gzip").args(["-9", "-n"]).arg(&path))?;
        let name = path.file_name().context("a page has a name")?.to_string_lossy().into_owned();
        let section = name.rsplit('.').next().unwrap_or("1").to_owned();
        pages.push((format!("share/man/man{section}/{name}.gz"), fs::read(path.with_file_name(format!("{name}.gz")))?));
    }
    Ok(pages)
}

fn completions(program: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let places = [
        ("bash", "share/bash-completion/completions/ttmon"),
        ("zsh", "share/zsh/site-functions/_ttmon"),
        ("fish", "share/fish/vendor_completions.d/ttmon.fish"),
    ];
    let mut files = Vec::new();
    for (shell, place) in places {
        let text = output(Command::new(program).args(["completions", shell]))?;
        files.push((place.to_owned(), text.into_bytes()));
    }
    Ok(files)
}

/// The pages of docs, and the pictures that README.md shows: its links work where it is installed.
fn documents(top: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let readme = fs::read_to_string(top.join("README.md"))?;
    let linked = readme.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let mut names: BTreeSet<String> = linked.filter(|link| link.starts_with("docs/")).map(str::to_owned).collect();
    for entry in fs::read_dir(top.join("docs"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            names.insert(format!("docs/{name}"));
        }
    }
    names.into_iter().map(|name| Ok((format!("share/doc/ttmon/{name}"), fs::read(top.join(&name))?))).collect()
}

/// The packages, and where they are.
pub fn write(package: &Package, out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Ok(vec![write_tarball(package, out)?, write_deb(package, out)?])
}

/// To be unpacked in `/usr/local`. Without entries for folders: those of the machine keep their owner and mode.
fn write_tarball(package: &Package, out: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("ttmon-{}-x86_64-linux", package.version);
    let (folder, tar, file) = (out.join(&name), out.join(format!("{name}.tar")), out.join(format!("{name}.tar.gz")));
    let package = package.with(|name, bytes| {
        if name.ends_with("/ttmon.service") {
            *bytes = String::from_utf8_lossy(bytes).replace("/usr/bin/ttmon", "/usr/local/bin/ttmon").into_bytes();
        }
    });
    package.unpack(&folder)?;
    let mut command = Command::new("tar");
    command.args(["--format=gnu", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go+r,go-w"]);
    command.arg(format!("--mtime=@{}", package.epoch)).arg("-cf").arg(&tar).arg("-C").arg(out);
    output(command.args(package.files.iter().map(|(path, _)| format!("{name}/{path}"))))?;
    output(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&tar))?;
    fs::remove_dir_all(&folder)?;
    Ok(file)
}

pub fn write_deb(package: &Package, out: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("ttmon_{}_amd64", package.version);
    let (folder, file) = (out.join(&name), out.join(format!("{name}.deb")));
    let package = package.with(|name, _| *name = name.replace("zsh/site-functions", "zsh/vendor-completions"));
    package.unpack(&folder.join("usr"))?;
    let size: usize = package.files.iter().map(|(_, bytes)| bytes.len()).sum();
    let sums = output(
        Command::new("md5sum").current_dir(&folder).args(package.files.iter().map(|(name, _)| format!("usr/{name}"))),
    )?;
    let control = folder.join("DEBIAN");
    fs::create_dir_all(&control)?;
    fs::write(control.join("md5sums"), sums)?;
    fs::write(
        control.join("control"),
        CONTROL.replace("VERSION", &package.version).replace("SIZE", &size.div_ceil(1024).to_string()),
    )?;
    for (name, script) in [("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)] {
        fs::write(control.join(name), script)?;
        fs::set_permissions(control.join(name), Permissions::from_mode(0o755))?;
    }
    // Whoever builds may have another umask.
    output(Command::new("find").arg(&folder).args(["-type", "d", "-exec", "chmod", "755", "{}", "+"]))?;
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&folder)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", &package.epoch);
    output(&mut build)?;
    fs::remove_dir_all(&folder)?;
    Ok(file)
}

const CONTROL: &str = "\
Package: ttmon
Version: VERSION
Architecture: amd64
Maintainer: The ttmon developers
Installed-Size: SIZE
Depends: libc6 (>= 2.17), libgcc-s1 | libgcc1
Suggests: openssh-client
Section: admin
Priority: optional
Description: monitor for Tenstorrent AI accelerators
 Shows how the devices are, who uses them, how busy they are and with what,
 and where their memory went. It never opens a device unless asked for deep
 reads.
 .
 The service (ttmon.service, ttmon.socket) is installed but not enabled.
";

/// Nothing is started or enabled. A service that runs goes on with the new program.
const POSTINST: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    [ -z \"$2\" ] || systemctl try-restart ttmon.service || true
fi
";

const PRERM: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now ttmon.socket ttmon.service || true
fi
";

const POSTRM: &str = "\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
";

/// `SHA256SUMS`, for `sha256sum --check`.
pub fn write_sums(files: &[PathBuf], out: &Path) -> anyhow::Result<()> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = output(Command::new("sha256sum").current_dir(out).args(names))?;
    Ok(fs::write(out.join("SHA256SUMS"), sums)?)
}
