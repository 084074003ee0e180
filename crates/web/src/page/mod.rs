//! The page that a browser shows.

/// A file of the page.
pub struct Asset {
    /// From the root, `/` for the page itself.
    pub path: &'static str,
    /// As the HTTP header says it.
    pub content_type: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// The page itself.
pub const INDEX: Asset =
    Asset { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("index.html") };

/// All files, the page itself included.
pub const ASSETS: &[Asset] = &[INDEX];

/// What the page may do: nothing but ask the service that it comes from.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
