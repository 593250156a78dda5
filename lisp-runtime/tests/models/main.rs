//! What threads share, under every order in which they can interleave.

mod slots;
mod tool_threads;
