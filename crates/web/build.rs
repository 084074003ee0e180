//! Packs the files of the page: the program carries a third of their size, and browsers take them as they are then.

use flate2::{Compression, write::GzEncoder};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/page");
    let into = Path::new(&std::env::var("OUT_DIR")?).join("page");
    let mut table = String::new();
    for folder in ["", "js/"] {
        std::fs::create_dir_all(into.join(folder))?;
        let files = std::fs::read_dir(Path::new("src/page").join(folder))?;
        let mut files = files.map(|file| file.map(|file| file.path())).collect::<Result<Vec<_>, _>>()?;
        files.sort();
        for path in files {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if !["html", "css", "js", "svg"].contains(&extension) {
                continue;
            }
            let name = format!("{folder}{}", path.file_name().unwrap_or_default().to_string_lossy());
            let address = if extension == "html" { "/".to_owned() } else { format!("/assets/{name}") };
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&std::fs::read(&path)?)?;
            std::fs::write(into.join(&name), packed.finish()?)?;
            writeln!(table, "asset({address:?}, {extension:?}, include_bytes!({name:?})),")?;
        }
    }
    Ok(std::fs::write(into.join("assets.rs"), format!("&[{table}]"))?)
}
