//! Forms to code.
/// stub
pub struct Proto {
    /// The parameters as written.
    pub params: Box<str>,
}
