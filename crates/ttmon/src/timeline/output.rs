//! The file that a timeline is written to: new, or standard output; compressed on the way where its name ends in `.gz`.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What a timeline is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Perfetto's protobuf, for ui.perfetto.dev and its trace processor
    Perfetto,
    /// Chrome's trace events in JSON, which Perfetto and Tracy import
    Chrome,
    /// One table, with names and types of columns in the first line
    Csv,
}

/// The format of a file and whether it is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub format: Format,
    pub is_compressed: bool,
}

impl Form {
    /// As the name of a file has it, unless the format was named.
    pub fn of(path: &Path, format: Option<Format>) -> Result<Form, String> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let endings = [
            (".pftrace", Format::Perfetto),
            (".perfetto-trace", Format::Perfetto),
            (".json", Format::Chrome),
            (".csv", Format::Csv),
        ];
        let named = endings.into_iter().find(|(ending, _)| plain.ends_with(ending)).map(|(_, format)| format);
        match format.or(named) {
            Some(format) => Ok(Form { format, is_compressed: plain != name }),
            None => Err(format!(
                "{}: the name says no format: end it in .pftrace, .json or .csv, or use --format",
                path.display()
            )),
        }
    }
}

/// Where a timeline goes.
pub struct Output {
    target: Target,
}

enum Target {
    Plain(Counted),
    Compressed(GzEncoder<Counted>),
}

/// Counts what goes to the file.
struct Counted {
    out: BufWriter<Box<dyn Write + Send>>,
    bytes: u64,
}

impl Output {
    /// Opens a file that must be new or empty; `-` is standard output.
    pub fn open(path: &Path, is_compressed: bool) -> io::Result<Output> {
        if path == Path::new("-") {
            return Ok(Output::of(Box::new(io::stdout()), is_compressed));
        }
        let mut options = File::options();
        options.write(true).mode(0o600);
        let file = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path)?,
            other => other?,
        };
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() > 0 {
            let what = "it is not empty, and no file is written over: name a new one";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Ok(Output::of(Box::new(file), is_compressed))
    }

    fn of(sink: Box<dyn Write + Send>, is_compressed: bool) -> Output {
        let counted = Counted { out: BufWriter::with_capacity(1 << 16, sink), bytes: 0 };
        let target = match is_compressed {
            true => Target::Compressed(GzEncoder::new(counted, Compression::fast())),
            false => Target::Plain(counted),
        };
        Output { target }
    }

    /// Writes what is left. Returns how many bytes there are.
    pub fn finish(self) -> io::Result<u64> {
        let mut counted = match self.target {
            Target::Plain(counted) => counted,
            Target::Compressed(encoder) => encoder.finish()?,
        };
        counted.out.flush()?;
        Ok(counted.bytes)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Plain(counted) => counted.write(bytes),
            Target::Compressed(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Plain(counted) => counted.flush(),
            Target::Compressed(encoder) => encoder.flush(),
        }
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_format() {
        let form = |name: &str, format| Form::of(Path::new(name), format).map(|form| (form.format, form.is_compressed));
        assert_eq!(form("a.pftrace", None), Ok((Format::Perfetto, false)));
        assert_eq!(form("x/a.perfetto-trace.gz", None), Ok((Format::Perfetto, true)));
        assert_eq!(form("a.JSON", None), Ok((Format::Chrome, false)));
        assert_eq!(form("a.csv.gz", None), Ok((Format::Csv, true)));
        assert_eq!(form("a.bin.gz", Some(Format::Csv)), Ok((Format::Csv, true)));
        assert_eq!(form("-", Some(Format::Chrome)), Ok((Format::Chrome, false)));
        assert!(form("a.txt", None).unwrap_err().contains("the name says no format"));
        assert!(form("-", None).is_err());
    }

    #[test]
    fn no_file_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "mine").unwrap();
        let refused = Output::open(&path, false).err().unwrap();
        assert!(refused.to_string().starts_with("it is not empty"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::write(&path, "").unwrap();
        let mut output = Output::open(&path, true).unwrap();
        output.write_all(&[b'a'; 5000]).unwrap();
        assert_eq!(output.finish().unwrap(), std::fs::metadata(&path).unwrap().len());
        let mut text = String::new();
        let file = File::open(&path).unwrap();
        io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut text).unwrap();
        assert_eq!(text, "a".repeat(5000));
    }
}
