//! The manual: man pages, help on topics, and completions for shells. All come from clap's definition of the command line, and from the
//! tables in `reference`.

pub mod completions;
pub mod man;
pub mod reference;
pub mod topics;
