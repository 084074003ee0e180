//! The tests of the book, in one program.

#![allow(clippy::unwrap_used)]

mod activity;
mod book;
mod many_books;
